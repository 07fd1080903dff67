"""tfrecords, which is TensorFlow's C++ reader of records in a package of its own; the rest is Python."""
import itertools
import random

import numpy as np
from tfrecords.python.io.tf_record import tf_record_iterator

from peers import example

BUFFER = 10000


def records(files):
    return (record for _ in itertools.repeat(None) for file in files for record in tf_record_iterator(file))


def shuffled(values):
    """As tf.data shuffles: each drawn from a full buffer."""
    choose = random.Random(1).randrange
    buffer = list(itertools.islice(values, BUFFER))
    for value in values:
        i = choose(BUFFER)
        yield buffer[i]
        buffer[i] = value


def protobuf_a(files, batch):
    shuffling = shuffled(records(files))
    while True:
        examples = [example.Example.FromString(next(shuffling)).features.feature for _ in range(batch)]
        x = b"".join([one["x"].bytes_list.value[0] for one in examples])
        y = [one["y"].int64_list.value[0] for one in examples]
        yield np.frombuffer(x, dtype=np.uint8).reshape(batch, -1), np.array(y, dtype=np.int64)


def joined_a2(files, batch):
    reading = records(files)
    while True:
        yield (np.frombuffer(b"".join(itertools.islice(reading, batch)), dtype=np.uint8).reshape(batch, -1),)
