"""Headrace's client: batches of a distributed input, straight from the loader's shared memory.

    import headrace

    ds = headrace.connect()
    for batch in ds.replica(local_rank):     # or, one process for the whole worker: for per_replica in ds
        x = batch["x"].torch()               # .numpy(), .jax(), DLPack: no copy

No framework is imported unless asked for.
"""

from headrace import _native
from headrace.array import Array
from headrace.context import InputContext, TensorSpec, ValueContext
from headrace.dataset import (
    Batch,
    DistributedDataset,
    DistributedIterator,
    OptionalStep,
    PerReplica,
    ReplicaDataset,
    ReplicaIterator,
    connect,
)
from headrace.errors import (
    CancelledError,
    ConflictError,
    CorruptError,
    Error,
    ExhaustedError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    TimedOutError,
    UnavailableError,
)
from headrace.function import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, serve
from headrace.ragged import Ragged, Strings

__version__ = _native.version()

__all__ = [
    "Array",
    "Batch",
    "CancelledError",
    "ConflictError",
    "CorruptError",
    "Dataset",
    "DistributedDataset",
    "DistributedIterator",
    "Error",
    "ExhaustedError",
    "INFINITE_CARDINALITY",
    "InputContext",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OptionalStep",
    "OutOfRangeError",
    "PerReplica",
    "Ragged",
    "ReplicaDataset",
    "ReplicaIterator",
    "Strings",
    "TensorSpec",
    "TimedOutError",
    "UNKNOWN_CARDINALITY",
    "UnavailableError",
    "ValueContext",
    "connect",
    "serve",
]
