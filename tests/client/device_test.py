"""The Python package with batches that the loader has brought to the GPU (delivery.memory: Device), against the stand-in
for the CUDA driver: a real loader and its trainer as processes, as `headrace run` starts them.

$HEADRACE_LIBCUDA is the stand-in (tests/fakes/fake_cuda.cc), $HEADRACE_COMMAND the command-line tool.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import numpy

RECORDS, ROWS, SHAPE = 20, 8, (16, 12, 3)
SCALES, OFFSETS = (0.0171, 0.0175, 0.0174), (-2.118, -2.036, -1.804)

TRAINER = """
import json, headrace
ds = headrace.connect(timeout=60)
told = {"memory": ds.memory, "reason": ds.memory_reason, "batches": []}
for batch in ds.replica(0):
    arrays = {}
    for name, array in batch.items():
        capsule = array.__dlpack__(stream=1)  # as a framework takes it, on the legacy default stream
        arrays[name] = [array.device, list(array.__dlpack_device__()), list(array.shape), array.numpy().tobytes().hex()]
        del capsule
    told["batches"].append(arrays)
    del batch, array
print("TOLD " + json.dumps(told))
"""

HOST_TRAINER = """
import headrace
try:
    headrace.connect(timeout=60, memory="host")
except headrace.InvalidArgumentError as error:
    print(error)
"""


class DeviceTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="headrace-device-")
        self.addCleanup(self.folder.cleanup)
        random = numpy.random.default_rng(5)
        self.images = random.integers(0, 256, (RECORDS, *SHAPE), dtype=numpy.uint8)
        with open(os.path.join(self.folder.name, "images.bin"), "wb") as file:
            for label, image in enumerate(self.images):
                file.write(numpy.int64(label).tobytes() + image.tobytes())

    def run_trainer(self, spec, trainer):
        return self.run_input(spec, "--", sys.executable, "-c", trainer)

    def run_input(self, spec, *arguments):
        path = os.path.join(self.folder.name, "input.yaml")
        document = {
            "apiVersion": "headrace.dev/v1alpha1",
            "kind": "DistributedInput",
            "metadata": {"name": "images"},
            "spec": spec,
        }
        with open(path, "w") as file:
            json.dump(document, file)
        command = [os.environ["HEADRACE_COMMAND"], "run", "-f", path, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def told(self, spec):
        lines = [line for line in self.run_trainer(spec, TRAINER).splitlines() if "TOLD " in line]
        self.assertEqual(len(lines), 1)
        return json.loads(lines[0].split("TOLD ", 1)[1])

    def images_spec(self):
        maps = (
            {"cast": "float32"},
            {"scales": SCALES, "offsets": OFFSETS},
            {"transpose": [2, 0, 1]},
            {"cast": "float16"},
        )
        return {
            "source": {"files": {"format": "FixedLength", "paths": ["images.bin"]}},
            "features": [
                {"name": "label", "dtype": "int64"},
                {"name": "image", "dtype": "uint8", "shape": SHAPE},
            ],
            "pipeline": [{"map": {"feature": "image", **body}} for body in maps] + [{"batch": {"size": ROWS}}],
            "delivery": {"memory": "Device"},
        }

    def test_arrays_are_where_the_loader_wrote_them(self):
        told = self.told(
            {
                "source": {"range": {"stop": RECORDS}},
                "pipeline": [{"batch": {"size": ROWS}}],
                "delivery": {"memory": "Device"},
            }
        )
        self.assertEqual(told["memory"], "Device")
        self.assertRegex(told["reason"], "^Device: GPU 0 .* filled by the loader")
        values = numpy.arange(RECORDS)
        self.assertEqual(len(told["batches"]), 3)
        for step, batch in enumerate(told["batches"]):
            expected = values[step * ROWS : (step + 1) * ROWS]
            self.assertEqual(batch["value"], ["cuda:0", [2, 0], [len(expected)], expected.tobytes().hex()])

    def test_images_are_what_the_maps_make(self):
        scaled = self.images.astype(numpy.float32) * numpy.array(SCALES, numpy.float32)
        images = (scaled + numpy.array(OFFSETS, numpy.float32)).astype(numpy.float16).transpose(0, 3, 1, 2)
        told = self.told(self.images_spec())
        self.assertEqual(told["memory"], "Device")
        self.assertEqual(len(told["batches"]), 3)
        for step, batch in enumerate(told["batches"]):
            rows = slice(step * ROWS, (step + 1) * ROWS)
            device, dlpack_device, shape, values = batch["image"]
            self.assertEqual((device, dlpack_device, tuple(shape)), ("cuda:0", [2, 0], images[rows].shape))
            self.assertEqual(values, images[rows].tobytes().hex(), f"step {step}")
            self.assertEqual(batch["label"][3], numpy.arange(RECORDS)[rows].tobytes().hex())

    def test_host_memory_has_no_such_images(self):
        output = self.run_trainer(self.images_spec(), HOST_TRAINER)
        self.assertRegex(output, 'the last maps of component "image".*take GPU memory')

    def test_without_a_command_the_same_is_printed_as_under_host(self):
        spec = self.images_spec()
        printed = self.run_input(spec)
        self.assertIn(f"{RECORDS} records", printed)
        spec["delivery"]["memory"] = "Host"
        self.assertEqual(printed, self.run_input(spec))


if __name__ == "__main__":
    unittest.main()
