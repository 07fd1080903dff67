"""The Python package with GPU memory, against the stand-in for the CUDA driver.

$HEADRACE_LIBCUDA is the stand-in (tests/fakes/fake_cuda.cc), $HEADRACE_RING_LOADER the fake loader's binary.
"""

import ctypes
import gc
import os
import subprocess
import sys
import types
import unittest
from unittest import mock

import numpy

import headrace
from client_case import ClientCase
from dlpack import look_into

CUDA = ctypes.CDLL(os.environ["HEADRACE_LIBCUDA"])
NAMES = (
    "contexts", "streams", "events", "registrations", "device_bytes", "copies_to_device", "pageable_copies",
    "value_waits", "refusals", "modules", "launches"
)  # fmt: skip


class State(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in NAMES]


def state():
    found = State()
    CUDA.FakeCudaGetState(ctypes.byref(found))
    return found


class PinnedTest(ClientCase):
    def setUp(self):
        super().setUp()
        self.before = state()

    def tearDown(self):
        CUDA.FakeCudaHoldCopies(0)
        super().tearDown()
        gc.collect()
        after = state()
        for name in NAMES[:5]:
            self.assertEqual(getattr(after, name), 0, name)
        for name in NAMES[6:]:
            self.assertEqual(getattr(after, name), getattr(self.before, name), name)

    def test_arrays_are_on_the_gpu(self):
        ds = self.connect(steps=3)
        self.assertEqual(ds.memory, "Pinned")
        self.assertRegex(ds.memory_reason, "GPU 0 of the 2 .*Auto")
        for step, batch in enumerate(ds.replica(0)):
            x = batch["x"]
            self.assertEqual(x.device, "cuda:0")
            self.assertIn("device='cuda:0'", repr(x))
            self.assertEqual(x.__dlpack_device__(), (2, 0))
            # numpy gets a copy, which is all that it can read.
            labels = numpy.arange(step * 4, step * 4 + 4)
            numpy.testing.assert_array_equal(batch["label"].numpy(), labels)
            numpy.testing.assert_array_equal(numpy.asarray(x), labels[:, None] + numpy.array([0, 0.25, 0.5]))
            with self.assertRaisesRegex(ValueError, "on cuda:0: as a numpy array it must be copied"):
                x.__array__(copy=False)
            with self.assertRaises((BufferError, RuntimeError)):  # by version
                numpy.from_dlpack(x)
        self.assertEqual(step, 2)

    def test_host_memory_if_the_trainer_wants_it(self):
        self.connect()
        ds = headrace.connect(self.directory, timeout=20, memory="host")
        self.assertEqual((ds.memory, ds.memory_reason), ("Host", "Host: the trainer takes host memory only"))
        batch = next(iter(ds.replica(0)))
        self.assertEqual(batch["x"].device, "cpu")
        self.assertEqual(numpy.from_dlpack(batch["label"])[0], 0)
        with self.assertRaisesRegex(headrace.InvalidArgumentError, "memory='gpu': want 'host'"):
            headrace.connect(self.directory, memory="gpu")

    def test_every_type_comes_back_as_it_was(self):
        ds = self.connect(all_dtypes=1)
        host = headrace.connect(self.directory, timeout=20, memory="host")
        batch = next(iter(ds.replica(0)))
        copies = {name: array.numpy() if name != "bfloat16" else None for name, array in batch.items()}
        del batch, ds
        gc.collect()
        batch = next(iter(host.replica(0)))
        for name, array in batch.items():
            if name in ("label", "x", "bfloat16"):
                continue  # of this epoch, and what numpy lacks
            numpy.testing.assert_array_equal(copies[name], array.numpy(), err_msg=name)
            self.assertEqual(copies[name].dtype, array.numpy().dtype)

    def test_dlpack_names_the_gpu_and_orders_the_stream(self):
        batch = next(iter(self.connect().replica(0)))
        x = batch["x"]
        for stream in (None, 1, 2, -1):
            capsule = x.__dlpack__(stream=stream)
            tensor = look_into(capsule)
            self.assertEqual((tensor.device_type, tensor.device_id), (2, 0))
            self.assertEqual((tensor.ndim, tensor.shape[0], tensor.shape[1]), (2, 4, 3))
            self.assertEqual((tensor.code, tensor.bits), (2, 32))
            self.assertEqual(tensor.data % 64, 0)
            del capsule, tensor
        with self.assertRaisesRegex(BufferError, "stream 0 is ambiguous"):
            x.__dlpack__(stream=0)
        with self.assertRaisesRegex(BufferError, "no view on device"):
            x.__dlpack__(dl_device=(1, 0))
        before = state().refusals
        with self.assertRaisesRegex(headrace.UnavailableError, "cuStreamWaitEvent"):
            x.__dlpack__(stream=12345)  # no stream at all
        self.assertEqual(state().refusals, before + 1)
        self.before.refusals += 1

    def test_a_view_keeps_the_batch_and_its_stream_is_waited_for(self):
        ds = self.connect(steps=4)
        iterator = iter(headrace.connect(self.directory, timeout=20, device_batches=1).replica(0))
        batch = next(iterator)
        capsule = batch["label"].__dlpack__(stream=1)
        address = look_into(capsule).data
        del batch
        with self.assertRaises(TimeoutError):
            iterator.get_next(timeout=0.05)  # the only memory is still seen
        del capsule
        batch = next(iterator)
        self.assertEqual(batch.step, 1)
        capsule = batch["label"].__dlpack__(stream=1)
        self.assertEqual(look_into(capsule).data, address)
        del ds

    def test_torch_is_given_its_current_stream(self):
        # As torch.from_dlpack does; torch itself is not needed.
        seen = []

        def from_dlpack(tensor):
            if not hasattr(tensor, "__dlpack__"):
                seen.append(look_into(tensor))
                return types.SimpleNamespace(view=lambda dtype: ("view", dtype))
            seen.append(tensor.__dlpack_device__())
            return tensor.__dlpack__(stream=2)

        streams = []

        def current_stream(device):
            streams.append(device)
            return types.SimpleNamespace(cuda_stream=0)

        torch = types.SimpleNamespace(
            from_dlpack=from_dlpack, bool="torch.bool", cuda=types.SimpleNamespace(current_stream=current_stream)
        )
        with mock.patch.dict(sys.modules, {"torch": torch}):
            batch = next(iter(self.connect(all_dtypes=1).replica(0)))
            view = batch["x"].torch()
            self.assertEqual(seen, [(2, 0)])
            self.assertEqual(batch["bool"].torch(), ("view", "torch.bool"))
            self.assertEqual(streams, ["cuda:0"])
            self.assertEqual(seen[1].code, 1, "booleans go as bytes")
        del view, seen

    def test_strings_and_ragged_tensors_stay_on_the_cpu(self):
        batch = next(iter(self.connect(variable=1).replica(0)))
        self.assertEqual(batch["x"].device, "cuda:0")
        self.assertEqual(batch["text"].tolist(), [b"0", b"1", b"2", b""])
        self.assertEqual(batch["tokens"].values.device, "cpu")
        self.assertEqual(batch["tokens"].tolist(), [[], [1], [2, -2], []])
        numpy.testing.assert_array_equal(batch["label"].numpy(), numpy.arange(4))

    def test_each_replica_has_its_gpu(self):
        self.connect(replicas=2)
        for gpus, devices in ((None, ["cuda:0", "cuda:1"]), ([1], ["cuda:1", "cuda:1"])):
            ds = headrace.connect(self.directory, timeout=20, gpus=gpus)
            step = next(iter(ds))
            self.assertEqual([x.device for x in step["x"]], devices)
            del step, ds
            gc.collect()
        with self.assertRaisesRegex(headrace.InvalidArgumentError, "GPUs 0 to 1"):
            headrace.connect(self.directory, timeout=20, gpus=[2])

    def test_pinned_without_a_gpu_is_an_error(self):
        self.connect(memory="Pinned")
        code = (
            "import headrace, sys\n"
            "try: headrace.connect(sys.argv[1])\n"
            "except headrace.NotFoundError as error: print(error)\n"
        )
        environment = {**os.environ, "HEADRACE_LIBCUDA": "/nowhere/libcuda.so.1"}
        other = subprocess.run(
            [sys.executable, "-c", code, self.directory], env=environment, capture_output=True, text=True, timeout=60
        )
        self.assertRegex(other.stdout, "spec.delivery.memory is Pinned, and the trainer's process has no GPU: no CUDA driver")
        self.assertEqual(other.returncode, 0, other.stderr)


if __name__ == "__main__":
    unittest.main()
