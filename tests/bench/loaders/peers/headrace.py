"""Headrace's Python client, for what next() costs there; runs under `headrace run`, which tells it where its loader is."""
import headrace


def next_c(_, batch):
    return ((one["x"].numpy(),) for one in headrace.connect().replica(0))
