"""The table of what is compared: workloads, the peers of each, and what is asked of Headrace."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    name: str
    function: str  # MODULE:FUNCTION below peers/
    loader: bool = True  # False: reads files and makes no batches; told, but not what Headrace is compared with


@dataclass(frozen=True)
class Goal:
    """Of a ratio: at least `share`, or for what should be small at most."""
    share: float
    at_most: bool = False

    def __str__(self):
        return f"{'<=' if self.at_most else '>='} {self.share:g}"


@dataclass(frozen=True)
class Workload:
    title: str
    data: str  # of data.py
    batch: int
    peers: tuple
    limit: str  # a figure of floors.py: GB/s, which a core that is busy is held to, or images/s
    of_best: Goal = None
    of_limit: Goal = None
    cpu_of_best: Goal = None
    memory_of_best: Goal = None
    on_one_core: Goal = None  # of the rate, with the loader limited to one core, of that without
    pause_ms: float = 0  # what the trainer does between two steps; not 0: next() is measured and not the rate


FIRST_BATCH_MS = 200  # asked of a million records on a local disk
NEXT_C_US = 1
NEXT_PYTHON_US = 10
NEXT_P99_OF_MEDIAN = Goal(5, at_most=True)

PARQUET_PEERS = (
    Peer("tf.data, from_generator", "tf_data:generator_f"),
    Peer("pyarrow dataset", "arrow:dataset_f"),
    Peer("spdl + pyarrow row groups", "spdl:row_groups_f"),
    Peer("polars scan_parquet", "polars:scan_f", loader=False),
)

WORKLOADS = {
    "a": Workload(
        "TFRecord of tf.train.Example {x: bytes[1024], y: int64}, CRC checked, shuffle buffer 10,000, batch 256",
        "a", 256, (
            Peer("tf.data, by its guide", "tf_data:guide_a"),
            Peer("tf.data, batched reads", "tf_data:batched_a"),
            Peer("tfrecords + protobuf", "tfrecords:protobuf_a"),
            Peer("grain, 2 processes, no CRC", "grain:processes_a"),
        ), "memcpy_1GiB", of_best=Goal(8), cpu_of_best=Goal(0.1, at_most=True),
        memory_of_best=Goal(0.33, at_most=True)),
    "a2": Workload(
        "TFRecord of raw 1 KiB, CRC checked, in order, batch 256", "a2", 256, (
            Peer("tf.data, by its guide", "tf_data:guide_a2"),
            Peer("tf.data, batched reads", "tf_data:batched_a2"),
            Peer("tfrecords", "tfrecords:joined_a2"),
        ), "memcpy_1GiB", of_best=Goal(4), of_limit=Goal(0.4)),
    "b": Workload(
        "WebDataset tar of 256x256 JPEG, decoded to uint8, batch 32", "b", 32, (
            Peer("tf.data, from_generator", "tf_data:generator_b"),
            Peer("mlx-data", "mlx:threads_b"),
            Peer("grain + simplejpeg", "grain:threads_b"),
            Peer("spdl + simplejpeg", "spdl:threads_b"),
            Peer("webdataset + simplejpeg", "webdataset:simplejpeg_b"),
        ), "jpeg_2_threads", of_best=Goal(1), of_limit=Goal(0.95), on_one_core=Goal(0.5)),
    "c": Workload(
        "fixed 4 KiB records, global shuffle (tf.data: buffer 10,000), batch 256", "c", 256, (
            Peer("tf.data, by its guide", "tf_data:guide_c"),
            Peer("tf.data, batched reads", "tf_data:batched_c"),
            Peer("grain, block source", "grain:blocks_c"),
            Peer("mlx-data, block source", "mlx:blocks_c"),
            Peer("spdl, subprocess + shm", "spdl:process_c"),
        ), "page_cache_4KiB_random", of_best=Goal(1.3)),
    "c2": Workload(
        "fixed 4 KiB records, in order, batch 256", "c", 256, (), "page_cache_1MiB", of_limit=Goal(0.7)),
    "d": Workload(
        "CSV, 8 floats and a label, batch 1,024 as float32[.,8]", "d", 1024, (
            Peer("tf.data, by its guide", "tf_data:guide_d"),
            Peer("tf.data, batched reads", "tf_data:batched_d"),
            Peer("pyarrow dataset", "arrow:dataset_d"),
            Peer("polars scan_csv", "polars:scan_d"),
        ), "page_cache_1MiB", of_best=Goal(1.2), on_one_core=Goal(0.5)),
    "e": Workload(
        "JSON lines, 512-byte text and a label, batch 256", "e", 256, (
            Peer("tf.data + orjson", "tf_data:orjson_e"),
            Peer("pyarrow dataset", "arrow:dataset_e"),
            Peer("orjson, a loop", "jsonlines:orjson_e"),
        ), "page_cache_1MiB", of_best=Goal(1.5), on_one_core=Goal(0.5)),
    "f": Workload(
        "Parquet, the columns of d, batch 1,024", "f", 1024, PARQUET_PEERS, "page_cache_1MiB", of_best=Goal(1.2)),
    "f2": Workload(
        "Parquet as pyarrow writes it (Snappy, dictionaries), batch 1,024", "f2", 1024, PARQUET_PEERS,
        "page_cache_1MiB"),
    "next": Workload(
        "a ready next(), batch of 32 KiB, the trainer sleeps 4 ms between two", "c", 8, (
            Peer("tf.data, by its guide", "tf_data:guide_c"),
            Peer("grain, block source", "grain:blocks_c"),
            Peer("mlx-data, block source", "mlx:blocks_c"),
            Peer("spdl, block source", "spdl:blocks_c"),
        ), None, pause_ms=4),
}
