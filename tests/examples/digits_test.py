"""The digits example's files: what make_data.py wrote is whole, and the all-reduce of train.py sums and fails clearly."""

import base64
import importlib.util
import os
import pathlib
import socket
import struct
import sys
import threading
import types
import unittest

import numpy as np
import yaml

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "digits"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def records(data):
    offset = 0
    while offset < len(data):
        (length,) = struct.unpack_from("<Q", data, offset)
        yield data[offset + 12 : offset + 12 + length]
        offset += 16 + length


class DataTest(unittest.TestCase):
    make_data = load("make_data")

    def test_checksum_of_eight_zeros(self):
        # CRC-32C 0x8C28B28A, rotated right by 15, plus 0xA282EAD8.
        self.assertEqual(self.make_data.masked_crc32c(bytes(8)), 0x07980329)

    def test_every_record_is_framed_as_written(self):
        seen = []
        for path in sorted(EXAMPLE.glob("train-*.tfrecord")):
            data = path.read_bytes()
            found = list(records(data))
            self.assertEqual(b"".join(map(self.make_data.frame, found)), data, path)
            seen += found
        test = np.load(EXAMPLE / "test.npz")
        self.assertEqual((len(seen), test["x"].shape, test["label"].shape), (1437, (360, 64), (360,)))
        # No held-out digit is among the training data.
        held_out = {self.make_data.example(x.tobytes(), int(label)) for x, label in zip(test["x"], test["label"])}
        self.assertEqual(len(held_out & set(seen)), 0)

    def test_configmaps_hold_the_same_files_and_are_small_enough_for_kubectl_apply(self):
        files = {}
        for document in (EXAMPLE / "configmaps.yaml").read_text().split("---\n"):
            self.assertLess(len(document), 200 * 1024)  # apply keeps the object in an annotation of 256 KiB
            files.update(yaml.safe_load(document)["binaryData"])
        self.assertEqual(
            {name: base64.b64decode(data) for name, data in files.items()},
            {path.name: path.read_bytes() for path in EXAMPLE.glob("train-*.tfrecord")},
        )


class AllReduceTest(unittest.TestCase):
    def setUp(self):
        sys.modules.setdefault("headrace", types.ModuleType("headrace"))  # train.py's other half is not under test
        self.train = load("train")
        with socket.create_server(("127.0.0.1", 0)) as server:
            os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(server.getsockname()[1]))

    def test_every_worker_gets_the_same_sum(self):
        sums = {}

        def work(rank):
            reduce = self.train.AllReduce(rank, 3)
            sums[rank] = [reduce.sum(np.array([rank, 10.0**i])).tolist() for i in range(3)]

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(sums, {rank: [[3.0, 3.0], [3.0, 30.0], [3.0, 300.0]] for rank in range(3)})

    def test_one_worker_needs_no_network(self):
        del os.environ["MASTER_ADDR"]
        self.assertEqual(self.train.AllReduce(0, 1).sum(np.array([2.0])).tolist(), [2.0])

    def test_workers_that_do_not_come_are_named(self):
        self.train.AllReduce.CONNECT_SECONDS = 0.1
        with self.assertRaisesRegex(SystemExit, r"workers \[1, 2\] did not join"):
            self.train.AllReduce(0, 3)
        with self.assertRaisesRegex(SystemExit, "worker 0 at 127.0.0.1:.* not reached"):
            self.train.AllReduce(1, 3)

    def test_a_worker_that_leaves_is_an_error(self):
        failures = []

        def leave():
            for peer in self.train.AllReduce(1, 2).peers:
                peer.close()

        thread = threading.Thread(target=leave)
        thread.start()
        reduce = self.train.AllReduce(0, 2)
        thread.join(60)
        try:
            reduce.sum(np.array([1.0]))
        except SystemExit as error:
            failures.append(str(error))
        self.assertRegex(failures[0], "worker 0 lost the others")


if __name__ == "__main__":
    unittest.main()
