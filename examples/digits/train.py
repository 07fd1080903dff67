#!/usr/bin/env python3
"""Softmax regression on handwritten digits, by synchronous data parallelism over workers and replicas.

Each worker computes one gradient for each of its replicas, sums them, and the workers sum theirs over TCP; so every
worker takes the same step with the gradient of the whole global batch. Ends with status 1 if the accuracy on the
held-out digits is too low.

    headrace run -f examples/digits/input.yaml --workers 2 -- python3 examples/digits/train.py
    kubectl apply -f examples/digits/

Environment: MASTER_ADDR and MASTER_PORT, where worker 0 gathers the gradients (as torchrun has them).
"""

import os
import pathlib
import socket
import struct
import sys
import time

import numpy as np

import headrace

EPOCHS = 12
LEARNING_RATE = 1.0
NEEDED_ACCURACY = 0.93
CLASSES = 10
PIXELS = 64


class AllReduce:
    """Sums float64 vectors over all workers: worker 0 gathers and broadcasts. Every wait is bounded."""

    CONNECT_SECONDS = 120  # the other pods may still be pulling their image
    EXCHANGE_SECONDS = 60

    def __init__(self, rank, size):
        self.rank, self.size, self.peers = rank, size, []
        if size == 1:
            return
        host, port = os.environ.get("MASTER_ADDR"), int(os.environ.get("MASTER_PORT", "29500"))
        if not host:
            sys.exit("train.py: MASTER_ADDR is not set: with several workers it must name worker 0's host")
        if rank == 0:
            self._gather_peers(port)
        else:
            self.peers = [self._join(host, port)]

    def _gather_peers(self, port):
        joined = {}
        with socket.create_server(("", port)) as server:
            deadline = time.monotonic() + self.CONNECT_SECONDS
            while len(joined) < self.size - 1:
                server.settimeout(max(0.01, deadline - time.monotonic()))
                try:
                    peer, _ = server.accept()
                    peer.settimeout(self.EXCHANGE_SECONDS)
                    joined[struct.unpack("<q", self._receive(peer, 8))[0]] = peer
                except OSError as error:
                    missing = sorted(set(range(1, self.size)) - set(joined))
                    sys.exit(f"train.py: workers {missing} did not join on port {port} "
                             f"within {self.CONNECT_SECONDS} s: {error}")
        self.peers = [joined[rank] for rank in sorted(joined)]

    def _join(self, host, port):
        deadline = time.monotonic() + self.CONNECT_SECONDS
        while True:
            try:
                peer = socket.create_connection((host, port), timeout=5)
                break
            except OSError as error:  # not listening yet, or its name not in DNS yet
                if time.monotonic() > deadline:
                    sys.exit(f"train.py: worker 0 at {host}:{port} not reached in {self.CONNECT_SECONDS} s: {error}")
                time.sleep(0.2)
        peer.settimeout(self.EXCHANGE_SECONDS)
        peer.sendall(struct.pack("<q", self.rank))
        return peer

    def _receive(self, peer, count):
        data = bytearray()
        while len(data) < count:
            part = peer.recv(count - len(data))
            if not part:
                raise ConnectionError("the connection was closed")
            data += part
        return data

    def sum(self, vector):
        """The sum of all workers' vectors, the same bits on each."""
        if self.size == 1:
            return vector
        try:
            if self.rank == 0:
                total = vector.copy()
                for peer in self.peers:
                    total += np.frombuffer(self._receive(peer, vector.nbytes))
                for peer in self.peers:
                    peer.sendall(total.tobytes())
                return total
            self.peers[0].sendall(vector.tobytes())
            return np.frombuffer(bytes(self._receive(self.peers[0], vector.nbytes)))
        except OSError as error:
            sys.exit(f"train.py: worker {self.rank} lost the others: {error}")


def loss_and_gradient(weights, x, label):
    """Summed over the rows of one replica's batch, which may be none."""
    rows = np.column_stack([x / 16.0, np.ones(len(x))])
    logits = rows @ weights
    logits -= logits.max(axis=1, keepdims=True)
    probability = np.exp(logits)
    probability /= probability.sum(axis=1, keepdims=True)
    index = np.arange(len(x))
    loss = -np.log(probability[index, label]).sum()
    probability[index, label] -= 1
    return loss, rows.T @ probability


def accuracy(weights):
    test = np.load(pathlib.Path(__file__).resolve().parent / "test.npz")
    rows = np.column_stack([test["x"] / 16.0, np.ones(len(test["x"]))])
    return float((np.argmax(rows @ weights, axis=1) == test["label"]).mean())


def main():
    dataset = headrace.connect()
    context = dataset.input_context
    rank, size = context.input_pipeline_id, context.num_input_pipelines
    print(f"worker {rank} of {size}, {context.num_replicas_in_sync} replicas in sync: {dataset.element_spec}")
    reduce = AllReduce(rank, size)
    weights = np.zeros((PIXELS + 1, CLASSES))

    for epoch in range(EPOCHS):
        steps = iter(dataset)
        step = 0
        while True:
            # A worker whose data ended before the others' goes on with nothing, until all have ended.
            values = next(steps, None)
            got, loss, rows, gradient = [], 0.0, 0, np.zeros_like(weights)
            for replica, batch in enumerate(values.values if values is not None else []):
                x, label = batch["x"].numpy(), batch["label"].numpy()
                replica_loss, replica_gradient = loss_and_gradient(weights, x, label)
                loss, rows, gradient = loss + replica_loss, rows + len(x), gradient + replica_gradient
                got.append(f"replica {replica}: {len(x)} rows, labels {' '.join(map(str, label[:6]))} ..")
            mine = np.concatenate([[loss, rows, values is not None], gradient.ravel()])
            total = reduce.sum(mine)
            if total[2] == 0:
                break
            if total[1] > 0:
                weights -= LEARNING_RATE * total[3:].reshape(weights.shape) / total[1]
                print(f"epoch {epoch:2} step {step:2} loss {total[0] / total[1]:.4f} | {' | '.join(got)}")
            step += 1

    reached = accuracy(weights)
    if rank == 0:
        print(f"test accuracy {reached:.4f} on held-out digits (needed: {NEEDED_ACCURACY})")
    return 0 if reached >= NEEDED_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
