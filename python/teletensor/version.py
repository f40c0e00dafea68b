"""torch.version: teletensor's version under PyTorch's names."""

from ._version import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

cuda = None
hip = None
xpu = None
debug = False
git_version = __version__
