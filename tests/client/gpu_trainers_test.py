"""Trainers in Python that take batches of the real loader on a GPU, under Pinned and Device, held to what it delivers in host
memory: by DLPack, with torch and with JAX.

Before the stand-in for the CUDA driver ($HEADRACE_LIBCUDA) what needs no framework runs; torch and JAX need a GPU. What is
skipped says what is missing. $HEADRACE_LOADER and $HEADRACE_MAKE_PLAN: real_loader.py.
"""

import gc
import importlib
import os
import tempfile
import unittest

import numpy

import headrace
from dlpack import look_into
from real_loader import RealLoader

RECORDS, ROWS, EPOCHS = 101, 8, 2
SHAPE = (48, 64, 3)
MEMORIES = ("Pinned", "Device")
STAND_IN = "HEADRACE_LIBCUDA" in os.environ
MAPS = (
    {"cast": "float32"},
    {"scales": [0.0171, 0.0175, 0.0174], "offsets": [-2.118, -2.036, -1.804]},
    {"transpose": [2, 0, 1]},
    {"cast": "float16"},
)
SPIN_CYCLES = 20_000_000  # of a kernel: 10 ms


def needs(package):
    if STAND_IN:
        raise unittest.SkipTest(f"{package} does not run on the stand-in for the CUDA driver")
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise unittest.SkipTest(f"the package {package} is missing here: {error}") from error


class GpuTrainers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        os.environ["HEADRACE_LOADER_TIMEOUT"] = "60"
        cls.folder = tempfile.TemporaryDirectory(prefix="headrace-trainers-")
        cls.addClassCleanup(cls.folder.cleanup)
        random = numpy.random.default_rng(5)
        with open(os.path.join(cls.folder.name, "images.bin"), "wb") as file:
            for label in range(RECORDS):
                file.write(numpy.int64(label).tobytes() + random.integers(0, 256, SHAPE, dtype=numpy.uint8).tobytes())
        with RealLoader(cls.spec("Host")) as loader:
            ds = headrace.connect(loader.directory, timeout=60)
            cls.expected = [
                (batch["label"].numpy().copy(), batch["image"].numpy().copy())
                for _ in range(EPOCHS)
                for batch in ds.replica(0)
            ]

    @classmethod
    def spec(cls, memory):
        return {
            "source": {"files": {"format": "FixedLength", "paths": [os.path.join(cls.folder.name, "images.bin")]}},
            "features": [
                {"name": "label", "dtype": "int64"},
                {"name": "image", "dtype": "uint8", "shape": SHAPE},
            ],
            "pipeline": [{"shuffle": {"bufferSize": 50, "seed": 3}}]
            + [{"map": {"feature": "image", **body}} for body in MAPS]
            + [{"batch": {"size": ROWS}}],
            "delivery": {"memory": memory, "prefetchSteps": 2},
        }

    def each_memory(self):
        """A loader, and a data set that is connected to it, for each kind of memory."""
        for memory in MEMORIES:
            with self.subTest(memory=memory), RealLoader(self.spec(memory)) as loader:
                try:
                    ds = headrace.connect(loader.directory, timeout=60)
                except headrace.NotFoundError as error:
                    self.skipTest(f"no GPU here: {error}")
                if ds.memory != memory:
                    self.skipTest(f"no GPU here: {ds.memory_reason}")
                yield loader, ds
                del ds
                gc.collect()

    def same(self, batches):
        """`batches` are (label, image), as numpy has them, of all epochs."""
        self.assertEqual(len(batches), len(self.expected))
        for step, (batch, expected) in enumerate(zip(batches, self.expected)):
            numpy.testing.assert_array_equal(batch[0], expected[0], err_msg=f"labels of step {step}")
            self.assertTrue(numpy.array_equal(batch[1].view(numpy.uint16), expected[1].view(numpy.uint16)), f"step {step}")

    def test_dlpack(self):
        for _, ds in self.each_memory():
            read = []
            for _ in range(EPOCHS):
                for batch in ds.replica(0):
                    image = batch["image"]
                    self.assertEqual((image.device, image.__dlpack_device__()), ("cuda:0", (2, 0)))
                    for stream in (None, 1, 2, -1):
                        capsule = image.__dlpack__(stream=stream)
                        tensor = look_into(capsule)
                        self.assertEqual((tensor.device_type, tensor.device_id), (2, 0), "kDLCUDA, GPU 0")
                        self.assertEqual((tensor.code, tensor.bits, tensor.lanes), (2, 16, 1), "kDLFloat")
                        self.assertEqual(tensor.shape[: tensor.ndim], [batch.rows, SHAPE[2], *SHAPE[:2]])
                        self.assertEqual((tensor.data + tensor.byte_offset) % 64, 0)
                        del capsule, tensor
                    with self.assertRaisesRegex(BufferError, "stream 0 is ambiguous"):
                        image.__dlpack__(stream=0)
                    with self.assertRaisesRegex(BufferError, "no view on device"):
                        image.__dlpack__(dl_device=(1, 0))
                    with self.assertRaisesRegex(BufferError, "never a copy"):
                        image.__dlpack__(copy=True)
                    read.append((batch["label"].numpy(), image.numpy()))
                    del image, batch
            self.same(read)

    # The side stream is behind by more than the ring holds, views go before it has come to them, and nobody waits for it.
    def test_torch_on_a_stream_that_is_behind(self):
        torch = needs("torch")
        if not torch.cuda.is_available():
            self.skipTest("this torch has no CUDA, or sees no GPU")
        for _, ds in self.each_memory():
            side = torch.cuda.Stream()
            read = []
            for _ in range(EPOCHS):
                for batch in ds.replica(0):
                    with torch.cuda.stream(side):
                        label, image = batch["label"].torch(), batch["image"].torch()
                        self.assertEqual((label.device.type, image.device.type), ("cuda", "cuda"))
                        torch.cuda._sleep(SPIN_CYCLES)
                        read.append((label.clone(), image.clone()))
                    del label, image, batch
            side.synchronize()
            self.same([(label.cpu().numpy(), image.cpu().numpy()) for label, image in read])
            del read

    def test_torch_trains_on_while_loaders_are_killed(self):
        torch = needs("torch")
        if not torch.cuda.is_available():
            self.skipTest("this torch has no CUDA, or sees no GPU")
        for loader, ds in self.each_memory():
            model = torch.nn.Sequential(
                torch.nn.Conv2d(3, 8, 3, stride=2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(1)
            ).cuda()
            optimizer = None
            read = []
            for _ in range(EPOCHS):
                for batch in ds.replica(0):
                    label, image = batch["label"].torch(), batch["image"].torch()
                    read.append((label.clone(), image.clone()))
                    loss = (model(image.float()).flatten() - label.float()).square().mean()
                    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=1e-7)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    if len(read) % 5 == 0:
                        loader.kill()
                        loader.start()
                    del label, image, batch
            self.assertTrue(torch.isfinite(loss))
            self.same([(label.cpu().numpy(), image.cpu().numpy()) for label, image in read])
            del read

    def test_jax(self):
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the loader needs some of the GPU, too
        jax = needs("jax")
        if jax.default_backend() != "gpu":
            self.skipTest(f"this JAX runs on {jax.default_backend()}")
        keep = jax.jit(lambda array: array + 0)  # a copy, by a kernel
        for _, ds in self.each_memory():
            read = []
            for _ in range(EPOCHS):
                for batch in ds.replica(0):
                    label, image = batch["label"].jax(), batch["image"].jax()
                    self.assertEqual(next(iter(image.devices())).platform, "gpu")
                    read.append((keep(label), keep(image)))
                    del label, image, batch
            self.same([(numpy.asarray(label), numpy.asarray(image)) for label, image in read])
            del read


if __name__ == "__main__":
    unittest.main(verbosity=2)
