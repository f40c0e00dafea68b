"""torch.utils.tensorboard: writes event files for TensorBoard. Requires the package `tensorboard`."""

try:
    import tensorboard as _package  # noqa: F401 - the classes write with it
except ImportError as error:
    raise ModuleNotFoundError(
        "[torch.utils.tensorboard] expected the package tensorboard, which is not installed: pip install tensorboard",
        name="tensorboard",
    ) from error

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {"_tensorboard": "RecordWriter", "writer": "FileWriter SummaryWriter"}

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]  # noqa: F822 - imported at their first use

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
