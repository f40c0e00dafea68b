"""torch.version: teletensor's version under PyTorch's names."""

from ._version import __version__

cuda = None
git_version = __version__
