#!/usr/bin/env python3
"""Writes the example's data: the 1,797 handwritten digits that scikit-learn ships.

Run it from anywhere; it needs scikit-learn (any version: the data set has not changed since 2014):

    python3 -m pip install scikit-learn
    python3 examples/digits/make_data.py

It writes, beside itself and always the same bytes:

    train-0.tfrecord ... train-3.tfrecord   four fifths of the digits, dealt out over four files
    test.npz                                every fifth digit, held out: arrays x and label
    configmaps.yaml                         the training files as ConfigMaps, for a cluster without storage

A record is a tf.train.Example with the features x (bytes: the 64 pixels, 0 to 16, row by row) and label (int64).
"""

import base64
import io
import pathlib
import struct
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
NUM_FILES = 4
TEST_EVERY = 5


def make_crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = make_crc_table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def frame(data):
    """One TFRecord: length, its CRC, data, its CRC."""
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number, data):
    """A length-delimited protobuf field."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(pixels, label):
    def entry(name, feature):
        return field(1, field(1, name.encode()) + field(2, feature))

    bytes_list = field(1, field(1, pixels))
    int64_list = field(3, field(1, varint(label)))
    return field(1, entry("label", int64_list) + entry("x", bytes_list))


def npy(array):
    import numpy

    out = io.BytesIO()
    numpy.lib.format.write_array(out, array, version=(1, 0))
    return out.getvalue()


def npz(**arrays):
    """As numpy.savez_compressed, but with a fixed date, so that the bytes are always the same."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0)), npy(array))
    return out.getvalue()


def configmap(name, files):
    lines = ["apiVersion: v1", "kind: ConfigMap", f"metadata: {{name: {name}}}", "binaryData:"]
    for file, data in files.items():
        lines.append(f"  {file}: {base64.b64encode(data).decode()}")
    return "\n".join(lines) + "\n"


def main():
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels = digits.data.astype("uint8")
    labels = digits.target.astype("int64")
    held_out = [i for i in range(len(labels)) if i % TEST_EVERY == 0]
    kept = [i for i in range(len(labels)) if i % TEST_EVERY != 0]

    files = {
        f"train-{f}.tfrecord": b"".join(frame(example(pixels[i].tobytes(), int(labels[i]))) for i in kept[f::NUM_FILES])
        for f in range(NUM_FILES)
    }
    for name, data in files.items():
        (HERE / name).write_bytes(data)
    (HERE / "test.npz").write_bytes(npz(x=pixels[held_out], label=labels[held_out].astype("uint8")))

    # One file each: kubectl apply keeps the object in an annotation of at most 256 KiB.
    maps = [configmap(f"digits-{name.split('.')[0]}", {name: data}) for name, data in files.items()]
    (HERE / "configmaps.yaml").write_text("# Written by make_data.py.\n" + "---\n".join(maps))
    print(f"{len(kept)} digits in {NUM_FILES} files, {len(held_out)} held out")


if __name__ == "__main__":
    main()
