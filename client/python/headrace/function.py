"""Dataset functions: the user's own generator as the source of an input (spec.source.function).

    import headrace

    def dataset_fn(ctx):
        batch_size = ctx.get_per_replica_batch_size(64)
        for path in sorted(glob.glob("/data/*.npz"))[ctx.input_pipeline_id::ctx.num_input_pipelines]:
            yield from batches_of(path, batch_size)

    headrace.serve(dataset_fn)

As with tf.distribute's distribute_datasets_from_function, what it yields are the replicas' batches, in turn, as they
are: nothing is sharded, batched, shuffled or prefetched behind its back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Callable, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

from headrace import _native
from headrace.context import InputContext, TensorSpec

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2

ElementSpec = Union[TensorSpec, Sequence[TensorSpec]]


class Dataset:
    """What a dataset function may return instead of a bare iterable, to say more of it.

    ``make_iterator`` starts a pass over the elements, once for each epoch. ``element_spec`` declares their types; where
    it is left out they are those of the first element, with any number of rows. ``cardinality`` is the number of
    elements, or INFINITE_CARDINALITY.
    """

    def __init__(
        self,
        make_iterator: Callable[[], Iterable[Any]],
        element_spec: Optional[ElementSpec] = None,
        cardinality: int = UNKNOWN_CARDINALITY,
    ) -> None:
        self._make_iterator = make_iterator
        self.element_spec = element_spec
        self.cardinality = cardinality

    def __iter__(self) -> Iterator[Any]:
        return iter(self._make_iterator())


def _components(element: Any, declared: Sequence[str]) -> List[Tuple[str, Any]]:
    """(name, value) of each component.

    Of a mapping by key, of a named tuple by field; of a tuple, a list or one value as ``declared``, else "0", "1", ...
    and "value".
    """
    if isinstance(element, Mapping):
        return [(str(name), value) for name, value in element.items()]
    if isinstance(element, tuple) and hasattr(element, "_fields"):
        return list(zip(element._fields, element))
    bare = not isinstance(element, (tuple, list))
    values = [element] if bare else element
    if len(declared) == len(values):
        return list(zip(declared, values))
    return [("value" if bare else str(i), value) for i, value in enumerate(values)]


def _array(name: str, value: Any) -> Tuple[str, str, Any]:
    import numpy

    array = numpy.ascontiguousarray(value).reshape(numpy.shape(value))
    if array.dtype.kind not in "biuf" and array.dtype.name != "bfloat16":
        raise TypeError(f'component "{name}" has dtype {array.dtype}: bool, integers and floats can be delivered')
    return name, array.dtype.name, array


def _declared(spec: Optional[ElementSpec]) -> List[Tuple[str, str, List[int]]]:
    specs = [] if spec is None else [spec] if isinstance(spec, TensorSpec) else list(spec)
    for s in specs:
        if s.ragged:
            raise TypeError(f'component "{s.name}" is ragged: a dataset function yields tensors of rows of one length')
    return [(s.name, str(s.dtype), [-1 if dim is None else dim for dim in s.shape]) for s in specs]


class _Server:
    """The two callbacks of the native module."""

    def __init__(self, dataset_fn: Callable[[InputContext], Iterable[Any]], element_spec: Optional[ElementSpec]) -> None:
        self._dataset_fn = dataset_fn
        self._element_spec = element_spec
        self._dataset: Any = None
        self._iterator: Iterator[Any] = iter(())
        self._names: List[str] = []

    def start(self, epoch: int, workers: int, worker: int, replicas: int, replicas_per_worker: int) -> Tuple[Any, int]:
        # A generator can be passed over once: it is made anew for each epoch. A data set is kept, as in TensorFlow.
        if self._dataset is None or iter(self._dataset) is self._dataset:
            self._dataset = self._dataset_fn(InputContext(workers, worker, replicas, replicas_per_worker))
        if self._dataset is None or not hasattr(self._dataset, "__iter__"):
            raise TypeError(f"the dataset function returned {self._dataset!r}: return an iterable of batches, or yield them")
        self._iterator = iter(self._dataset)
        spec = getattr(self._dataset, "element_spec", None)
        cardinality = getattr(self._dataset, "cardinality", UNKNOWN_CARDINALITY)
        declared = _declared(self._element_spec if spec is None else spec)
        self._names = [name for name, _, _ in declared]
        return (
            declared,
            cardinality if isinstance(cardinality, int) else UNKNOWN_CARDINALITY,
        )

    def next(self) -> Optional[List[Tuple[str, str, Any]]]:
        for element in self._iterator:
            return [_array(name, value) for name, value in _components(element, self._names)]
        return None


def serve(
    dataset_fn: Callable[[InputContext], Iterable[Any]],
    *,
    element_spec: Optional[ElementSpec] = None,
    directory: Optional[str] = None,
    timeout: Optional[float] = None,
) -> None:
    """Serves ``dataset_fn`` to the loader of this pod until the loader ends.

    ``dataset_fn(ctx)`` gets an InputContext and yields batches, or returns an iterable of them: arrays (or what numpy
    makes arrays of) by name in a dict, or in a tuple, or one by itself, whose names are those that ``element_spec`` has.
    It is called for each epoch again if what it returned was a generator. What it raises becomes the error that the
    trainers of every replica of this worker get.

    ``element_spec`` declares the components' types, with None where a dimension can vary; without it they are those of
    the first batch, with any number of rows. Waits up to ``timeout`` seconds (default: $HEADRACE_LOADER_TIMEOUT, else
    60) for the loader to start.
    """
    server = _Server(dataset_fn, element_spec)
    path = None if directory is None else os.fspath(directory)
    _native.serve(path, -1 if timeout is None else int(timeout * 1000), server.start, server.next)
