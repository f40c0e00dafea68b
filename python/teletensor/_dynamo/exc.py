"""Exceptions of graph capture."""

from __future__ import annotations

__all__ = [
    "BackendCompilerFailed", "FailOnRecompileLimitHit", "InvalidBackend", "RecompileError", "TorchDynamoException",
    "TorchRuntimeError", "Unsupported", "UserError",
]  # fmt: skip


class TorchDynamoException(RuntimeError):  # noqa: N818 - PyTorch's names
    """The base of the exceptions that torch.compile raises."""


class Unsupported(TorchDynamoException):
    """A graph break where fullgraph=True or error_on_graph_break(True) demands one graph.

    Attributes:
        reason: why the graph ends.
        where: the user's line, as "file:line in function"; empty until it is known.
    """

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{reason}\n  from user code: {where}" if where else reason)
        self.reason, self.where = reason, where


class InvalidBackend(TorchDynamoException):
    """There is no backend of that name."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised an exception while it compiled a graph."""

    def __init__(self, backend: str, inner: BaseException) -> None:
        super().__init__(f"backend={backend!r} raised:\n{type(inner).__name__}: {inner}")
        self.backend_name, self.inner_exception = backend, inner


class TorchRuntimeError(TorchDynamoException):
    """A call fails for the sizes and dtypes of its arguments."""


class UserError(Unsupported):
    """A function was used in a way that compiled functions do not allow."""


class RecompileError(TorchDynamoException):
    """A function would have been compiled again, which config.error_on_recompile or a stance forbids."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """The limit of recompilations is reached with fullgraph=True."""
