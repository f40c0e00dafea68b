"""torch._inductor: settings of PyTorch's default backend, whose place Programs have (docs/programs.md)."""

from . import config

__all__ = ["config"]
