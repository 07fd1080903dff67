"""Headrace's Python client, for what next() costs there; runs under `headrace run`, which tells it where its loader is."""
import headrace


def next_c(_, batch):
    for one in headrace.connect().replica(0):
        x = one["x"].numpy()
        del one  # x keeps its batch, and no longer than the trainer keeps x
        yield (x,)
        del x
