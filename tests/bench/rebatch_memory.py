#!/usr/bin/env python3
"""The loader's memory when one global batch is cut for 1 to 64 replicas: its rings, and what it has besides.

    make build && tests/bench/rebatch_memory.py

A global batch is 2,048 records of 4 KiB, 8 MiB; trainers hold none, and loaders work four steps ahead. "besides" is the
loader's resident memory that no file backs (RssAnon): code is not counted, batches outside of the rings would be. It
grows with the records in a global batch, by 48 bytes for each.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = 2048
WIDTH = 1024
VALUES = [float(i) for i in range(4 * WIDTH)]
PREFETCH_STEPS = 4
STEPS = 24

INPUT = f"""
apiVersion: headrace.dev/v1alpha1
kind: DistributedInput
metadata: {{name: rebatch-memory}}
spec:
  source: {{tensors: [{{name: x, dtype: float32, shape: [4, {WIDTH}], values: {VALUES}}}]}}
  pipeline: [repeat: {{}}, batch: {{size: {ROWS}}}]
  distribution: {{autoShardPolicy: Data}}
  delivery: {{prefetchSteps: {PREFETCH_STEPS}}}
"""


def loader_of(headrace):
    """The process id of the loader that `headrace run` started."""
    children = pathlib.Path(f"/proc/{headrace}/task/{headrace}/children").read_text().split()
    loaders = [pid for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("headrace-loader")]
    (loader,) = loaders
    return loader


def measure():
    """The trainer: reads some steps, checks them, and prints the row of the table."""
    import headrace

    ds = headrace.connect()
    iterator = iter(ds)
    for step in range(STEPS):
        arrays = [batch["x"].numpy() for batch in next(iterator).values]
        assert sum(len(array) for array in arrays) == ROWS and arrays[0][1][0] == WIDTH
        del arrays
    status = pathlib.Path(f"/proc/{loader_of(os.getppid())}/status").read_text()
    anonymous = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:"))
    # Blocks, not sizes: what the rings take, not what they could.
    rings = sum(f.stat().st_blocks * 512 for f in pathlib.Path(os.environ["HEADRACE_DIR"]).iterdir() if f.is_file())
    replicas = ds.input_context.replicas_per_worker
    print(f"| {replicas} | {ROWS // replicas:,} | {rings / 2**20:.1f} MiB | {anonymous / 1024:.1f} MiB |", flush=True)


def main():
    print("| replicas | rows for each | rings | besides |\n|---|---|---|---|", flush=True)
    for replicas in (1, 2, 4, 8, 16, 32, 64):
        command = ["build/release/bin/headrace", "run", "-f", "-", "--replicas", str(replicas)]
        subprocess.run(
            [*command, "--", sys.executable, __file__, "--measure"], input=INPUT, text=True, cwd=ROOT, check=True
        )


if __name__ == "__main__":
    measure() if "--measure" in sys.argv else main()
