"""What a batch that is ready on the GPU costs in Python: next() alone, and with a view of it by DLPack. One line a figure.
Skipped without a GPU; against a stand-in driver ($HEADRACE_LIBCUDA) it runs, and its figures say nothing.

$HEADRACE_LOADER and $HEADRACE_MAKE_PLAN: tests/client/real_loader.py.
"""

import statistics
import sys
import time
from pathlib import Path

import headrace

sys.path.append(str(Path(__file__).resolve().parents[2] / "client"))
from real_loader import RealLoader  # noqa: E402

STEPS = 500
STEP_SECONDS = 0.002  # of training, in which the next batch comes


def measure(memory):
    spec = {
        "source": {"range": {"stop": 1 << 40}},
        "pipeline": [{"batch": {"size": 1024}}],
        "delivery": {"memory": memory},
    }
    with RealLoader(spec) as loader:
        try:
            iterator = iter(headrace.connect(loader.directory, timeout=60).replica(0))
        except headrace.NotFoundError as error:
            print(f"skipped: no GPU here: {error}")
            return
        next_us, view_us = [], []
        for _ in range(STEPS):
            time.sleep(STEP_SECONDS)
            start = time.perf_counter_ns()
            batch = next(iterator)
            middle = time.perf_counter_ns()
            view = batch["value"].__dlpack__(stream=1)
            end = time.perf_counter_ns()
            next_us.append((middle - start) / 1000)
            view_us.append((end - middle) / 1000)
            del batch, view
    print(f"{memory.lower()}_python_next_ready  {statistics.median(next_us):.2f} us")
    print(f"{memory.lower()}_python_dlpack  {statistics.median(view_us):.2f} us", flush=True)


if __name__ == "__main__":
    for each in ("Pinned", "Device"):
        measure(each)
