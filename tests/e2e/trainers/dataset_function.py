"""A dataset function in its own container: worker w yields 2 + 2 * w batches of its own numbers.

FAIL_AT: the element at which it raises.
"""
import os

import numpy

import headrace


def dataset_fn(ctx):
    batch_size = ctx.get_per_replica_batch_size(4)
    for i in range(2 + 2 * ctx.input_pipeline_id):
        if str(i) == os.environ.get("FAIL_AT"):
            raise ValueError("the disk is on fire")
        yield {"x": numpy.full(batch_size, 10 * ctx.input_pipeline_id + i)}


headrace.serve(dataset_fn)
