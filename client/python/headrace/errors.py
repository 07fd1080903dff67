"""Exceptions: one class for each code that Headrace's errors have.

The message says what went wrong, where (a field of the spec, or a file and an offset), the value and the remedy.
"""

from __future__ import annotations


class Error(Exception):
    """Any error of Headrace. ``code`` is its name: "NotFound", "Corrupt", ..."""

    code = "Internal"

    def __init_subclass__(cls) -> None:
        cls.code = vars(cls).get("code", cls.__name__.removesuffix("Error"))


class OutOfRangeError(Error, IndexError):
    """``get_next()`` at the end of the epoch."""

    code = "End"


class TimedOutError(Error, TimeoutError):
    """Nothing came within the ``timeout`` given; nothing is lost, ask again."""


class InvalidArgumentError(Error, ValueError):
    """The call or the input's spec is wrong; retrying cannot help."""


class NotFoundError(Error):
    """There is no loader here, or a file that the spec names does not exist."""


class ConflictError(Error):
    """Another trainer reads this replica."""


class UnavailableError(Error):
    """The loader, or what it reads from, is gone; retrying may help."""


class CorruptError(Error):
    """Bytes of the data set are not what their format demands."""


class ExhaustedError(Error):
    """Every batch that the ring has room for is held by the trainer, or memory is out."""


class CancelledError(Error):
    """The call was asked to stop."""


class InternalError(Error):
    """A bug of Headrace."""


_BY_CODE = {cls.code: cls for cls in Error.__subclasses__()}


def from_status(code: str, message: str) -> Error:
    """The exception for a status of the C library."""
    return _BY_CODE.get(code, InternalError)(message if code != "TimedOut" else "no batch within the timeout")
