"""init_rpc(), after the modules of torch.distributed that register functions which other workers call."""

from __future__ import annotations

from ..nn.api import remote_module as _remote_module  # noqa: F401
from ..optim import distributed_optimizer as _distributed_optimizer  # noqa: F401
from .api import init_rpc

__all__ = ["init_rpc"]
