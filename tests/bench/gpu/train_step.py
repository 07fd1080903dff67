"""The time of a training step whose batches a loader at full load brings, beside the same step on batches that lie in GPU
memory already. One line a figure.

    train_step.py [--device cuda|cpu] [--steps N] [--rounds N] [--small]

Steps of both kinds in turns, so that clocks and heat meet both; the median of the rounds' ratios counts. With the loader the
ring is filled as fast as it is emptied, from files in memory. cpu: batches in host memory; that shows that this program
works, and nothing about GPUs. $HEADRACE_LOADER and $HEADRACE_MAKE_PLAN: tests/client/real_loader.py.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy

sys.path.append(str(Path(__file__).resolve().parents[2] / "client"))
from real_loader import RealLoader  # noqa: E402

RESIDENT = 4  # batches in GPU memory that the step beside is given in turns
WARM_UP = 10


class Convnet:
    """Photographs, cast, scaled and transposed by the loader: by its GPU under Device, by its CPUs else."""

    name = "convnet"

    def __init__(self, small):
        self.side, self.rows, self.records = (32, 4, 64) if small else (224, 256, 4096)
        self.widths = (8, 16) if small else (64, 128, 256, 512)

    def write(self, path):
        random = numpy.random.default_rng(1)
        with open(path, "wb") as file:
            for label in range(self.records):
                image = random.integers(0, 256, self.side * self.side * 3, dtype=numpy.uint8)
                file.write(numpy.int64(label % 10).tobytes() + image.tobytes())

    def spec(self, path):
        maps = (
            {"cast": "float32"},
            {"scales": [0.0171, 0.0175, 0.0174], "offsets": [-2.118, -2.036, -1.804]},
            {"transpose": [2, 0, 1]},
            {"cast": "bfloat16"},
        )
        return {
            "source": {"files": {"format": "FixedLength", "paths": [path]}},
            "features": [
                {"name": "label", "dtype": "int64"},
                {"name": "image", "dtype": "uint8", "shape": [self.side, self.side, 3]},
            ],
            "pipeline": [{"shuffle": {"bufferSize": 1000}}, {"repeat": {}}]
            + [{"map": {"feature": "image", **body}} for body in maps]
            + [{"batch": {"size": self.rows, "dropRemainder": True}}],
        }

    def model(self, torch):
        layers, channels = [], 3
        for width in self.widths:
            for stride in (2, 1, 1):
                layers += [torch.nn.Conv2d(channels, width, 3, stride, 1), torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
                channels = width
        return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, 10))

    def loss(self, torch, model, tensors):
        return torch.nn.functional.cross_entropy(model(tensors["image"]).float(), tensors["label"])


class Transformer:
    """Tokens: little to copy, and little for the loader to do."""

    name = "transformer"

    def __init__(self, small):
        self.length, self.rows, self.records = (16, 2, 64) if small else (1024, 16, 8192)
        self.width, self.layers, self.vocabulary = (16, 1, 100) if small else (512, 6, 32000)

    def write(self, path):
        tokens = numpy.random.default_rng(2).integers(0, self.vocabulary, (self.records, self.length + 1), dtype=numpy.int64)
        tokens.tofile(path)

    def spec(self, path):
        return {
            "source": {"files": {"format": "FixedLength", "paths": [path]}},
            "features": [{"name": "tokens", "dtype": "int64", "shape": [self.length + 1]}],
            "pipeline": [
                {"shuffle": {"bufferSize": 1000}},
                {"repeat": {}},
                {"batch": {"size": self.rows, "dropRemainder": True}},
            ],
        }

    def model(self, torch):
        layer = torch.nn.TransformerEncoderLayer(self.width, 8, 4 * self.width, dropout=0.0, batch_first=True)
        return torch.nn.Sequential(
            torch.nn.Embedding(self.vocabulary, self.width),
            torch.nn.TransformerEncoder(layer, self.layers, enable_nested_tensor=False),
            torch.nn.Linear(self.width, self.vocabulary),
        )

    def loss(self, torch, model, tensors):
        tokens = tensors["tokens"]
        guesses = model(tokens[:, :-1]).float()
        return torch.nn.functional.cross_entropy(guesses.flatten(0, 1), tokens[:, 1:].flatten())


class Training:
    def __init__(self, torch, workload, device):
        self.torch, self.workload = torch, workload
        self.model = workload.model(torch).to(device, torch.bfloat16)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)
        self.synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None

    def step(self, tensors):
        self.optimizer.zero_grad(set_to_none=True)
        self.workload.loss(self.torch, self.model, tensors).backward()
        self.optimizer.step()

    def seconds(self, batches, steps):
        """Of one step, each on the next of `batches`."""
        self.synchronize()
        start = time.perf_counter()
        for _ in range(steps):
            self.step(next(batches))
        self.synchronize()
        return (time.perf_counter() - start) / steps


def views(iterator):
    """The tensors of batch after batch; none is kept."""
    for batch in iterator:
        yield {name: array.torch() for name, array in batch.items()}


def in_turns(items):
    while True:
        yield from items


def measure(torch, workload, path, memory, options):
    import headrace

    spec = {**workload.spec(path), "delivery": {"memory": memory}}
    with RealLoader(spec) as loader:
        ds = headrace.connect(loader.directory, timeout=60, memory="host" if memory == "Host" else None)
        if ds.memory != memory:
            raise SystemExit(f"train_step.py: wanted {memory}, and got {ds.memory_reason}")
        delivered = views(iter(ds.replica(0)))
        copies = [{name: tensor.clone() for name, tensor in next(delivered).items()} for _ in range(RESIDENT)]
        resident = in_turns(copies)
        training = Training(torch, workload, options.device)
        for batches in (resident, delivered):
            training.seconds(batches, WARM_UP)
        rounds = [
            (training.seconds(resident, options.steps), training.seconds(delivered, options.steps))
            for _ in range(options.rounds)
        ]
    beside = f"{workload.name}_step_resident_beside_{memory.lower()}"
    print(f"{beside}  {1000 * statistics.median(r for r, _ in rounds):.3f} ms")
    ratio = statistics.median(d / r for r, d in rounds)
    took = 1000 * statistics.median(d for _, d in rounds)
    print(f"{workload.name}_step_{memory.lower()}  {took:.3f} ms  {ratio:.3f} of {beside}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--small", action="store_true", help="models and batches of a size for a CPU")
    options = parser.parse_args()
    try:
        import torch
    except ImportError as error:
        print(f"skipped: the package torch is missing here: {error}")
        return
    if options.device == "cuda" and not torch.cuda.is_available():
        print("skipped: this torch has no CUDA, or sees no GPU")
        return
    os.environ["HEADRACE_LOADER_TIMEOUT"] = "60"
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", dir="/dev/shm") as folder:
        for workload in (Convnet(options.small), Transformer(options.small)):
            path = os.path.join(folder, workload.name)
            workload.write(path)
            for memory in ("Pinned", "Device") if options.device == "cuda" else ("Host",):
                measure(torch, workload, path, memory, options)


if __name__ == "__main__":
    main()
