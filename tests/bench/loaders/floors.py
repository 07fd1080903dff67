#!/usr/bin/env python3
"""This machine's limits: tests/bench/machine_floors.cc, and JPEG decoding alone, which this file does itself.

    floors.py TAR [NAME]    decodes the images of a WebDataset tar into one buffer a thread, on one and on two threads
"""
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MACHINE_FLOORS = ROOT / "build/release/bench/machine_floors"
SECONDS = 1.5
RUNS = 3
JPEG = {"jpeg_1_thread": 1, "jpeg_2_threads": 2}


def decode(images, stop, counts):
    import numpy as np
    import simplejpeg

    buffer = np.empty((256, 256, 3), dtype=np.uint8)
    done = 0
    while not stop.is_set():
        simplejpeg.decode_jpeg(images[done % len(images)], buffer=buffer)
        done += 1
    counts.append(done)


def decoded_per_second(images, threads):
    stop, counts = threading.Event(), []
    running = [threading.Thread(target=decode, args=(images[i::threads], stop, counts)) for i in range(threads)]
    began = time.monotonic()
    for thread in running:
        thread.start()
    time.sleep(SECONDS)
    stop.set()
    for thread in running:
        thread.join()
    return sum(counts) / (time.monotonic() - began)


def main(tar, only=None):
    from peers import tar_index

    samples = tar_index.Samples([tar])
    images = [samples[i][0] for i in range(min(3000, len(samples)))]
    for name in [only] if only else JPEG:
        rates = [decoded_per_second(images, JPEG[name]) for _ in range(RUNS)]
        print(f"{name:24} {statistics.median(rates):8.0f} {unit(name)}", flush=True)


def lines(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def measure_all(python, file):
    """A line a limit; `file`: any of 100 MiB or more, for JPEG's limits a tar with images."""
    return lines([MACHINE_FLOORS, file]) + (lines([python, __file__, file]) if file.suffix == ".tar" else [])


def measure(python, name, file):
    """One limit, in unit(name); `file` as above."""
    command = [python, __file__] if name in JPEG else [MACHINE_FLOORS]
    (line,) = lines([*command, file, name])
    return float(line.split()[1])


def unit(name):
    return "images/s" if name in JPEG else "GB/s"


if __name__ == "__main__":
    main(*sys.argv[1:])
