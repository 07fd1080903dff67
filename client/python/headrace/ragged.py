"""Tensors whose rows differ in length, in the memory that the loader wrote them to: strings, and ragged numbers.

Both are the values of all rows, one row after another, and ``row_splits``, which say where each row begins: row i is from
``row_splits[i]`` to before ``row_splits[i + 1]``. TensorFlow's RaggedTensor is made of the same two:
``tf.RaggedTensor.from_row_splits(t.values.numpy(), t.row_splits.numpy())``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, List, Optional, Tuple, Union

from headrace.array import Array

if TYPE_CHECKING:
    import numpy

    from headrace import _native


class _Rows(Sequence):
    """What strings and ragged tensors have in common."""

    __slots__ = ("_buffer", "_splits")

    def __init__(self, buffer: _native.Buffer) -> None:
        self._buffer = buffer
        self._splits = memoryview(buffer.row_splits().memory()).cast("q")

    @property
    def name(self) -> str:
        return self._buffer.name

    @property
    def dtype(self) -> str:
        """"string", or numpy's and TensorFlow's name of the values: "int64", ..."""
        return self._buffer.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return self._buffer.nbytes

    @property
    def row_splits(self) -> Array:
        """int64, one more than there are rows. Not to be written to."""
        return Array(self._buffer.row_splits())

    def __len__(self) -> int:
        return len(self._splits) - 1

    def _bounds(self, i: int) -> Tuple[int, int]:
        rows = len(self)
        if not -rows <= i < rows:
            raise IndexError(f"row {i} of {rows}")
        i %= rows
        return self._splits[i], self._splits[i + 1]


class Strings(_Rows):
    """A tensor of strings, each bytes of any length.

    ``strings[i]`` is a memoryview of string i and copies nothing; ``bytes(strings[i])`` is a copy to keep. The strings of
    a tensor with several dimensions, which two batches make, count row-major; a tensor without dimensions is one string.

    The memory is the trainer's as long as this object, or what was taken of it, lives.
    """

    __slots__ = ("_bytes",)

    def __init__(self, buffer: _native.Buffer) -> None:
        super().__init__(buffer)
        self._bytes = memoryview(buffer.values().memory()).toreadonly()

    @property
    def shape(self) -> Tuple[int, ...]:
        """Of the strings."""
        return self._buffer.shape

    @property
    def values(self) -> Array:
        """The bytes of all strings, uint8."""
        return Array(self._buffer.values())

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[row] for row in range(*i.indices(len(self)))]
        begin, end = self._bounds(i)
        return self._bytes[begin:end]

    def tolist(self) -> List[bytes]:
        """Copies of the strings."""
        splits = self._splits.tolist()
        whole = bytes(self._bytes)
        return [whole[begin:end] for begin, end in zip(splits, splits[1:])]

    def numpy(self) -> numpy.ndarray:
        """Copies of the strings as an array of objects, bytes each, in the tensor's shape. As TensorFlow's numpy()."""
        import numpy

        array = numpy.empty(len(self), dtype=object)
        array[:] = self.tolist()
        return array.reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> numpy.ndarray:
        if copy is False:
            raise ValueError(f"component {self.name!r} is strings: as a numpy array it must be copied")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        return f"headrace.Strings(name={self.name!r}, shape={self.shape})"


class Ragged(_Rows):
    """A ragged tensor of numbers: a RaggedTensor of ragged_rank 1.

    ``ragged[i]`` is row i, an Array; it, ``values`` and ``row_splits`` copy nothing.

    The memory is the trainer's, to read and to write, as long as this object, or what was taken of it, lives.
    """

    __slots__ = ()

    @property
    def shape(self) -> Tuple[Optional[int], ...]:
        """The number of rows, None for their length, and the shape of one value."""
        return tuple(None if dim < 0 else dim for dim in self._buffer.shape)

    @property
    def values(self) -> Array:
        """The values of all rows: shape [number of values, shape[2], ...]."""
        return Array(self._buffer.values())

    def __getitem__(self, i: Any) -> Union[Array, List[Array]]:
        if isinstance(i, slice):
            return [self[row] for row in range(*i.indices(len(self)))]
        begin, end = self._bounds(i)
        return Array(self._buffer.values().rows(begin, end))

    def tolist(self) -> List[List[Any]]:
        """The rows as lists of numbers, or of lists of them."""
        values = self.values.numpy().tolist()
        splits = self._splits.tolist()
        return [values[begin:end] for begin, end in zip(splits, splits[1:])]

    def to_padded(self, value: Any = 0, length: Optional[int] = None) -> numpy.ndarray:
        """A numpy array of shape [rows, length, shape[2], ...], a copy, with ``value`` behind the end of each row.

        ``length`` is by default that of the longest row here; longer rows are cut to it, as by TensorFlow's to_tensor().
        """
        import numpy

        values = self.values.numpy()
        splits = self.row_splits.numpy()
        lengths = numpy.diff(splits)
        if length is None:
            length = int(lengths.max(initial=0))
        padded = numpy.full((len(self), length) + values.shape[1:], value, dtype=values.dtype)
        kept = numpy.arange(length) < lengths[:, None]  # of `padded`: what comes from the rows
        rows, places = kept.nonzero()
        padded[rows, places] = values[splits[rows] + places]
        return padded

    def __repr__(self) -> str:
        return f"headrace.Ragged(name={self.name!r}, shape={self.shape}, dtype={self.dtype})"


def tensor_of(buffer: _native.Buffer) -> Union[Array, Strings, Ragged]:
    """The class for what the batch holds."""
    if not buffer.is_variable:
        return Array(buffer)
    return Strings(buffer) if buffer.dtype == "string" else Ragged(buffer)
