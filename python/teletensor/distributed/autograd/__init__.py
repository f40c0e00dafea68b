"""torch.distributed.autograd: backward passes through calls of torch.distributed.rpc.

    with dist_autograd.context() as context_id:
        loss = rpc.rpc_sync("worker1", model_part, args=(x,)).sum()
        dist_autograd.backward(context_id, [loss])
        gradients = dist_autograd.get_gradients(context_id)  # of this worker's leaves

Within a context, each message records its tensors that require gradients, at both ends. Gradients are kept in the context
instead of in ``.grad``, so that several contexts may be in use at once.
"""

from __future__ import annotations

from .. import rpc as _rpc_package  # noqa: F401 - imports this package's modules in the right order
from . import _context
from ._context import Context as DistAutogradContext
from ._context import Gradients, context
from ._remote import backward

__all__ = ["DistAutogradContext", "backward", "context", "get_gradients", "is_available"]


def is_available() -> bool:
    """Whether distributed autograd is available. Always true."""
    return True


def get_gradients(context_id: int) -> Gradients:
    """Returns this worker's gradients in a context: a mapping from leaves to gradients.

    Raises:
        RuntimeError: there is no such context.
    """
    return _context.find(context_id).gradients()
