"""Headrace's Python client, for what next() costs there; runs under `headrace run`, which tells it where its loader is."""
import headrace


def next_c(_, batch):
    return headrace.connect().replica(0).as_numpy_iterator()
