#!/usr/bin/env python3
"""The trainer of a measurement in Python: asks one peer for batches and does nothing with them.

    drain.py PEER DATA BATCH [--warmup S] [--seconds S] [--pause-ms N]

PEER is MODULE:FUNCTION below peers/; the function gets the folder of the data and the batch size, and returns an
iterator over batches without an end, each a tensor with the records as first dimension, or a sequence or dictionary of
them: as the peer has them, so that what is timed is its next() and nothing else. Prints what loader_drain_bench prints,
and stays until it is told to end, so that its parent can look at it.
"""
import argparse
import importlib
import signal
import sys
import time
from pathlib import Path


def say(*words):
    print(*words, flush=True)


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def records_of(batch):
    """The length of a batch, or of its first tensor."""
    if isinstance(batch, dict):
        return len(next(iter(batch.values())))
    return len(batch[0]) if isinstance(batch, (tuple, list)) else len(batch)


def drain(batches, options):
    began = time.monotonic_ns()
    batches = iter(batches())
    batch = next(batches)
    say("first_batch_ms", (time.monotonic_ns() - began) / 1e6)
    if records_of(batch) != options.batch:
        sys.exit(f"{options.peer}: the first batch has {records_of(batch)} records, {options.batch} are asked for")
    end = time.monotonic() + options.warmup
    while time.monotonic() < end:
        batch = None  # as a trainer that is done with it: what freeing it costs is not next()'s
        time.sleep(options.pause_ms / 1000)
        batch = next(batches)
    say("begin")
    records, times = 0, []
    began = now = time.monotonic()
    while now < began + options.seconds:
        batch = None
        if options.pause_ms:
            time.sleep(options.pause_ms / 1000)
            now = time.monotonic()
        batch = next(batches)
        before, now = now, time.monotonic()
        times.append(now - before)
        records += records_of(batch)
    say("records", records)
    say("seconds", now - began)
    times.sort()
    for name, share in (("next_p50_us", 0.5), ("next_p99_us", 0.99), ("next_max_us", 1)):
        say(name, percentile(times, share) * 1e6)
    say("end")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer")
    parser.add_argument("data", type=Path)
    parser.add_argument("batch", type=int)
    parser.add_argument("--warmup", type=float, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--pause-ms", type=float, default=0, help="what the trainer does between two steps")
    options = parser.parse_args()
    module, function = options.peer.split(":")
    make = getattr(importlib.import_module(f"peers.{module}"), function)
    # Peers with processes or shared memory of their own clean up after them.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    files = sorted(str(path) for path in options.data.glob("part-*"))
    drain(lambda: make(files, options.batch), options)
    while True:
        time.sleep(0.05)  # not signal.pause(), which goes on if another thread takes the signal


if __name__ == "__main__":
    main()
