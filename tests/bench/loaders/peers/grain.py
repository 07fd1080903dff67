"""Grain (google/grain)."""
import grain as pygrain
import grain.experimental
import simplejpeg

from peers import example, spread, tar_index

THREADS = pygrain.ReadOptions(num_threads=2, prefetch_buffer_size=16)
PROCESSES = pygrain.MultiprocessingOptions(num_workers=2, per_worker_buffer_size=8)


def processes_a(files, batch):
    """Its TFRecord reader, which checks no checksum, in two processes; a window of 10,000 to shuffle in."""
    readers = pygrain.MapDataset.source(files).map(grain.experimental.TFRecordIterDataset)
    dataset = grain.experimental.InterleaveIterDataset(readers, cycle_length=2)
    dataset = grain.experimental.WindowShuffleIterDataset(dataset, window_size=10000, seed=1)
    dataset = grain.experimental.RepeatIterDataset(dataset.map(example.parse))
    return iter(dataset.batch(batch, drop_remainder=True).mp_prefetch(PROCESSES))


def threads_b(files, batch):
    """simplejpeg over an index of the tars that Grain does not make."""
    def decode(sample):
        image, label = sample
        return simplejpeg.decode_jpeg(image), label

    dataset = pygrain.MapDataset.source(tar_index.Samples(files)).map(decode).repeat()
    return iter(dataset.to_iter_dataset(THREADS).batch(batch, drop_remainder=True))


def blocks_c(files, batch):
    dataset = pygrain.MapDataset.source(spread.Blocks(files, batch)).repeat()
    return dataset.to_iter_dataset(THREADS)
