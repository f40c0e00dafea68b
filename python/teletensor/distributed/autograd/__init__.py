"""torch.distributed.autograd: backward passes through calls of torch.distributed.rpc.

    with dist_autograd.context() as context_id:
        loss = rpc.rpc_sync("worker1", model_part, args=(x,)).sum()
        dist_autograd.backward(context_id, [loss])
        gradients = dist_autograd.get_gradients(context_id)  # of this worker's leaves

Within a context, each message records its tensors that require gradients, at both ends. Gradients are kept in the context
instead of in ``.grad``, so that several contexts may be in use at once.
"""

from ..._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_context": "DistAutogradContext=Context Gradients context get_gradients",
    "_remote": "backward",
}

__all__ = ["context", "is_available"]  # noqa: F822 - imported at their first use


def is_available() -> bool:
    """Whether distributed autograd is available. Always true."""
    return True


__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
