"""torch.distributed.elastic.rendezvous: how the nodes of a run find each other.

The launchers' own rendezvous (docs/launch.md) implements the backends "c10d" and "static". Their handlers describe it for
``LocalElasticAgent``; only "static" can also be used on its own.
"""

from ...._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "api": (
        "RendezvousClosedError RendezvousConnectionError RendezvousError RendezvousGracefulExitError "
        "RendezvousHandler RendezvousHandlerCreator RendezvousHandlerRegistry RendezvousInfo RendezvousParameters "
        "RendezvousStateError RendezvousStoreInfo RendezvousTimeoutError rendezvous_handler_registry"
    ),
    "registry": "_register_default_handlers",
}

__all__ = [  # noqa: F822 - imported at their first use
    "RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError", "RendezvousHandler",
    "RendezvousHandlerCreator", "RendezvousHandlerRegistry", "RendezvousInfo", "RendezvousParameters", "RendezvousStateError",
    "RendezvousStoreInfo", "RendezvousTimeoutError", "rendezvous_handler_registry",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
