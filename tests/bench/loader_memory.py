#!/usr/bin/env python3
"""The loader's memory over many epochs, beside what `headrace explain` says of it.

    make build && tests/bench/loader_memory.py [--epochs 100]

Each input is read as often as that by a trainer that holds no batch. Told are what no file backs of the loader's resident
memory (RssAnon: code and rings are not counted), at its most within the first five epochs and within the last five, and
what explain says of the loader besides its rings.
"""

import argparse
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADRACE = ROOT / "build/release/bin/headrace"
LINES = 60000  # of some 540 bytes: 32 MB in two files

INPUTS = {
    "text, in order": ("Text", "[]", "[{batch: {size: 256}}]"),
    "text, shuffled by 20,000": ("Text", "[]", "[{shuffle: {bufferSize: 20000}}, {batch: {size: 256}}]"),
    "JSON lines, shuffled by 20,000": (
        "JSONLines",
        "[{name: text, dtype: string}, {name: label, dtype: int64}]",
        "[{shuffle: {bufferSize: 20000}}, {batch: {size: 256}}]",
    ),
    "text, one random order": ("Text", "[]", "[{shuffle: {scope: Global}}, {batch: {size: 256}}]"),
}


def spec_of(name):
    kind, features, pipeline = INPUTS[name]
    return (
        "apiVersion: headrace.dev/v1alpha1\nkind: DistributedInput\nmetadata: {name: memory}\n"
        f"spec:\n  source: {{files: {{format: {kind}, paths: ['lines-*']}}}}\n"
        f"  features: {features}\n  pipeline: {pipeline}\n"
    )


def write_data(folder):
    generator = random.Random(7)
    for part in range(2):
        with open(folder / f"lines-{part}", "w") as file:
            for _ in range(LINES // 2):
                text = "".join(generator.choices("abcdefghij ", k=512))
                file.write(json.dumps({"text": text, "label": generator.randrange(1000)}) + "\n")


def anonymous_bytes(loader):
    status = pathlib.Path(f"/proc/{loader}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon:")) * 1024


def loader_of(headrace):
    children = pathlib.Path(f"/proc/{headrace}/task/{headrace}/children").read_text().split()
    (loader,) = [pid for pid in children if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("headrace-loader")]
    return loader


def measure(epochs):
    """The trainer: the loader's memory after each epoch, as binary numbers."""
    import headrace

    ds = headrace.connect()
    loader = loader_of(os.getppid())
    for _ in range(epochs):
        batches = sum(1 for _ in ds)
        assert batches == -(-LINES // 256), batches
        sys.stdout.buffer.write(struct.pack("<q", anonymous_bytes(loader)))
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        return measure(options.epochs)
    print(f"| {options.epochs} epochs of 32 MB | first 5 | last 5 | explain says |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        write_data(pathlib.Path(folder))
        path = pathlib.Path(folder) / "input.yaml"
        for name in INPUTS:
            path.write_text(spec_of(name))
            said = json.loads(subprocess.run([HEADRACE, "explain", "-f", path, "-o", "json"], check=True,
                                             capture_output=True).stdout)["memory"]["loaderBytes"]
            command = [HEADRACE, "run", "-f", path, "--", sys.executable, __file__, "--measure"]
            out = subprocess.run([*command, "--epochs", str(options.epochs)], check=True, stdout=subprocess.PIPE).stdout
            seen = [number for (number,) in struct.iter_unpack("<q", out)]
            first, last = (max(part) / 2**20 for part in (seen[:5], seen[-5:]))
            explained = "not known" if said is None else f"{said / 2**20:.0f} MiB"
            print(f"| {name} | {first:.1f} MiB | {last:.1f} MiB | {explained} |", flush=True)


if __name__ == "__main__":
    main()
