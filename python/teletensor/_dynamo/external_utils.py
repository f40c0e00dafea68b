"""torch._dynamo.external_utils: whether code is being compiled."""

from .._tracing_state import is_compiling

__all__ = ["is_compiling"]
