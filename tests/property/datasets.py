"""A case's pipeline as a tf.data.Dataset. The transformations are those of tests/conformance/README.md."""
import itertools
import os

import tensorflow as tf

POLICIES = tf.data.experimental.AutoShardPolicy
SHARD_HINT = tf.data.experimental.SHARD_HINT


def write_files(case, folder):
    """Writes the case's files, the integers as decimal text, and returns their paths."""
    paths = []
    for number, records in enumerate(case["source"]["files"]):
        paths.append(os.path.join(folder, f"file-{number:04}.tfrecord"))
        with tf.io.TFRecordWriter(paths[-1]) as writer:
            for record in records:
                writer.write(str(record).encode())
    return paths


class PipelineBuilder:
    """Builds one worker's data set; `context` is its InputContext where the case uses one."""

    def __init__(self, case, paths, context=None):
        self._case = case
        self._paths = paths
        self._context = context

    def build(self):
        transforms = list(self._case["transforms"])
        dataset = self._source(transforms)
        for step in transforms:
            dataset = getattr(self, "_" + step["op"])(dataset, step)
        if self._case.get("policy"):
            options = tf.data.Options()
            options.experimental_distribute.auto_shard_policy = POLICIES[self._case["policy"]]
            dataset = dataset.with_options(options)
        return dataset

    def _source(self, transforms):
        source = self._case["source"]
        if source["kind"] == "range":
            return tf.data.Dataset.range(source["count"])
        if source["kind"] == "constant":
            return tf.data.Dataset.from_tensors(tuple(source["components"]))
        if source["kind"] == "generator":
            width = source["width"]
            vectors = lambda: (range(i * width, (i + 1) * width) for i in itertools.count())
            return tf.data.Dataset.from_generator(vectors, output_signature=tf.TensorSpec([width], tf.float32))
        files = tf.data.Dataset.from_tensor_slices(tf.constant(self._paths, tf.string))
        for step in self._case.get("file_transforms", []):
            files = getattr(self, "_" + step["op"])(files, step)
        if transforms and transforms[0]["op"] == "interleave":
            step = transforms.pop(0)
            records = files.interleave(tf.data.TFRecordDataset, cycle_length=step["cycle_length"],
                                       block_length=step["block_length"])
        else:
            records = tf.data.TFRecordDataset(files)
        return records.map(lambda text: tf.strings.to_number(text, tf.int64))

    def _batch(self, dataset, step):
        size = step["size"]
        if size == "per_replica":
            size = self._context.get_per_replica_batch_size(self._case["global_batch"])
        return dataset.batch(size, drop_remainder=step["drop_remainder"])

    def _shard(self, dataset, step):
        names = {"SHARD_HINT": SHARD_HINT}
        if self._context is not None:
            names["num_input_pipelines"] = self._context.num_input_pipelines
            names["input_pipeline_id"] = self._context.input_pipeline_id
        value = lambda member: names.get(step[member], step[member])
        return dataset.shard(value("num_shards"), value("index"))

    def _repeat(self, dataset, step):
        return dataset.repeat(step["count"])

    def _take(self, dataset, step):
        return dataset.take(step["count"])

    def _skip(self, dataset, step):
        return dataset.skip(step["count"])

    def _prefetch(self, dataset, step):
        return dataset.prefetch(step["buffer_size"])

    def _enumerate(self, dataset, step):
        return dataset.enumerate()

    def _map_identity(self, dataset, step):
        return dataset.map(identity)


def identity(*components):
    return components if len(components) > 1 else components[0]


def forget_batch_size(dataset):
    """The data set with a map that changes nothing and hides the batch size from tf.distribute, which then cuts each
    batch on its own (the conformance cases named *-per-batch). A static batch dimension must be hidden as well."""

    def hide(*components):
        hidden = [tf.compat.v1.placeholder_with_default(c, [None, *c.shape[1:]]) for c in components]
        return identity(*hidden)

    return dataset.map(hide)
