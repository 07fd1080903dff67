"""tf.data of TensorFlow: as its guides write it (guide_*), and tuned.

What tuning found: batch inside the interleave, so that few large elements pass from stage to stage; parse whole
batches; give up the order (deterministic=False) where the workload allows it.
"""
import tarfile

import numpy as np
import orjson
import pyarrow.parquet
import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
Dataset = tf.data.Dataset
FEATURES = {"x": tf.io.FixedLenFeature([], tf.string), "y": tf.io.FixedLenFeature([], tf.int64)}
CSV_DEFAULTS = [[0.0]] * 8 + [[0]]


def parse(records):
    parsed = tf.io.parse_example(records, FEATURES)
    return tf.io.decode_raw(parsed["x"], tf.uint8, fixed_length=1024), parsed["y"]


def raw(records):
    return (tf.io.decode_raw(records, tf.uint8, fixed_length=1024),)


def fixed(records):
    return (tf.io.decode_raw(records, tf.uint16, fixed_length=4096),)


def csv(lines):
    *values, label = tf.io.decode_csv(lines, CSV_DEFAULTS)
    return tf.stack(values, axis=1), label


def interleaved(files, reader):
    """All files at once, in any order."""
    dataset = Dataset.from_tensor_slices(files).repeat()
    return dataset.interleave(reader, cycle_length=len(files), num_parallel_calls=AUTOTUNE, deterministic=False)


def delivered(dataset):
    return dataset.prefetch(AUTOTUNE).as_numpy_iterator()


def guide_a(files, batch):
    dataset = Dataset.from_tensor_slices(files).interleave(tf.data.TFRecordDataset, num_parallel_calls=AUTOTUNE)
    return delivered(dataset.shuffle(10000, seed=1).repeat().batch(batch).map(parse, num_parallel_calls=AUTOTUNE))


def batched_a(files, batch):
    dataset = interleaved(files, lambda file: tf.data.TFRecordDataset(file).batch(batch))
    dataset = dataset.unbatch().shuffle(10000, seed=1).batch(batch)
    return delivered(dataset.map(parse, num_parallel_calls=AUTOTUNE, deterministic=False))


def guide_a2(files, batch):
    dataset = tf.data.TFRecordDataset(files).repeat().batch(batch)
    return delivered(dataset.map(raw, num_parallel_calls=AUTOTUNE))


def batched_a2(files, batch):
    return delivered(interleaved(
        files, lambda file: tf.data.TFRecordDataset(file).batch(batch, drop_remainder=True).map(raw)))


def generator_b(files, batch):
    """TensorFlow reads no tar: Python does."""
    def samples():
        while True:
            for file in files:
                with tarfile.open(file) as tar:
                    contents = (tar.extractfile(entry).read() for entry in tar)
                    yield from ((image, int(next(contents))) for image in contents)

    types = tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int32)
    dataset = Dataset.from_generator(samples, output_signature=types)
    return delivered(dataset.map(lambda image, label: (tf.io.decode_jpeg(image, 3), label),
                                 num_parallel_calls=AUTOTUNE).batch(batch))


def guide_c(files, batch):
    dataset = tf.data.FixedLengthRecordDataset(files, 4096).shuffle(10000, seed=1).repeat().batch(batch)
    return delivered(dataset.map(fixed, num_parallel_calls=AUTOTUNE))


def batched_c(files, batch):
    dataset = interleaved(files, lambda file: tf.data.FixedLengthRecordDataset(file, 4096).batch(batch))
    dataset = dataset.unbatch().shuffle(10000, seed=1).batch(batch)
    return delivered(dataset.map(fixed, num_parallel_calls=AUTOTUNE, deterministic=False))


def guide_d(files, batch):
    dataset = Dataset.from_tensor_slices(files).interleave(
        lambda file: tf.data.TextLineDataset(file).skip(1), cycle_length=len(files), block_length=batch)
    return delivered(dataset.repeat().batch(batch).map(csv, num_parallel_calls=AUTOTUNE))


def batched_d(files, batch):
    return delivered(interleaved(
        files, lambda file: tf.data.TextLineDataset(file).skip(1).batch(batch, drop_remainder=True).map(csv)))


def orjson_e(files, batch):
    """TensorFlow parses no JSON: orjson does, of the lines that tf.data read."""
    for (lines,) in delivered(interleaved(
            files, lambda file: tf.data.TextLineDataset(file).batch(batch, drop_remainder=True).map(lambda x: (x,)))):
        parsed = [orjson.loads(line) for line in lines]
        yield [line["text"] for line in parsed], [line["label"] for line in parsed]


def generator_f(files, batch):
    """TensorFlow reads no Parquet: pyarrow does. Many batches an element, as each costs a call into Python."""
    def blocks():
        while True:
            for file in files:
                for rows in pyarrow.parquet.ParquetFile(file).iter_batches(64 * batch):
                    *values, labels = (column.to_numpy()[:rows.num_rows // batch * batch] for column in rows.columns)
                    yield np.stack(values, axis=1).reshape(-1, batch, 8), labels.reshape(-1, batch)

    types = tf.TensorSpec((None, batch, 8), tf.float32), tf.TensorSpec((None, batch), tf.int32)
    return delivered(Dataset.from_generator(blocks, output_signature=types).unbatch())
