"""One tensor of a batch, in the memory that the loader wrote it to, for any framework, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Tuple

if TYPE_CHECKING:
    import jax
    import numpy
    import torch

    from headrace import _native


class Array:
    """A tensor in the ring. ``numpy()``, ``torch()``, ``jax()`` and DLPack look into it and copy nothing.

    The memory is the trainer's, to read and to write, as long as this object or any such view lives; with the last one
    the batch goes back to the loader.
    """

    __slots__ = ("_buffer",)

    def __init__(self, buffer: _native.Buffer) -> None:
        self._buffer = buffer

    @property
    def name(self) -> str:
        return self._buffer.name

    @property
    def dtype(self) -> str:
        """numpy's and TensorFlow's name: "float32", "bfloat16", "bool", ..."""
        return self._buffer.dtype

    @property
    def shape(self) -> Tuple[int, ...]:
        return self._buffer.shape

    @property
    def ndim(self) -> int:
        return len(self._buffer.shape)

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes

    def __len__(self) -> int:
        shape = self._buffer.shape
        if not shape:
            raise TypeError("len() of an array without dimensions")
        return shape[0]

    def __repr__(self) -> str:
        return f"headrace.Array(name={self.name!r}, shape={self.shape}, dtype={self.dtype})"

    def numpy(self) -> numpy.ndarray:
        """A numpy array over this memory. bfloat16 needs the package ml_dtypes."""
        import numpy

        array = numpy.asarray(self._buffer)
        if self._buffer.dtype != "bfloat16":
            return array
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError(
                f"component {self.name!r} is bfloat16, which numpy lacks: install ml_dtypes, or use torch(), jax() or DLPack"
            ) from None
        return array.view(ml_dtypes.bfloat16)

    def torch(self) -> torch.Tensor:
        """A torch tensor over this memory, on the CPU."""
        import torch

        if self._buffer.dtype == "bool":  # not every version takes booleans by DLPack
            return torch.from_dlpack(self._buffer.dlpack(as_bytes=True)).view(torch.bool)
        return torch.from_dlpack(self)

    def jax(self) -> jax.Array:
        """A JAX array over this memory, on the CPU. Without jax_enable_x64, JAX copies 64-bit types to 32-bit ones."""
        import jax.dlpack

        return jax.dlpack.from_dlpack(self)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> numpy.ndarray:
        import numpy

        array = self.numpy()
        if dtype is not None and numpy.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"component {self.name!r} is {self.dtype}: as {numpy.dtype(dtype)} it must be copied")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> Any:
        if stream is not None:
            raise BufferError("the ring is CPU memory, which has no streams: stream must be None")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the ring is CPU memory: no view on device {tuple(dl_device)}")
        if copy:
            raise BufferError("a view of the ring is never a copy: copy what it gives")
        return self._buffer.dlpack()

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (1, 0)  # kDLCPU
