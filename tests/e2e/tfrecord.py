"""Writes TFRecord files of tf.train.Example, for test data.

A record on disk: uint64 length, uint32 masked CRC-32C of the length, the bytes, uint32 masked CRC-32C of the bytes.
"""
import struct


def _table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def record(payload):
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked(length)) + payload + struct.pack("<I", masked(payload))


def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append((value & 0x7F) | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def _field(number, payload):
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def example(name, values):
    """A tf.train.Example with one int64_list: Example.features(1).feature(1){key(1), value(2)}.int64_list(3).value(1)."""
    int64_list = _field(1, b"".join(_varint(value) for value in values))
    entry = _field(1, name.encode()) + _field(2, _field(3, int64_list))
    return _field(1, _field(1, entry))


def file_of(values):
    """The bytes of a file that holds one Example {x: value} for each value."""
    return b"".join(record(example("x", [value])) for value in values)
