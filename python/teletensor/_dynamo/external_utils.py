"""torch._dynamo.external_utils: whether code is being compiled."""

from ..compiler import is_compiling

__all__ = ["is_compiling"]
