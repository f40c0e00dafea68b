"""torch.utils.tensorboard: writes event files for TensorBoard. Requires the package `tensorboard`."""

try:
    import tensorboard as _tensorboard  # noqa: F401 - the classes below write with it
except ImportError as error:
    raise ModuleNotFoundError(
        "[torch.utils.tensorboard] expected the package tensorboard, which is not installed: pip install tensorboard",
        name="tensorboard",
    ) from error

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
