"""The Python package against the fake loader, in a process of its own that is killed and started again.

$HEADRACE_RING_LOADER is the fake loader's binary; the package is on PYTHONPATH.
"""

import gc
import mmap
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import types
import unittest
from unittest import mock

import numpy

import headrace
from client_case import ClientCase, RingLoader, mappings, pointer


class ClientTest(ClientCase):
    def first_label(self, epoch, step, replica, replicas=1, rows=4):
        return ((epoch * 1000 + step) * replicas + replica) * rows

    # ---- what the data set is

    def test_describes_the_data(self):
        ds = self.connect(replicas=2, num_workers=3, worker_index=1)
        self.assertEqual(
            ds.element_spec,
            {
                "label": headrace.TensorSpec("label", (None,), "int64"),
                "x": headrace.TensorSpec("x", (None, 3), "float32"),
            },
        )
        self.assertIn("TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)", ds.element_spec_string)
        context = ds.input_context
        self.assertEqual(context.num_input_pipelines, 3)
        self.assertEqual(context.input_pipeline_id, 1)
        self.assertEqual(context.num_replicas_in_sync, 6)
        self.assertEqual(context.replicas_per_worker, 2)
        self.assertEqual(context.global_batch_size, 24)
        self.assertEqual(context.get_per_replica_batch_size(24), 4)
        with self.assertRaisesRegex(ValueError, "25 is not divisible by the number of replicas in sync, 6"):
            context.get_per_replica_batch_size(25)
        self.assertEqual(ds.cardinality, 5)
        self.assertEqual(ds.input, "test/fake")
        self.assertEqual(ds.effective_policy, "Data")
        self.assertEqual(ds.warnings, ("made-up data",))
        with self.assertRaisesRegex(headrace.InvalidArgumentError, "replicasPerWorker"):
            ds.replica(2)

    # ---- iterating

    def test_whole_worker_gets_per_replica_batches(self):
        ds = self.connect(replicas=2)
        for epoch in range(3):
            steps = 0
            for per_replica in ds:
                self.assertEqual(len(per_replica.values), 2)
                self.assertIs(per_replica.local_results, per_replica.values)
                labels = per_replica["label"]
                for replica, batch in enumerate(per_replica.values):
                    self.assertEqual((batch.replica, batch.epoch, batch.step, batch.rows), (replica, epoch, steps, 4))
                    first = self.first_label(epoch, steps, replica, replicas=2)
                    numpy.testing.assert_array_equal(labels.values[replica].numpy(), numpy.arange(first, first + 4))
                    numpy.testing.assert_array_equal(
                        batch["x"].numpy(), numpy.arange(first, first + 4)[:, None] + numpy.array([0, 0.25, 0.5])
                    )
                steps += 1
            self.assertEqual(steps, 5)

    def test_batch_is_a_mapping(self):
        ds = self.connect()
        batch = next(iter(ds.replica(0)))
        self.assertEqual(list(batch), ["label", "x"])
        self.assertEqual(len(batch), 2)
        self.assertIn("x", batch)
        self.assertEqual({name: array.shape for name, array in batch.items()}, {"label": (4,), "x": (4, 3)})
        with self.assertRaises(KeyError):
            batch["y"]

    def test_an_iterator_ends_where_its_epoch_is_started_again(self):
        ds = self.connect()
        old = iter(ds)
        next(old)
        ds.load_state_dict(ds.state_dict())
        fresh = iter(ds)  # of the same epoch
        with self.assertRaisesRegex(headrace.InvalidArgumentError, "ended by the newer one, of epoch 0"):
            next(old)
        del fresh

    def test_get_next_raises_at_the_end_and_ever_after(self):
        iterator = iter(self.connect(steps=2).replica(0))
        iterator.get_next()
        iterator.get_next()
        for _ in range(2):
            with self.assertRaises(headrace.OutOfRangeError) as caught:
                iterator.get_next()
            self.assertIsInstance(caught.exception, IndexError)
            self.assertIsInstance(caught.exception, headrace.Error)
            with self.assertRaises(StopIteration):
                next(iterator)
            self.assertFalse(iterator.get_next_as_optional().has_value())

    def test_partial_step_only_as_optional(self):
        ds = self.connect(replicas=2, steps=3, partial_last_step=1)
        self.assertEqual(sum(1 for _ in ds), 2)
        iterator = iter(ds)
        rows = []
        while True:
            optional = iterator.get_next_as_optional()
            if not optional.has_value():
                break
            rows.append(tuple(array.shape for array in optional.get_value()["x"]))
        self.assertEqual(rows, [((4, 3), (4, 3)), ((4, 3), (4, 3)), ((4, 3), (0, 3))])
        with self.assertRaises(ValueError):
            optional.get_value()

    def test_zero_rows_are_arrays_too(self):
        ds = self.connect(replicas=2, steps=1, partial_last_step=1)
        empty = iter(ds).get_next_as_optional().get_value().values[1]
        self.assertEqual(empty.rows, 0)
        self.assertEqual(empty["x"].numpy().shape, (0, 3))
        self.assertEqual(empty["x"].numpy().dtype, numpy.float32)
        self.assertEqual(numpy.from_dlpack(empty["x"]).shape, (0, 3))

    def test_timeout_loses_nothing(self):
        iterator = iter(self.connect(pause_at_step=1).replica(0))
        iterator.get_next(timeout=20)
        with self.assertRaises(TimeoutError):
            iterator.get_next(timeout=0.01)
        self.loader.kill()
        self.loader = RingLoader(self.directory)
        self.assertEqual(iterator.get_next(timeout=20).step, 1)

    def test_one_process_for_each_replica(self):
        ds = self.connect(replicas=2)
        code = (
            "import headrace, sys\n"
            "for batch in headrace.connect(sys.argv[1]).replica(1): print(batch['label'].numpy()[0])\n"
        )
        other = subprocess.Popen(
            [sys.executable, "-c", code, self.directory], stdout=subprocess.PIPE, text=True
        )
        # Together, since the loader goes on only when both have read.
        mine = [int(batch["label"].numpy()[0]) for batch in ds.replica(0)]
        theirs = [int(line) for line in other.communicate(timeout=60)[0].split()]
        self.assertEqual(mine, [self.first_label(0, step, 0, replicas=2) for step in range(5)])
        self.assertEqual(theirs, [self.first_label(0, step, 1, replicas=2) for step in range(5)])

    # ---- zero copy

    def test_numpy_looks_into_the_ring(self):
        batch = next(iter(self.connect().replica(0)))
        path = os.path.join(self.directory, "replica-0.ring")
        ((start, end, offset),) = mappings(path)
        for name in batch:
            for view in (batch[name].numpy(), numpy.asarray(batch[name]), numpy.from_dlpack(batch[name])):
                self.assertFalse(view.flags.owndata)
                self.assertGreaterEqual(pointer(view), start)
                self.assertLessEqual(pointer(view) + view.nbytes, end)
        # A change of the file's bytes shows in the array, and the other way round: they are the same memory.
        x = batch["x"].numpy()
        with open(path, "r+b") as ring, mmap.mmap(ring.fileno(), 0) as memory:
            at = pointer(x) - start + offset
            memory[at : at + 4] = numpy.float32(12.5).tobytes()
            self.assertEqual(x[0, 0], 12.5)
            x[0, 1] = -1
            self.assertEqual(memory[at + 4 : at + 8], numpy.float32(-1).tobytes())

    def test_any_view_keeps_its_slot(self):
        iterator = iter(self.connect(slots=2, steps=-1).replica(0))
        views = {
            "batch": lambda batch: batch,
            "array": lambda batch: batch["label"],
            "numpy": lambda batch: batch["label"].numpy(),
            "slice": lambda batch: batch["label"].numpy()[1:],
            "dlpack": lambda batch: numpy.from_dlpack(batch["label"]),
            "capsule": lambda batch: batch["label"].__dlpack__(),
        }
        for name, take in views.items():
            with self.subTest(name):
                held = [take(iterator.get_next(timeout=20)) for _ in range(2)]
                with self.assertRaisesRegex(headrace.ExhaustedError, "all 2 batches"):
                    iterator.get_next(timeout=20)
                del held
                gc.collect()
                iterator.get_next(timeout=20)

    def test_numpy_iterator_reads_epochs(self):
        replica = self.connect().replica(0)
        for epoch in range(2):
            steps = 0
            for step, arrays in enumerate(replica.as_numpy_iterator()):
                self.assertEqual(list(arrays), ["label", "x"])
                first = self.first_label(epoch, step, 0)
                numpy.testing.assert_array_equal(arrays["label"], numpy.arange(first, first + 4))
                numpy.testing.assert_array_equal(arrays["x"][:, 1], numpy.arange(first, first + 4) + 0.25)
                steps += 1
            self.assertEqual(steps, 5)
            self.assertEqual(replica.state_dict()["epoch"], epoch)

    def test_numpy_iterator_has_every_dtype(self):
        bits = types.SimpleNamespace(bfloat16=numpy.uint16)
        replica = self.connect(all_dtypes=1).replica(0)
        with mock.patch.dict(sys.modules, {"ml_dtypes": bits}):
            arrays = next(replica.as_numpy_iterator())
        numpy.testing.assert_array_equal(arrays["bfloat16"], [0, 0x3F80, 0x4000, 0x4040])
        numpy.testing.assert_array_equal(arrays["bool"], [False, True, False, True])
        for name in "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split():
            self.assertEqual(arrays[name].dtype, numpy.dtype(name))
            numpy.testing.assert_array_equal(arrays[name], numpy.arange(4).astype(name))

    def test_numpy_iterator_looks_into_the_ring_and_gives_slots_back(self):
        replica = self.connect(slots=2, steps=-1).replica(0)
        iterator = replica.as_numpy_iterator()
        self.assertIs(iter(iterator), iterator)
        ((start, end, _),) = mappings(os.path.join(self.directory, "replica-0.ring"))
        held = [next(iterator)["x"] for _ in range(2)]
        for x in held:
            self.assertTrue(start <= pointer(x) and pointer(x) + x.nbytes <= end)
            self.assertTrue(x.flags.writeable)
        with self.assertRaisesRegex(headrace.ExhaustedError, "all 2 batches"):
            next(iterator)
        del held, x
        self.assertEqual(next(iterator)["label"][0], self.first_label(0, 2, 0))
        self.assertEqual(replica.state_dict()["step"], 3)

    def test_numpy_iterator_stays_at_the_end(self):
        iterator = self.connect(steps=2).replica(0).as_numpy_iterator()
        self.assertEqual(len(list(iterator)), 2)
        for _ in range(2):
            with self.assertRaises(StopIteration):
                next(iterator)

    def test_numpy_iterator_raises_what_the_loader_says(self):
        replica = self.connect(fail_at_step=1, error="Corrupt: a.tfrecord: offset 88: bad checksum").replica(0)
        iterator = replica.as_numpy_iterator()
        next(iterator)
        with self.assertRaisesRegex(headrace.CorruptError, "offset 88"):
            next(iterator)

    def test_views_outlive_everything_else(self):
        ds = self.connect()
        iterator = iter(ds.replica(0))
        label = next(iterator)["label"].numpy()
        del ds, iterator
        gc.collect()
        self.loader.kill()
        self.loader = None
        numpy.testing.assert_array_equal(label, [0, 1, 2, 3])

    def test_every_dtype(self):
        batch = next(iter(self.connect(all_dtypes=1).replica(0)))
        plain = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64".split()
        for name in plain:
            array = batch[name].numpy()
            self.assertEqual(array.dtype, numpy.dtype(name))
            numpy.testing.assert_array_equal(array, numpy.arange(4).astype(name))
            self.assertEqual(pointer(numpy.from_dlpack(batch[name])), pointer(array))
        numpy.testing.assert_array_equal(batch["bool"].numpy(), [False, True, False, True])
        self.assertEqual(batch["bool"].numpy().dtype, numpy.bool_)
        self.assertEqual(batch["bfloat16"].dtype, "bfloat16")
        with mock.patch.dict(sys.modules, {"ml_dtypes": None}):
            with self.assertRaisesRegex(TypeError, "ml_dtypes"):
                batch["bfloat16"].numpy()
        bits = types.SimpleNamespace(bfloat16=numpy.uint16)
        with mock.patch.dict(sys.modules, {"ml_dtypes": bits}):
            numpy.testing.assert_array_equal(batch["bfloat16"].numpy(), [0, 0x3F80, 0x4000, 0x4040])

    def test_array_protocol(self):
        x = next(iter(self.connect().replica(0)))["x"]
        self.assertEqual(numpy.asarray(x, dtype="float64").dtype, numpy.float64)
        self.assertNotEqual(pointer(numpy.array(x)), pointer(x.numpy()))
        self.assertEqual(x.__dlpack_device__(), (1, 0))
        self.assertEqual((x.name, x.dtype, x.shape, x.ndim, x.nbytes, len(x)), ("x", "float32", (4, 3), 2, 48, 4))
        with self.assertRaises(BufferError):
            x.__dlpack__(copy=True)
        with self.assertRaises(BufferError):
            x.__dlpack__(dl_device=(2, 0))

    def test_torch_and_jax_if_installed(self):
        batch = next(iter(self.connect(all_dtypes=1).replica(0)))
        for name in ("torch", "jax"):
            try:
                __import__(name)
            except ImportError:
                continue
            if name == "jax":
                sys.modules["jax"].config.update("jax_enable_x64", True)
            for component in batch:
                with self.subTest(f"{name} {component}"):
                    array = getattr(batch[component], name)()
                    self.assertEqual(tuple(array.shape), batch[component].shape)
                    self.assertIn(batch[component].dtype, str(array.dtype))
                    at = array.data_ptr() if name == "torch" else array.unsafe_buffer_pointer()
                    self.assertEqual(at, pointer(numpy.asarray(batch[component]._buffer)))

    def test_imports_no_framework(self):
        self.loader = RingLoader(self.directory)
        code = (
            "import headrace, sys\n"
            "for batch in headrace.connect(sys.argv[1]).replica(0): batch['x'].shape\n"
            "print([m for m in ('numpy', 'torch', 'jax', 'tensorflow') if m in sys.modules])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, self.directory], stdout=subprocess.PIPE, text=True, check=True, timeout=60
        )
        self.assertEqual(done.stdout, "[]\n")

    # ---- docs/client.md

    def doc_blocks(self, language):
        with open(os.environ["HEADRACE_CLIENT_DOC"]) as doc:
            blocks = re.findall(rf"^```{language}\n(.*?)^```", doc.read(), re.M | re.S)
        self.assertTrue(blocks)
        return "\n".join(blocks)

    def test_python_of_the_docs_runs(self):
        # The whole-worker loop of the docs goes on after the first example's epochs.
        self.loader = RingLoader(self.directory, variable=1)
        environment = {**os.environ, "HEADRACE_DIR": self.directory, "LOCAL_RANK": "0"}
        done = subprocess.run(
            [sys.executable, "-c", self.doc_blocks("python")], env=environment, stdout=subprocess.PIPE, text=True,
            check=True, timeout=60,
        )
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "0 0 4 (4, 3)")
        self.assertEqual(lines[14], "2 4 4 (4, 3)")
        self.assertEqual(len(lines), 35)
        # Epoch 4, step 0: the labels are from 16000 on.
        self.assertEqual(lines[20], "b'16001' [b'16000', b'16001', b'16002', b'']")
        self.assertEqual(lines[21], "[ 16002 -16002] [ 16001  16002 -16002] [0 0 1 3 3]")
        self.assertEqual(lines[22], "(4, 4)")

    def test_c_of_the_docs_compiles_and_runs(self):
        self.loader = RingLoader(self.directory)
        library = os.environ["HEADRACE_LIBRARY_DIR"]
        with tempfile.TemporaryDirectory() as scratch:
            binary = os.path.join(scratch, "example")
            subprocess.run(
                ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-I", os.environ["HEADRACE_INCLUDE_DIR"], "-x", "c", "-"]
                + ["-o", binary, f"-L{library}", "-lheadrace", f"-Wl,-rpath,{library}"],
                input=self.doc_blocks("c"), text=True, check=True,
            )
            environment = {**os.environ, "HEADRACE_DIR": self.directory}
            done = subprocess.run(
                [binary], env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=60
            )
        self.assertEqual([line.split(" at ")[0] for line in done.stdout.splitlines()], ["label: 32 bytes"] * 5)

    # ---- failures

    def test_no_run_directory(self):
        with self.assertRaisesRegex(headrace.NotFoundError, "headrace.dev/input"):
            headrace.connect(self.directory + "/none")

    def test_directory_from_the_environment(self):
        self.loader = RingLoader(self.directory)
        with mock.patch.dict(os.environ, {"HEADRACE_DIR": self.directory}):
            self.assertEqual(headrace.connect().input, "test/fake")

    def test_loaders_error_has_its_class(self):
        with self.assertRaisesRegex(headrace.NotFoundError, r"^spec.source.files.paths\[0\]: no file$") as caught:
            self.connect(error="NotFound: spec.source.files.paths[0]: no file")
        self.assertEqual(caught.exception.code, "NotFound")

    def test_failure_comes_after_the_batches_before_it(self):
        ds = self.connect(fail_at_step=2, error="Corrupt: a.tfrecord: offset 88: bad checksum")
        steps = []
        with self.assertRaisesRegex(headrace.CorruptError, "offset 88"):
            for batch in ds.replica(0):
                steps.append(batch.step)
        self.assertEqual(steps, [0, 1])

    def test_killed_loader_comes_back(self):
        ds = self.connect(replicas=2, steps=100)
        labels = []
        for step, per_replica in enumerate(ds):
            if step % 20 == 10:
                self.loader.kill()
                self.loader = RingLoader(self.directory, replicas=2, steps=100)
            labels.append([int(array.numpy()[0]) for array in per_replica["label"]])
        self.assertEqual(labels, [[self.first_label(0, s, r, replicas=2) for r in range(2)] for s in range(100)])

    def test_loader_that_stays_away(self):
        os.environ["HEADRACE_LOADER_TIMEOUT"] = "0.2"
        self.loader = RingLoader(self.directory, pause_at_step=1)
        iterator = iter(headrace.connect(self.directory, timeout=20).replica(0))
        next(iterator)
        self.loader.kill()
        self.loader = None
        with self.assertRaisesRegex(headrace.UnavailableError, "has not come back within 0.2 s"):
            next(iterator)

    def test_killed_trainer_leaves_its_batches_to_the_next(self):
        ds = self.connect(steps=-1)
        code = (
            "import headrace, sys\n"
            "for batch in headrace.connect(sys.argv[1]).replica(0): print(batch.step, flush=True)\n"
        )
        trainer = subprocess.Popen([sys.executable, "-c", code, self.directory], stdout=subprocess.PIPE, text=True)
        while int(trainer.stdout.readline()) < 20:
            pass
        trainer.kill()
        trainer.wait()
        trainer.stdout.close()
        iterator = iter(ds.replica(0))
        for step in range(10):
            batch = iterator.get_next(timeout=20)
            self.assertEqual((batch.epoch, batch.step), (1, step))
            self.assertEqual(batch["label"].numpy()[0], self.first_label(1, step, 0))

    def test_interrupt_ends_a_wait(self):
        iterator = iter(self.connect(pause_at_step=0).replica(0))
        # Sent before or while next() waits: either way it is raised here and soon.
        sender = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            sender.start()
            next(iterator)
        sender.join()

    def test_interrupt_ends_a_connect(self):
        sender = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            sender.start()
            headrace.connect(self.directory, timeout=600)
        sender.join()

    def test_other_threads_run_while_one_waits(self):
        iterator = iter(self.connect(pause_at_step=0).replica(0))
        result = []

        def wait():
            try:
                iterator.get_next(timeout=1)
            except headrace.TimedOutError:
                result.append("timed out")

        waiter = threading.Thread(target=wait)
        waiter.start()
        turns = 0
        while waiter.is_alive():
            turns += 1
        waiter.join()
        self.assertEqual(result, ["timed out"])
        self.assertGreater(turns, 100)


if __name__ == "__main__":
    unittest.main()
