"""LoadError, and the checks that raise it."""

from __future__ import annotations

import contextlib
import errno
import io
import pickle
import struct

# The exceptions that damaged files cause in the standard library and in constructors.
_DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, TypeError, ValueError, AssertionError, struct.error, RecursionError,
)  # fmt: skip


class LoadError(pickle.UnpicklingError, RuntimeError):
    """The file is damaged, or contains objects that load does not create."""


class CallerError(Exception):
    """Carries an error of the caller, or of a function that the caller passed, past the conversion to LoadErrors."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


@contextlib.contextmanager
def as_caller_errors():
    """Marks errors in the block as those of the caller."""
    try:
        yield
    except Exception as error:
        raise CallerError(error) from None


@contextlib.contextmanager
def as_load_errors():
    """Converts the errors that damaged files cause to LoadErrors."""
    try:
        yield
    except CallerError as error:
        raise error.error from None
    except (NotImplementedError, LoadError, io.UnsupportedOperation):
        raise
    except _DAMAGE as error:
        raise LoadError(f"[load] the file is damaged: {type(error).__name__}: {str(error)[:200]}") from error
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOVERFLOW):
            raise
        raise damaged("an offset in it is invalid") from None


def require(condition: object, expected: str, got: object) -> None:
    """Raises LoadError if the condition is false."""
    if not condition:
        raise damaged(f"expected {expected}, got {shown(got)}")


def damaged(what: str) -> LoadError:
    """The error for a file that save cannot have written."""
    return LoadError(f"[load] the file is damaged: {what}")


def shown(value: object) -> str:
    """At most 100 characters of a value from a file, without computing the representation of a large one."""
    if isinstance(value, (str, bytes)):
        return repr(value[:80])
    if value is None or isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 2**64):
        return repr(value)
    return f"an object of type {type(value).__name__}"
