"""The wheel as users install it: by pip, without a network, away from the build tree.

It is for every CPython from 3.11 on; this runs it under the one that runs the test.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

import tomllib

from client_case import RingLoader

PACKAGE = Path(os.environ["HEADRACE_PYTHON_PACKAGE"])  # client/python
(WHEEL,) = Path(os.environ["HEADRACE_WHEEL_DIRECTORY"]).glob("headrace-*.whl")

READS_A_BATCH = """
import sys
import headrace
batch = next(iter(headrace.connect(sys.argv[1]).replica(0)))
print(headrace.__file__, *batch["x"].numpy()[1].tolist())
"""


def backend():
    spec = importlib.util.spec_from_file_location("wheel_backend", PACKAGE / "wheel_backend.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class WheelTest(unittest.TestCase):
    def test_holds_what_each_cpython_needs(self):
        requires = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]["requires-python"]
        first, end = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", requires).groups()
        with zipfile.ZipFile(WHEEL) as wheel:
            names = wheel.namelist()
            metadata = wheel.read(next(name for name in names if name.endswith("METADATA"))).decode()
        found = sorted(re.findall(r"^headrace/_backend/_nb_backend_v1\.cpython-3(\d+)-\S+\.so$", "\n".join(names), re.M))
        self.assertEqual(found, [str(minor) for minor in range(int(first), int(end))])
        self.assertIn("headrace/_native.abi3.so", names)
        self.assertIn("headrace/_backend/LICENSE", names)  # its own condition for being passed on
        self.assertIn(f"Requires-Python: {requires}\n", metadata)
        self.assertIn(f"-cp3{first}-abi3-manylinux_2_35_", WHEEL.name)

    def test_is_refused_where_it_needs_more_than_its_platform_has(self):
        dump = "DF *UND* 0 (GLIBC_2.{}) dlopen\nDF *UND* 0 (GLIBCXX_3.4.{}) wait\nDF *UND* 0 (CXXABI_1.3) x\n"
        self.assertEqual(backend().too_new(dump.format(35, 30)), [])
        self.assertEqual(backend().too_new(dump.format(38, 31)), ["GLIBCXX_3.4.31", "GLIBC_2.38"])

    def test_installed_by_pip_it_reads_batches(self):
        with tempfile.TemporaryDirectory() as site, tempfile.TemporaryDirectory(dir="/dev/shm") as run:
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index",
                            "--root-user-action=ignore", "--target", site, WHEEL], check=True)
            loader = RingLoader(run)
            try:
                said = subprocess.run([sys.executable, "-c", READS_A_BATCH, run], check=True, capture_output=True, text=True,
                                      env={**os.environ, "PYTHONPATH": site}).stdout.split()
            finally:
                loader.kill()
        # The second row of the first batch: its label, and a quarter more in each column (tests/fakes/fake_loader.h).
        self.assertEqual(said, [f"{site}/headrace/__init__.py", "1.0", "1.25", "1.5"])


if __name__ == "__main__":
    unittest.main()
