"""Versions, where PyTorch code looks for them."""

from ._version import __version__

cuda = None
git_version = __version__
