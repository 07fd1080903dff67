"""What a batch that is ready costs in Python. One line a figure: name, median, ratio to something of this machine.

Needs $HEADRACE_RING_LOADER (build/release/tests/ring_loader), numpy, and the package on PYTHONPATH.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import time

import numpy

import headrace

STEPS = 8000


def median_us(times_ns):
    return statistics.median(times_ns) / 1000


def empty():
    pass


def timed(function, calls):
    times = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        function()
        times.append(time.perf_counter_ns() - start)
    return median_us(times)


def main():
    directory = tempfile.mkdtemp(prefix="headrace-bench-", dir="/dev/shm")
    # Every batch is published before the first is read, and nobody waits for a slot.
    arguments = [os.environ["HEADRACE_RING_LOADER"], directory, "steps=-1", f"slots={STEPS}", f"pause_at_step={STEPS}"]
    loader = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    loader.stdout.readline()
    try:
        iterator = iter(headrace.connect(directory).replica(0))
        next_times, view_times, pointers = [], [], set()
        batch = next(iterator)
        for _ in range(STEPS - 1):
            start = time.perf_counter_ns()
            batch = next(iterator)
            middle = time.perf_counter_ns()
            x = batch["x"].numpy()
            end = time.perf_counter_ns()
            next_times.append(middle - start)
            view_times.append(end - middle)
            pointers.add(x.__array_interface__["data"][0])
            del x
    finally:
        loader.kill()
        loader.wait()
        shutil.rmtree(directory)
    base = timed(empty, 100000)
    source = numpy.ones(1 << 20, dtype=numpy.uint8)
    copy = timed(source.copy, 200)
    print(f"python_empty_call       {base:9.3f} us")
    print(f"numpy_copy_1MiB         {copy:9.3f} us")
    for name, value in (("python_next_ready", median_us(next_times)), ("python_numpy_view", median_us(view_times))):
        print(f"{name:23s} {value:9.3f} us  {value / base:8.1f} empty calls  {value / copy:.4f} of numpy_copy_1MiB")
    print(f"python_bytes_copied     {0 if len(pointers) == STEPS - 1 else 'unknown':>9} B   "
          f"{len(pointers)} batches, each at an address of its own in the ring")


if __name__ == "__main__":
    main()
