"""Trainers in torch and in JAX that take batches on a real GPU. Skipped, with what is missing, where there is no GPU or
no such framework.

$HEADRACE_RING_LOADER is the fake loader's binary: row i of step k has label 4 k + i, and x is made of the label.
"""

import importlib
import unittest

from client_case import ClientCase

STEPS = 50


def needs(package):
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise unittest.SkipTest(f"the package {package} is missing here: {error}") from error


class GpuTrainers(ClientCase):
    def batches(self):
        ds = self.connect(steps=STEPS)
        if ds.memory == "Host":
            self.skipTest(f"no GPU here: {ds.memory_reason}")
        return ds.replica(0)

    def test_torch(self):
        torch = needs("torch")
        if not torch.cuda.is_available():
            self.skipTest("this torch has no CUDA, or sees no GPU")
        weight = torch.zeros(3, device="cuda", requires_grad=True)
        for step, batch in enumerate(self.batches()):
            x, label = batch["x"].torch(), batch["label"].torch()
            self.assertEqual((x.device.type, label.device.type), ("cuda", "cuda"))
            (x.float() @ weight - label.float()).square().mean().backward()
            self.assertEqual(label.tolist(), list(range(4 * step, 4 * step + 4)))
            torch.testing.assert_close(x.cpu(), label.cpu()[:, None] + torch.tensor([0, 0.25, 0.5]))
        self.assertEqual(step, STEPS - 1)
        self.assertTrue(torch.isfinite(weight.grad).all())

    def test_jax(self):
        jax = needs("jax")
        if jax.default_backend() != "gpu":
            self.skipTest(f"this JAX runs on {jax.default_backend()}")
        loss = jax.jit(jax.grad(lambda weight, x, label: ((x @ weight - label) ** 2).mean()))
        weight = jax.numpy.zeros(3)
        for step, batch in enumerate(self.batches()):
            x, label = batch["x"].jax(), batch["label"].jax()
            self.assertEqual(next(iter(x.devices())).platform, "gpu")
            gradient = loss(weight, x, label)
            self.assertEqual(label.tolist(), list(range(4 * step, 4 * step + 4)))
        self.assertEqual(step, STEPS - 1)
        self.assertTrue(jax.numpy.isfinite(gradient).all())


if __name__ == "__main__":
    unittest.main(verbosity=2)
