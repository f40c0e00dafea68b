"""torch.utils.data.datapipes: composable sources of samples. PyTorch no longer develops them; Dataset is the usual form."""

from ...._lazy import lazy_attributes

__all__ = ["iter", "map"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None)
