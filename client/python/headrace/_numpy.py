"""numpy, for those who ask for its arrays: imported with the first of them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from headrace import _native

if TYPE_CHECKING:
    import numpy


@functools.lru_cache(maxsize=None)
def arrays() -> _native.NumpyArrays:
    """What makes arrays over memory of a batch: numpy's own C function."""
    import numpy

    try:
        from numpy._core import _multiarray_umath
    except ImportError:  # numpy before 2
        from numpy.core import _multiarray_umath
    return _native.NumpyArrays(_multiarray_umath._ARRAY_API, numpy.ndarray)


@functools.lru_cache(maxsize=None)
def dtype(name: str) -> numpy.dtype:
    """numpy's type of a component's values; of bfloat16, which numpy lacks, that of its bits."""
    import numpy

    return numpy.dtype("uint16" if name == "bfloat16" else name)
