"""torch._functorch: forward and backward graphs of functions for user-defined compilers, and vmap as captured graphs call it."""

from .._lazy import lazy_attributes

__getattr__, __dir__ = lazy_attributes(globals(), None)
