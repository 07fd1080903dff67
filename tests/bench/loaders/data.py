#!/usr/bin/env python3
"""Makes the data of the workloads, once: $HEADRACE_CACHE/bench-data/SIZE/NAME, four files each, with random content from
a fixed seed. Needs the Python environment of requirements.txt; compare.py runs this with it.

    data.py [--size 2GiB] NAME...
"""
import argparse
import io
import json
import re
import shutil
import struct
import sys
import tarfile
import time
from pathlib import Path

import google_crc32c
import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2]))
from python_environment import CACHE  # noqa: E402

VERSION = 1  # of what the makers below write: data of another one are made anew
FILES = 4
SPARE_BYTES = 8 << 30  # that the disk must keep
JPEG_IMAGES = 3000  # distinct ones; the files repeat them under new keys
TABLE_ROWS = 1 << 19  # distinct rows of d, f and f2; the files repeat them
JSON_LINES = 1 << 16  # distinct lines of e; the files repeat them
MASK_DELTA = np.uint32(0xA282EAD8)


def masked_crc32c(rows):
    """The checksum of each row of a uint8[n, bytes], masked as TFRecord has it: uint32[n]."""
    # The package's function takes bytes: one copy of all rows, then a slice of it a row.
    whole, width = memoryview(rows.tobytes()), rows.shape[1]
    crc = np.fromiter((google_crc32c.value(bytes(whole[i:i + width])) for i in range(0, len(whole), width)),
                      dtype=np.uint32, count=len(rows))
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + MASK_DELTA


def framed(payloads):
    """Records of equal length as TFRecord frames them: length, its checksum, the bytes, their checksum."""
    count, width = payloads.shape
    length = np.frombuffer(struct.pack("<Q", width), dtype=np.uint8)
    frames = np.empty((count, 12 + width + 4), dtype=np.uint8)
    frames[:, :8] = length
    frames[:, 8:12] = masked_crc32c(length.reshape(1, 8)).view(np.uint8)
    frames[:, 12:-4] = payloads
    frames[:, -4:] = masked_crc32c(payloads).view(np.uint8).reshape(count, 4)
    return frames


def random_bytes(rng, *shape):
    return np.frombuffer(rng.bytes(int(np.prod(shape))), dtype=np.uint8).reshape(shape)


def in_chunks(path, size, rows, chunk, header=b""):
    """Writes what chunk(rows) makes to `path`, after `header`, until `size` is reached; returns the rows written."""
    written, count = 0, 0
    with path.open("wb") as file:
        file.write(header)
        while written < size:
            made = chunk(rows)
            written += file.write(made)
            count += rows
    return count


def field(number, payload):
    """A length-delimited field of a protocol buffer; payloads up to 2 MiB."""
    size = len(payload)
    varint = bytes([size]) if size < 0x80 else bytes([size & 0x7F | 0x80, size >> 7]) if size < 0x4000 else \
        bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    return bytes([number << 3 | 2]) + varint + payload


def make_a(folder, size, rng):
    """TFRecord of tf.train.Example {x: bytes[1024], y: int64}. y is from 128 to 16,383: always two bytes of varint."""
    x_mark, y_mark = b"\x01\xff" * 512, b"\xfe\x7e"
    x = field(1, field(1, b"x") + field(2, field(1, field(1, x_mark))))
    y = field(1, field(1, b"y") + field(2, field(3, field(1, y_mark))))
    template = field(1, x + y)
    x_at, y_at = template.index(x_mark), template.index(y_mark)

    def chunk(rows):
        records = np.tile(np.frombuffer(template, dtype=np.uint8), (rows, 1))
        records[:, x_at:x_at + 1024] = random_bytes(rng, rows, 1024)
        y = rng.integers(128, 16384, rows)
        records[:, y_at], records[:, y_at + 1] = y & 0x7F | 0x80, y >> 7
        return framed(records)

    return [in_chunks(folder / f"part-{i}.tfrecord", size // FILES, 1 << 14, chunk) for i in range(FILES)]


def make_a2(folder, size, rng):
    """TFRecord whose records are 1,024 bytes each, and nothing around them."""
    def chunk(rows):
        return framed(random_bytes(rng, rows, 1024))

    return [in_chunks(folder / f"part-{i}.tfrecord", size // FILES, 1 << 14, chunk) for i in range(FILES)]


def photo(rng, height=256, width=256):
    """Something that compresses as a photograph does: smooth shapes and some grain. uint8[height, width, 3]"""
    picture = np.zeros((height, width, 3), dtype=np.float32)
    for cells, amplitude in ((2, 70), (8, 40), (32, 14), (128, 8)):
        coarse = rng.normal(0, amplitude, (cells + 1, cells + 1, 3)).astype(np.float32)
        at = np.linspace(0, cells, height, endpoint=False)
        low, part = at.astype(int), (at % 1).astype(np.float32)
        rows = coarse[low] * (1 - part)[:, None, None] + coarse[low + 1] * part[:, None, None]
        picture += rows[:, low] * (1 - part)[None, :, None] + rows[:, low + 1] * part[None, :, None]
    picture += 128 + rng.normal(0, 5, picture.shape).astype(np.float32)
    return np.clip(picture, 0, 255).astype(np.uint8)


def make_b(folder, size, rng):
    """WebDataset: tars of NAME.jpg, 256x256 in colour, and NAME.cls."""
    import simplejpeg

    images = [simplejpeg.encode_jpeg(photo(rng), quality=92, colorsubsampling="420")
              for _ in range(min(JPEG_IMAGES, max(32, size // (FILES * 24000))))]
    order, counts = 0, []
    for i in range(FILES):
        path, count = folder / f"part-{i}.tar", 0
        with path.open("wb") as file, tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            while file.tell() < size // FILES:
                for extension, content in (("jpg", images[order % len(images)]), ("cls", b"%d" % (order % 1000))):
                    entry = tarfile.TarInfo(f"{order:08d}.{extension}")
                    entry.size = len(content)
                    tar.addfile(entry, io.BytesIO(content))
                order, count = order + 1, count + 1
        counts.append(count)
    return counts


def make_c(folder, size, rng):
    """Records of 4 KiB, one after the other; as many in each file."""
    def chunk(rows):
        return random_bytes(rng, rows, 4096)

    return [in_chunks(folder / f"part-{i}.bin", size // FILES, 1 << 12, chunk) for i in range(FILES)]


def table(rng, rows, digits=None):
    """Columns c0 to c7, float32, and label, int32; `digits`: rounded to so many, so that texts are of usual length."""
    import pyarrow

    values = rng.normal(0, 1, (8, rows))
    columns = {f"c{i}": values[i].astype(np.float32) if digits is None else values[i].round(digits) for i in range(8)}
    columns["label"] = rng.integers(0, 1000, rows).astype(np.int32)
    return pyarrow.table(columns)


def make_d(folder, size, rng):
    """CSV with a header: eight floats of six decimals and a label."""
    import pyarrow.csv

    counts = []
    for i in range(FILES):
        text = io.BytesIO()
        rows = table(rng, TABLE_ROWS // FILES, digits=6)
        pyarrow.csv.write_csv(rows, text, pyarrow.csv.WriteOptions(include_header=False, quoting_style="none"))
        header = ",".join(rows.column_names) + "\n"
        counts.append(in_chunks(folder / f"part-{i}.csv", size // FILES, rows.num_rows, lambda _: text.getbuffer(),
                                header.encode()))
    return counts


def make_e(folder, size, rng):
    """JSON lines {"text": some 512 bytes of words, quotes and line ends, "label": a number below 1,000}."""
    letters = np.array(list("etaoinshrdlucmfwypvbgk"))
    words = ["".join(rng.choice(letters, n)) for n in rng.integers(1, 11, 5000)] + ['"so"', "here.\n"]
    texts = []
    for _ in range(JSON_LINES):
        text = " ".join([words[k] for k in rng.integers(0, len(words), 90)])
        texts.append(json.dumps({"text": text[:512], "label": int(rng.integers(1000))}) + "\n")
    share = len(texts) // FILES
    chunks = ["".join(texts[i * share:(i + 1) * share]).encode() for i in range(FILES)]
    return [in_chunks(folder / f"part-{i}.jsonl", size // FILES, share, lambda _, c=chunk: c)
            for i, chunk in enumerate(chunks)]


def write_parquet(folder, size, rng, row_group_rows, **how):
    import pyarrow.parquet

    counts = []
    for i in range(FILES):
        rows, path, count = table(rng, TABLE_ROWS), folder / f"part-{i}.parquet", 0
        with path.open("wb") as file, pyarrow.parquet.ParquetWriter(file, rows.schema, **how) as writer:
            while file.tell() < size // FILES:
                writer.write_table(rows, row_group_size=row_group_rows)
                count += rows.num_rows
        counts.append(count)
    return counts


def make_f(folder, size, rng):
    """Parquet, the columns of d: plain, not compressed, row groups of 65,536."""
    return write_parquet(folder, size, rng, 1 << 16, compression="none", use_dictionary=False)


def make_f2(folder, size, rng):
    """Parquet, the columns of d, as pyarrow writes it: Snappy, dictionaries up to 1 MiB, row groups of 524,288."""
    return write_parquet(folder, size, rng, TABLE_ROWS)


MAKERS = {"a": make_a, "a2": make_a2, "b": make_b, "c": make_c, "d": make_d, "e": make_e, "f": make_f, "f2": make_f2}


def size_text(text):
    if not re.fullmatch(r"\d+[MG]iB", text):
        raise argparse.ArgumentTypeError(f'"{text}" is no size: write 2GiB or 256MiB')
    return text


def bytes_of(size):
    return int(size[:-3]) << {"MiB": 20, "GiB": 30}[size[-3:]]


def folder_of(name, size):
    return CACHE / "bench-data" / size / name


def manifest(name, size):
    """{"version", "files", "records", "bytes"} of data that lie there, else None."""
    path = folder_of(name, size) / "manifest.json"
    found = json.loads(path.read_text()) if path.exists() else None
    return found if found and found["version"] == VERSION else None


def make(name, size):
    folder = folder_of(name, size)
    shutil.rmtree(folder, ignore_errors=True)
    made = folder.with_name(name + ".part")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    free = shutil.disk_usage(made).free
    if free < bytes_of(size) + SPARE_BYTES:
        sys.exit(f"{made}: {free >> 30} GiB are free, and data of {size} shall leave {SPARE_BYTES >> 30} GiB: give a "
                 "smaller --size, or a roomier $HEADRACE_CACHE")
    began = time.monotonic()
    print(f"making {folder}: {MAKERS[name].__doc__.splitlines()[0]}", file=sys.stderr, flush=True)
    counts = MAKERS[name](made, bytes_of(size), np.random.default_rng(list(name.encode())))
    files = sorted(path for path in made.iterdir())
    total = sum(path.stat().st_size for path in files)
    (made / "manifest.json").write_text(json.dumps(
        {"version": VERSION, "files": [path.name for path in files], "records": sum(counts), "bytes": total}))
    made.rename(folder)
    print(f"made {folder}: {sum(counts):,} records, {total / sum(counts):.1f} bytes each, "
          f"{time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=size_text, default="2GiB", help="of each workload's data")
    parser.add_argument("names", nargs="*", choices=[[], *MAKERS], help="default: all")
    options = parser.parse_args()
    for name in options.names or MAKERS:
        if not manifest(name, options.size):
            make(name, options.size)


if __name__ == "__main__":
    main()
