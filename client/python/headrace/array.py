"""One tensor of a batch, in the memory that it was delivered to, for any framework, without a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Tuple

from headrace import _numpy

if TYPE_CHECKING:
    import jax
    import numpy
    import torch

    from headrace import _native


_CPU = 1  # DLPack's kDLCPU
_LEGACY_STREAM = 1
_NO_STREAM = -1


class Array:
    """A tensor in the ring, or on the trainer's GPU. ``torch()``, ``jax()`` and DLPack look into it and copy nothing.

    The memory is the trainer's, to read and to write, as long as this object or any such view lives; with the last one
    the batch goes back to the loader. On a GPU, what reads it must run on the stream that was current when the view was
    taken; dropping the view does not wait for that stream, and what overwrites the memory does.
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

    @property
    def device(self) -> str:
        """'cpu', or 'cuda:0', ...: a GPU as CUDA counts them in this process."""
        kind, index = self._buffer.device
        return "cpu" if kind == _CPU else f"cuda:{index}"

    def __len__(self) -> int:
        shape = self._buffer.shape
        if not shape:
            raise TypeError("len() of an array without dimensions")
        return shape[0]

    def __repr__(self) -> str:
        where = "" if self.device == "cpu" else f", device={self.device!r}"
        return f"headrace.Array(name={self.name!r}, shape={self.shape}, dtype={self.dtype}{where})"

    def numpy(self) -> numpy.ndarray:
        """A numpy array over this memory, or of a copy where it is a GPU's. bfloat16 needs the package ml_dtypes."""
        buffer = self._buffer
        if buffer.on_device:
            import numpy

            array = numpy.empty(buffer.shape, _numpy.dtype(buffer.dtype))
            buffer.copy_to(array.ctypes.data)
        else:
            array = _numpy.arrays().view(buffer, _numpy.dtype(buffer.dtype))
        if buffer.dtype != "bfloat16":
            return array
        try:
            import ml_dtypes
        except ImportError:
            raise TypeError(
                f"component {self.name!r} is bfloat16, which numpy lacks: install ml_dtypes, or use torch(), jax() or DLPack"
            ) from None
        return array.view(ml_dtypes.bfloat16)

    def torch(self) -> torch.Tensor:
        """A torch tensor over this memory; on a GPU for use on torch's current stream of that GPU."""
        import torch

        if self._buffer.dtype == "bool":  # not every version takes booleans by DLPack
            stream = _NO_STREAM
            if self._buffer.on_device:
                stream = torch.cuda.current_stream(self.device).cuda_stream or _LEGACY_STREAM
            return torch.from_dlpack(self._buffer.dlpack(as_bytes=True, stream=stream)).view(torch.bool)
        return torch.from_dlpack(self)

    def jax(self) -> jax.Array:
        """A JAX array over this memory. Without jax_enable_x64, JAX copies 64-bit types to 32-bit ones."""
        import jax.dlpack

        return jax.dlpack.from_dlpack(self)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> numpy.ndarray:
        import numpy

        if copy is False and self._buffer.on_device:
            raise ValueError(f"component {self.name!r} is on {self.device}: as a numpy array it must be copied")
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
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(f"the tensor is on {self.device}: no view on device {tuple(dl_device)}")
        if copy:
            raise BufferError("a view of a batch is never a copy: copy what it gives")
        if not self._buffer.on_device:
            if stream is not None:
                raise BufferError("the ring is CPU memory, which has no streams: stream must be None")
            return self._buffer.dlpack()
        if stream == 0:
            raise BufferError("stream 0 is ambiguous: pass 1 for CUDA's legacy default stream, 2 for the per-thread one")
        return self._buffer.dlpack(stream=_LEGACY_STREAM if stream is None else stream)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self._buffer.device
