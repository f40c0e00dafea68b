"""torch._inductor: settings of PyTorch's default backend, whose place Programs have (docs/programs.md)."""

from .._lazy import lazy_attributes

__all__ = ["config"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None)
