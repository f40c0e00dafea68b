"""torch.distributed.elastic.rendezvous: how the nodes of a run find each other.

The launchers' own rendezvous (docs/launch.md) implements the backends "c10d" and "static". Their handlers describe it for
``LocalElasticAgent``; only "static" can also be used on its own.
"""

from .api import (
    RendezvousClosedError, RendezvousConnectionError, RendezvousError, RendezvousGracefulExitError, RendezvousHandler,
    RendezvousHandlerCreator, RendezvousHandlerRegistry, RendezvousInfo, RendezvousParameters, RendezvousStateError,
    RendezvousStoreInfo, RendezvousTimeoutError, rendezvous_handler_registry,
)  # fmt: skip
from .registry import _register_default_handlers

_register_default_handlers()

__all__ = [
    "RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError", "RendezvousHandler",
    "RendezvousHandlerCreator", "RendezvousHandlerRegistry", "RendezvousInfo", "RendezvousParameters", "RendezvousStateError",
    "RendezvousStoreInfo", "RendezvousTimeoutError", "rendezvous_handler_registry",
]  # fmt: skip
