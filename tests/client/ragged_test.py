"""Strings and ragged tensors in Python, against the fake loader. As python_test.py in all else."""

import gc
import mmap
import os
import subprocess
import sys
import unittest

import numpy

import headrace
from client_case import ClientCase, mappings, pointer


class RaggedTest(ClientCase):
    """The fake loader's second batch has the labels 4, 5, 6, 7; tests/fakes/fake_loader.h says what follows."""

    def batch(self, **options):
        iterator = iter(self.connect(variable=1, **options).replica(0))
        next(iterator)
        return next(iterator)

    def test_element_spec(self):
        spec = self.connect(variable=1).element_spec
        self.assertEqual(spec["text"], headrace.TensorSpec("text", (None,), "string"))
        self.assertEqual(spec["title"], headrace.TensorSpec("title", (), "string"))
        self.assertEqual(spec["boxes"], headrace.TensorSpec("boxes", (None, None, 2), "float32", ragged=True))

    # ---- strings

    def test_strings_are_a_sequence_of_views(self):
        text = self.batch()["text"]
        self.assertIsInstance(text, headrace.Strings)
        self.assertEqual((text.name, text.dtype, text.shape, text.nbytes, len(text)), ("text", "string", (4,), 3, 4))
        self.assertEqual([bytes(view) for view in text], [b"4", b"5", b"6", b""])
        self.assertEqual(bytes(text[-2]), b"6")
        self.assertEqual([bytes(view) for view in text[1:3]], [b"5", b"6"])
        self.assertIn(b"5", text)
        self.assertEqual(str(text[0], "ascii"), "4")
        self.assertEqual(repr(text), "headrace.Strings(name='text', shape=(4,))")
        for i in (4, -5):
            with self.assertRaisesRegex(IndexError, f"row {i} of 4"):
                text[i]

    def test_strings_are_copied_when_asked(self):
        text = self.batch()["text"]
        self.assertEqual(text.tolist(), [b"4", b"5", b"6", b""])
        array = text.numpy()
        self.assertEqual((array.dtype, array.shape), (numpy.dtype(object), (4,)))
        self.assertEqual(array.tolist(), text.tolist())
        numpy.testing.assert_array_equal(numpy.asarray(text), array)
        self.assertEqual(numpy.asarray(text, dtype="S").dtype, numpy.dtype("S1"))

    def test_numpy_iterator_copies_strings_and_keeps_ragged(self):
        iterator = self.connect(variable=1).replica(0).as_numpy_iterator()
        next(iterator)
        arrays = next(iterator)
        self.assertEqual(arrays["text"].tolist(), [b"4", b"5", b"6", b""])
        self.assertEqual(arrays["title"].item(), b"batch 4")
        self.assertIsInstance(arrays["boxes"], headrace.Ragged)
        self.assertEqual(len(arrays["boxes"]), 4)

    def test_one_string_without_a_batch(self):
        title = self.batch()["title"]
        self.assertEqual((title.shape, len(title), bytes(title[0]), title.tolist()), ((), 1, b"batch 4", [b"batch 4"]))
        self.assertEqual(title.numpy().shape, ())
        self.assertEqual(title.numpy().item(), b"batch 4")

    # ---- ragged

    def test_ragged_rows(self):
        tokens = self.batch()["tokens"]
        self.assertIsInstance(tokens, headrace.Ragged)
        self.assertEqual((tokens.name, tokens.dtype, tokens.shape, tokens.nbytes), ("tokens", "int64", (4, None), 24))
        self.assertEqual([row.numpy().tolist() for row in tokens], [[], [5], [6, -6], []])
        self.assertEqual(tokens[-2].shape, (2,))
        self.assertEqual([row.shape for row in tokens[1:3]], [(1,), (2,)])
        self.assertEqual(tokens.tolist(), [[], [5], [6, -6], []])
        numpy.testing.assert_array_equal(tokens.values.numpy(), [5, 6, -6])
        numpy.testing.assert_array_equal(tokens.row_splits.numpy(), [0, 0, 1, 3, 3])
        self.assertEqual(tokens.row_splits.dtype, "int64")
        self.assertEqual(repr(tokens), "headrace.Ragged(name='tokens', shape=(4, None), dtype=int64)")
        with self.assertRaises(IndexError):
            tokens[4]

    def test_ragged_rows_of_vectors(self):
        boxes = self.batch()["boxes"]
        self.assertEqual((boxes.shape, boxes.values.shape), ((4, None, 2), (2, 2)))
        self.assertEqual(boxes.tolist(), [[], [[5.0, -5.0]], [], [[7.0, -7.0]]])
        numpy.testing.assert_array_equal(boxes[3].numpy(), [[7, -7]])
        self.assertEqual(boxes[0].shape, (0, 2))

    def test_padding(self):
        batch = self.batch()
        tokens = batch["tokens"]
        numpy.testing.assert_array_equal(tokens.to_padded(), [[0, 0], [5, 0], [6, -6], [0, 0]])
        self.assertEqual(tokens.to_padded().dtype, numpy.int64)
        numpy.testing.assert_array_equal(
            tokens.to_padded(-1, 3), [[-1, -1, -1], [5, -1, -1], [6, -6, -1], [-1, -1, -1]]
        )
        numpy.testing.assert_array_equal(tokens.to_padded(0, 1), [[0], [5], [6], [0]])
        boxes = batch["boxes"].to_padded(value=9, length=2)
        self.assertEqual(boxes.tolist()[1], [[5, -5], [9, 9]])
        self.assertEqual(boxes.shape, (4, 2, 2))

    def test_batches_without_rows(self):
        ds = self.connect(variable=1, replicas=2, steps=1, partial_last_step=1)
        empty = iter(ds).get_next_as_optional().get_value().values[1]
        self.assertEqual((len(empty["text"]), empty["text"].tolist(), empty["text"].values.shape), (0, [], (0,)))
        self.assertEqual((empty["tokens"].tolist(), empty["boxes"].values.shape), ([], (0, 2)))
        self.assertEqual(empty["tokens"].row_splits.numpy().tolist(), [0])
        self.assertEqual(empty["boxes"].to_padded().shape, (0, 0, 2))

    # ---- zero copy

    def test_views_look_into_the_ring(self):
        batch = self.batch()
        path = os.path.join(self.directory, "replica-0.ring")
        ((start, end, offset),) = mappings(path)
        text, tokens, boxes = batch["text"], batch["tokens"], batch["boxes"]
        for view in (
            numpy.frombuffer(text[0], dtype="uint8"),
            text.values.numpy(),
            text.row_splits.numpy(),
            tokens[2].numpy(),
            tokens.values.numpy(),
            numpy.from_dlpack(tokens.values),
            numpy.from_dlpack(tokens.row_splits),
            numpy.from_dlpack(boxes.values),
            numpy.from_dlpack(boxes[1]),
        ):
            self.assertFalse(view.flags.owndata)
            self.assertGreaterEqual(pointer(view), start)
            self.assertLessEqual(pointer(view) + view.nbytes, end)
        for variable in (text, tokens, boxes):
            self.assertEqual(pointer(variable.values.numpy()) % 64, 0)
            self.assertEqual(pointer(variable.row_splits.numpy()) % 64, 0)
        with open(path, "r+b") as ring, mmap.mmap(ring.fileno(), 0) as memory:
            at = pointer(tokens.values.numpy()) - start + offset
            memory[at : at + 8] = numpy.int64(99).tobytes()
            self.assertEqual(tokens[1].numpy()[0], 99)
            tokens[2].numpy()[0] = 98
            self.assertEqual(memory[at + 8 : at + 16], numpy.int64(98).tobytes())
        self.assertFalse(tokens.row_splits.numpy().flags.writeable)
        with self.assertRaises(TypeError):
            text[0][0] = 0

    def test_any_view_keeps_its_slot(self):
        iterator = iter(self.connect(variable=1, slots=2, steps=-1).replica(0))
        views = {
            "strings": lambda batch: batch["text"],
            "a string": lambda batch: batch["text"][0],
            "bytes of strings": lambda batch: batch["text"].values.numpy(),
            "ragged": lambda batch: batch["tokens"],
            "a row": lambda batch: batch["tokens"][2],
            "a row's numpy": lambda batch: batch["boxes"][1].numpy(),
            "values by DLPack": lambda batch: numpy.from_dlpack(batch["boxes"].values),
            "splits by DLPack": lambda batch: numpy.from_dlpack(batch["tokens"].row_splits),
        }
        for name, take in views.items():
            with self.subTest(name):
                held = [take(iterator.get_next(timeout=20)) for _ in range(2)]
                with self.assertRaisesRegex(headrace.ExhaustedError, "all 2 batches"):
                    iterator.get_next(timeout=20)
                del held
                gc.collect()
                iterator.get_next(timeout=20)
        copies = [(batch["text"].tolist(), batch["tokens"].to_padded()) for batch in (next(iterator), next(iterator))]
        self.assertEqual(len(copies), 2)
        iterator.get_next(timeout=20)

    def test_views_outlive_everything_else(self):
        batch = self.batch()
        string, row = batch["text"][0], batch["boxes"][3].numpy()
        del batch
        gc.collect()
        self.loader.kill()
        self.loader = None
        self.assertEqual(bytes(string), b"4")
        numpy.testing.assert_array_equal(row, [[7, -7]])

    def test_torch_and_jax_if_installed(self):
        tokens = self.batch()["tokens"]
        for name in ("torch", "jax"):
            try:
                __import__(name)
            except ImportError:
                continue
            if name == "jax":
                sys.modules["jax"].config.update("jax_enable_x64", True)
            with self.subTest(name):
                for array in (tokens.values, tokens.row_splits):
                    view = getattr(array, name)()
                    at = view.data_ptr() if name == "torch" else view.unsafe_buffer_pointer()
                    self.assertEqual(at, pointer(numpy.asarray(array._buffer)))

    def test_imports_no_framework(self):
        self.connect(variable=1)
        code = (
            "import headrace, sys\n"
            "for batch in headrace.connect(sys.argv[1]).replica(0):\n"
            "    [batch['text'][0], batch['text'].tolist(), batch['tokens'][2].shape, batch['boxes'].values.shape]\n"
            "print([m for m in ('numpy', 'torch', 'jax', 'tensorflow') if m in sys.modules])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, self.directory], stdout=subprocess.PIPE, text=True, check=True, timeout=60
        )
        self.assertEqual(done.stdout, "[]\n")


if __name__ == "__main__":
    unittest.main()
