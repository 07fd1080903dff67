"""SPDL (facebookresearch/spdl)."""
import mmap

import numpy as np
import simplejpeg
from pyarrow import parquet
from spdl.io import iter_tarfile
from spdl.pipeline import PipelineBuilder, SharedMemorySegmentPool, run_pipeline_in_subprocess

from peers import spread

THREADS = 2
AHEAD = 4  # batches
SEGMENTS = 8


def samples(files):
    """(the bytes of a .jpg, its label) by SPDL's tar walker, over and over."""
    while True:
        for file in files:
            with open(file, "rb") as opened:
                whole = memoryview(mmap.mmap(opened.fileno(), 0, prot=mmap.PROT_READ))
            entries = iter_tarfile(whole)
            yield from ((image, int(bytes(label))) for (_, image), (_, label) in zip(entries, entries))


def decode(samples):
    images = np.empty((len(samples), 256, 256, 3), dtype=np.uint8)
    for i, (image, _) in enumerate(samples):
        simplejpeg.decode_jpeg(image, buffer=images[i])
    return images, np.array([label for _, label in samples], dtype=np.int32)


def built(builder):
    pipeline = builder.add_sink(AHEAD).build(num_threads=THREADS)
    with pipeline.auto_stop():
        yield from pipeline


def threads_b(files, batch):
    """simplejpeg, as SPDL's own decoder is FFmpeg's and takes twice as long here."""
    return built(PipelineBuilder().add_source(samples(files)).aggregate(batch).pipe(decode, concurrency=THREADS))


class Numbers:
    """Endless, and may be sent to another process."""

    def __iter__(self):
        i = 0
        while True:
            yield i
            i += 1


class Gather:
    def __init__(self, files, batch):
        self.files, self.batch, self.blocks = files, batch, None

    def __call__(self, i):
        self.blocks = self.blocks or spread.Blocks(self.files, self.batch)
        return self.blocks[i]


def blocks_c(files, batch):
    gather = PipelineBuilder().add_source(Numbers()).pipe(spread.Blocks(files, batch).__getitem__, concurrency=THREADS)
    return built(gather)


def process_c(files, batch):
    """Gathers in a process of its own, and hands batches over in shared memory."""
    config = PipelineBuilder().add_source(Numbers()).pipe(Gather(files, batch), concurrency=1).add_sink(AHEAD)
    arena = SharedMemorySegmentPool(segment_size=batch * spread.RECORD * 2 + 4096, count=SEGMENTS)
    return run_pipeline_in_subprocess(config.get_config(), num_threads=1, arena=arena)


def row_groups(files):
    while True:
        for file in files:
            yield from ((file, group) for group in range(parquet.ParquetFile(file).metadata.num_row_groups))


def read_group(place):
    """float32[rows, 8] and int32[rows] of one row group, by pyarrow."""
    file, group = place
    table = parquet.ParquetFile(file, memory_map=True).read_row_group(group, use_threads=False)
    *values, labels = (column.to_numpy() for column in table.combine_chunks().columns)
    return np.stack(values, axis=1), labels


def row_groups_f(files, batch):
    """pyarrow reads the row groups, SPDL in parallel; cut into batches here."""
    groups = PipelineBuilder().add_source(row_groups(files)).pipe(read_group, concurrency=THREADS)
    return ((values[start:start + batch], labels[start:start + batch]) for values, labels in built(groups)
            for start in range(0, len(labels) - batch + 1, batch))
