"""torch.distributed.elastic: ranks that restart after failures, and programs that start them.

``teletensor launch`` (docs/launch.md) starts, monitors and restarts the ranks; `agent` and torch.distributed.launcher are
PyTorch's interface to it.
"""

from ..._lazy import lazy_attributes

__getattr__, __dir__ = lazy_attributes(globals(), None)
