"""A worker's and a replica's place among all of the run, as tf.distribute has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from headrace import _native


@dataclass(frozen=True)
class TensorSpec:
    """The type of one component of one replica's batch. ``None`` in ``shape`` is a dimension that can vary.

    Where it is ``ragged``, ``shape[1]`` varies from row to row.
    """

    name: str
    shape: Tuple[Optional[int], ...]
    dtype: str
    ragged: bool = False

    def __repr__(self) -> str:
        ragged = ", ragged=True" if self.ragged else ""
        return f"TensorSpec(name={self.name!r}, shape={self.shape}, dtype={self.dtype!r}{ragged})"


@dataclass(frozen=True)
class InputContext:
    """tf.distribute.InputContext: this worker's place among all workers of the run."""

    num_input_pipelines: int
    input_pipeline_id: int
    num_replicas_in_sync: int
    replicas_per_worker: int
    global_batch_size: int = 0  # 0: the data is not batched

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """``global_batch_size / num_replicas_in_sync``. Raises InvalidArgumentError, a ValueError, if not whole."""
        return _native.per_replica_batch_size(self.num_replicas_in_sync, global_batch_size)


@dataclass(frozen=True)
class ValueContext:
    """tf.distribute's ValueContext: one replica's place among all replicas of the run."""

    num_replicas_in_sync: int
    replica_id_in_sync_group: int
