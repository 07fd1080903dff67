#!/usr/bin/env python3
"""This machine's limits: tests/bench/machine_floors.cc, and JPEG decoding alone, which this file does itself.

    floors.py TAR       decodes the images of a WebDataset tar into one buffer a thread, on one and on two threads
"""
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 1.5
RUNS = 3


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


def main(tar):
    from peers import tar_index

    samples = tar_index.Samples([tar])
    images = [samples[i][0] for i in range(min(3000, len(samples)))]
    for name, threads in (("jpeg_1_thread", 1), ("jpeg_2_threads", 2)):
        rates = [decoded_per_second(images, threads) for _ in range(RUNS)]
        print(f"{name:24} {statistics.median(rates):8.0f} images/s", flush=True)


def measure(python, file, tar, say):
    """{name: (value, unit)}; `file`: any of 100 MiB or more, `tar`: None, or one with JPEG images. Tells each line."""
    commands = [[ROOT / "build/release/bench/machine_floors", file]]
    commands += [[python, __file__, tar]] if tar else []
    found = {}
    for command in commands:
        for line in subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
            name, value, unit = line.split()
            found[name] = float(value), unit
            say(line)
    return found


if __name__ == "__main__":
    main(sys.argv[1])
