"""A fake loader in a process of its own, and a run directory for each test."""

import os
import re
import subprocess
import tempfile
import unittest
from unittest import mock

import headrace

LOADER = os.environ["HEADRACE_RING_LOADER"]


class RingLoader:
    """The fake loader; see tests/fakes/fake_loader.h for what it publishes."""

    def __init__(self, directory, **options):
        arguments = [f"{name}={value}" for name, value in options.items()]
        self.process = subprocess.Popen(
            [LOADER, directory, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the fake loader did not start")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def mappings(path):
    """(start, end, offset in the file) of each mapping of `path` in this process."""
    found = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            if line.rstrip().endswith(path):
                start, end, offset = re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+)", line).groups()
                found.append((int(start, 16), int(end, 16), int(offset, 16)))
    return found


def pointer(array):
    return array.__array_interface__["data"][0]


class ClientCase(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="headrace-python-", dir="/dev/shm")  # CUDA locks no file of a disk
        self.loader = None
        self.environment = mock.patch.dict(os.environ, {"HEADRACE_LOADER_TIMEOUT": "20"})
        self.environment.start()

    def tearDown(self):
        if self.loader:
            self.loader.kill()
        self.environment.stop()
        for name in os.listdir(self.directory):
            os.unlink(os.path.join(self.directory, name))
        os.rmdir(self.directory)

    def connect(self, **options):
        self.loader = RingLoader(self.directory, **options)
        return headrace.connect(self.directory, timeout=20)
