"""torch.utils.data.datapipes: composable sources of samples. PyTorch no longer develops them; Dataset is the usual form."""

from __future__ import annotations

from . import iter, map  # noqa: A004 - PyTorch's names

__all__ = ["iter", "map"]
