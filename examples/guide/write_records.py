#!/usr/bin/env python3
"""Writes integers to a TFRecord file, one tf.train.Example {x: value} each: the data of docs/guide.md.

    python3 examples/guide/write_records.py FILE VALUE...
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "digits"))
from make_data import field, frame, varint  # noqa: E402


def example(value):
    int64_list = field(3, field(1, varint(value)))
    return field(1, field(1, field(1, b"x") + field(2, int64_list)))


if __name__ == "__main__":
    path, *values = sys.argv[1:]
    pathlib.Path(path).write_bytes(b"".join(frame(example(int(value))) for value in values))
