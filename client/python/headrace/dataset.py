"""Data sets as tf.distribute has them: iterators over steps, one batch for each replica."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Callable, Dict, Generic, Iterator, Optional, Sequence, Tuple, TypeVar, Union

from headrace import _native, _numpy
from headrace.array import Array
from headrace.context import InputContext, TensorSpec, ValueContext
from headrace.errors import InvalidArgumentError, OutOfRangeError
from headrace.ragged import Ragged, Strings, tensor_of

T = TypeVar("T")
_WHOLE_WORKER = -1


class Batch(Mapping):
    """One replica's batch of one step: component names to tensors, in the ring or on the GPU.

    A tensor is an Array, or Strings or Ragged where its rows differ in length.

    ``rows`` is the number of records, 0 where the replica has no data in this step. Drop the batch, and the arrays and
    views taken of it, to give its memory back to the loader.
    """

    __slots__ = ("_batch", "_index")

    def __init__(self, batch: _native.Batch, index: Dict[str, int]) -> None:
        self._batch = batch
        self._index = index

    def __getitem__(self, name: str) -> Union[Array, Strings, Ragged]:
        return tensor_of(self._batch.buffer(self._index[name]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def rows(self) -> int:
        return self._batch.rows

    @property
    def replica(self) -> int:
        return self._batch.replica

    @property
    def epoch(self) -> int:
        return self._batch.epoch

    @property
    def step(self) -> int:
        return self._batch.step

    def __repr__(self) -> str:
        return f"headrace.Batch(replica={self.replica}, epoch={self.epoch}, step={self.step}, rows={self.rows})"


class PerReplica(Generic[T]):
    """A value for each replica of this worker. ``per_replica["x"]`` is the component x of each."""

    __slots__ = ("values",)

    values: Tuple[T, ...]

    def __init__(self, values: Sequence[T]) -> None:
        self.values = tuple(values)

    @property
    def local_results(self) -> Tuple[T, ...]:
        """As tf.distribute's strategy.experimental_local_results()."""
        return self.values

    def __getitem__(self, name: str) -> PerReplica[Any]:
        return PerReplica([value[name] for value in self.values])  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[T]:
        return iter(self.values)

    def __repr__(self) -> str:
        return f"headrace.PerReplica({list(self.values)})"


class OptionalStep(Generic[T]):
    """What ``get_next_as_optional()`` returns: a step, or none at the end of the epoch."""

    __slots__ = ("_step",)

    def __init__(self, step: Optional[T]) -> None:
        self._step = step

    def has_value(self) -> bool:
        return self._step is not None

    def get_value(self) -> T:
        if self._step is None:
            raise ValueError("the optional has no value: the epoch is over")
        return self._step


class _StepIterator(Generic[T]):
    """Iterator over the steps of one epoch. One thread at a time may use it."""

    def __init__(self, iterator: _native.Iterator, dataset: DistributedDataset) -> None:
        self._iterator = iterator
        self._dataset = dataset
        self._index = dataset._index

    @property
    def element_spec(self) -> Dict[str, TensorSpec]:
        """The type of one replica's batch, by component."""
        return self._dataset.element_spec

    def state_dict(self) -> Dict[str, Any]:
        """Where the next step is: a few numbers, for ``load_state_dict()`` of this run's data sets or of a later run's."""
        return self._dataset._state(self._iterator.position())

    def _wrap(self, step: Tuple[_native.Batch, ...]) -> T:
        raise NotImplementedError

    def _next(self, as_optional: bool, timeout: Optional[float]) -> Optional[T]:
        step = self._iterator.next(as_optional, -1 if timeout is None else int(timeout * 1000))
        return None if step is None else self._wrap(step)

    def __iter__(self) -> _StepIterator[T]:
        return self

    def __next__(self) -> T:
        step = self._iterator.next(False, -1)
        if step is None:
            raise StopIteration
        return self._wrap(step)

    def get_next(self, timeout: Optional[float] = None) -> T:
        """The next step. Raises OutOfRangeError at the end; TimedOutError after ``timeout`` seconds, with nothing lost."""
        step = self._next(False, timeout)
        if step is None:
            raise OutOfRangeError("the epoch is over: start the next one with iter()")
        return step

    def get_next_as_optional(self, timeout: Optional[float] = None) -> OptionalStep[T]:
        """The next step, or an optional without a value at the end.

        Also delivers, as TensorFlow's, a last step that not all replicas of the only worker have data for, before which
        ``next()`` ends where all shapes are static; replicas without data get batches of zero rows.
        """
        return OptionalStep(self._next(True, timeout))


class ReplicaIterator(_StepIterator[Batch]):
    def _wrap(self, step: Tuple[_native.Batch, ...]) -> Batch:
        return Batch(step[0], self._index)


class DistributedIterator(_StepIterator[PerReplica[Batch]]):
    def _wrap(self, step: Tuple[_native.Batch, ...]) -> PerReplica[Batch]:
        return PerReplica([Batch(batch, self._index) for batch in step])


class _Epochs:
    """Starts a data set's iterators, and knows where the newest one is."""

    def __init__(self, dataset: DistributedDataset, replica: int) -> None:
        self._dataset = dataset
        self._replica = replica
        self._newest: Optional[_native.Iterator] = None
        self._start: Optional[Tuple[int, int, int]] = None

    def start(self, make: Callable[[_native.Iterator, DistributedDataset], T]) -> T:
        start, self._start = self._start, None
        self._newest = self._dataset._native.iterate(self._replica, start)
        return make(self._newest, self._dataset)

    def state_dict(self) -> Dict[str, Any]:
        if self._start is not None or self._newest is None:
            return self._dataset._state(self._start or (0, 0, 0))
        return self._dataset._state(self._newest.position())

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._start = self._dataset._position(state)


class ReplicaDataset:
    """The batches of one replica, for a process that trains on one device. Each ``iter()`` starts an epoch."""

    def __init__(self, dataset: DistributedDataset, replica: int) -> None:
        self._dataset = dataset
        self._epochs = _Epochs(dataset, replica)

    @property
    def element_spec(self) -> Dict[str, TensorSpec]:
        """The type of the replica's batch, by component."""
        return self._dataset.element_spec

    def state_dict(self) -> Dict[str, Any]:
        """Where the newest iterator's next step is, or the next epoch's first before there is one."""
        return self._epochs.state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """The next ``iter()`` starts where ``state`` was taken. Raises InvalidArgumentError if it is of other data."""
        self._epochs.load_state_dict(state)

    def __iter__(self) -> ReplicaIterator:
        return self._epochs.start(ReplicaIterator)

    def as_numpy_iterator(self) -> Iterator[Dict[str, Any]]:
        """As iter(), and each batch is a dict of what its tensors' ``numpy()`` gives: the cheapest way to numpy arrays.

        As tf.data's as_numpy_iterator(). Arrays look into the ring and copy nothing; drop them to give the batch's memory
        back. Strings and what lies on a GPU are copies; ragged numbers, which numpy lacks, stay Ragged.
        """

        def convert(buffer: _native.Buffer) -> Any:
            tensor = tensor_of(buffer)
            return tensor if isinstance(tensor, Ragged) else tensor.numpy()

        specs = self._dataset._specs
        in_host_memory = self._dataset.memory == "Host"
        dtypes = tuple(
            _numpy.dtype(spec.dtype) if in_host_memory and _numpy_has(spec) else None for spec in specs.values()
        )
        arguments = (tuple(specs), dtypes, _numpy.arrays(), convert)
        return self._epochs.start(lambda iterator, _: _native.NumpyIterator(iterator, *arguments))


def _numpy_has(spec: TensorSpec) -> bool:
    return not spec.ragged and spec.dtype not in ("string", "bfloat16")


class DistributedDataset:
    """What this pod's loader serves. Each ``iter()`` starts an epoch and yields steps for all replicas of the worker.

    A process that trains on one device uses ``replica(i)`` instead. A replica has one reader, and one iterator at a time.
    """

    def __init__(self, native: _native.Dataset) -> None:
        self._native = native
        self._specs = {
            name: TensorSpec(name, tuple(None if dim < 0 else dim for dim in shape), dtype, ragged)
            for name, dtype, shape, ragged in native.components()
        }
        self._index = {name: i for i, name in enumerate(self._specs)}
        self._info = native.info()
        self._epochs = _Epochs(self, _WHOLE_WORKER)

    @property
    def element_spec(self) -> Dict[str, TensorSpec]:
        """The type of one replica's batch, by component."""
        return dict(self._specs)

    @property
    def element_spec_string(self) -> str:
        """The element spec as TensorFlow prints it."""
        return self._info["element_spec"]

    @property
    def input_context(self) -> InputContext:
        return InputContext(**self._native.input_context())

    @property
    def cardinality(self) -> int:
        """Global batches in an epoch; -1: endless, -2: unknown."""
        return self._info["cardinality"]

    @property
    def input(self) -> str:
        """The DistributedInput: "namespace/name"."""
        return self._info["input"]

    @property
    def plan_hash(self) -> str:
        return self._info["plan_hash"]

    @property
    def effective_policy(self) -> str:
        """How the data is sharded between workers: "File", "Data", "Off" or "Hint"."""
        return self._info["effective_policy"]

    @property
    def memory(self) -> str:
        """Where tensors lie: "Host", in the ring, "Pinned", brought to the GPU, or "Device", where the loader put them."""
        return self._info["memory"]

    @property
    def memory_reason(self) -> str:
        """Why there."""
        return self._info["memory_reason"]

    @property
    def warnings(self) -> Sequence[str]:
        """The plan's, such as that Auto became Data, and why."""
        return tuple(self._info["warnings"])

    def replica(self, index: int) -> ReplicaDataset:
        """The batches of replica ``index`` of this worker, as a rule the process's local rank."""
        replicas = self._native.input_context()["replicas_per_worker"]
        if not 0 <= index < replicas:
            raise InvalidArgumentError(
                f"replica {index} is not one of this worker's {replicas}: set spec.distribution.replicasPerWorker to the "
                "number of trainer processes"
            )
        return ReplicaDataset(self, index)

    def distribute_values_from_function(self, value_fn: Callable[[ValueContext], T]) -> PerReplica[T]:
        """tf.distribute's experimental_distribute_values_from_function: ``value_fn`` of each replica of this worker."""
        context = self.input_context
        first = context.input_pipeline_id * context.replicas_per_worker
        return PerReplica(
            [value_fn(ValueContext(context.num_replicas_in_sync, first + i)) for i in range(context.replicas_per_worker)]
        )

    def state_dict(self) -> Dict[str, Any]:
        """Where the newest iterator's next step is, or the next epoch's first before there is one.

        A few numbers, the same on every worker at the same step, whatever lies in buffers: save it with the model.
        """
        return self._epochs.state_dict()

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """The next ``iter()`` starts where ``state`` was taken, with exactly the batches that came then.

        Also in another run, of the same plan and number of replicas; InvalidArgumentError if they differ. Iterators after
        that read the epochs after the state's.
        """
        self._epochs.load_state_dict(state)

    def _state(self, position: Tuple[int, int, int]) -> Dict[str, Any]:
        epoch, step, seed = position
        replicas = self.input_context.num_replicas_in_sync
        return {"epoch": epoch, "step": step, "seed": seed, "plan": self.plan_hash, "num_replicas_in_sync": replicas}

    def _position(self, state: Dict[str, Any]) -> Tuple[int, int, int]:
        missing = [name for name in ("epoch", "step", "seed", "plan", "num_replicas_in_sync") if name not in state]
        if missing:
            raise InvalidArgumentError(f"the state has no {missing[0]!r}: it is not one of state_dict()")
        here = self._state((state["epoch"], state["step"], state["seed"]))
        for name in ("plan", "num_replicas_in_sync"):
            if state[name] != here[name]:
                raise InvalidArgumentError(
                    f"the state was taken where {name} was {state[name]!r}, and here it is {here[name]!r}: its step holds "
                    "other records here; train on from the start of an epoch, or with the plan and size of that run"
                )
        return int(state["epoch"]), int(state["step"]), int(state["seed"])

    def __iter__(self) -> DistributedIterator:
        return self._epochs.start(DistributedIterator)


def connect(
    directory: Optional[str] = None,
    *,
    timeout: Optional[float] = None,
    memory: Optional[str] = None,
    gpus: Optional[Sequence[int]] = None,
    device_batches: Optional[int] = None,
) -> DistributedDataset:
    """Connects to the loader of this pod.

    ``directory`` is the run directory; default: $HEADRACE_DIR, else /run/headrace. Waits up to ``timeout`` seconds
    (default: $HEADRACE_LOADER_TIMEOUT, else 60) for the loader to start. An error of the loader itself, such as a path
    that matches no file, is raised as its own class of headrace.Error.

    ``memory`` is "host" for tensors in the ring whatever the input says, or None for spec.delivery.memory: on the GPU
    where that is Device or Pinned, or Auto and there is one. Replica r then has GPU ``gpus[r % len(gpus)]``; by default
    GPU r, modulo the number that the process sees. ``device_batches`` is how many batches of a replica GPU memory is
    there for, those that the trainer holds among them; by default 4.
    """
    import os

    if memory not in (None, "host"):
        raise InvalidArgumentError(f"memory={memory!r}: want 'host', or None for what spec.delivery.memory says")

    path = None if directory is None else os.fspath(directory)
    native = _native.Dataset.connect(
        path,
        -1 if timeout is None else int(timeout * 1000),
        takes_device=memory is None,
        gpus=list(gpus or ()),
        device_batches=device_batches or 0,
    )
    return DistributedDataset(native)
