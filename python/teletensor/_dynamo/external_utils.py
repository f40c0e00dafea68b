"""torch._dynamo.external_utils: whether code is being compiled."""

from ._stance import is_compiling

__all__ = ["is_compiling"]
