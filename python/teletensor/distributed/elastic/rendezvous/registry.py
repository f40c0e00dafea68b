"""The registered backends of rendezvous."""

from __future__ import annotations

from ._handlers import RendezvousHandler, RendezvousParameters, rendezvous_handler_registry
from .static_tcp_rendezvous import create_rdzv_handler

__all__ = ["get_rendezvous_handler"]


class _LaunchersRendezvous(RendezvousHandler):
    """The backend "c10d": the launchers' own rendezvous, which LocalElasticAgent starts."""

    def __init__(self, params: RendezvousParameters):
        self.params = params

    def get_backend(self) -> str:
        return "c10d"

    def get_run_id(self) -> str:
        return self.params.run_id

    def _refuse(self):
        raise NotImplementedError(
            'the launcher forms groups of nodes with "c10d" itself: pass the handler to LocalElasticAgent, or use the backend '
            '"static" or a TCPStore'
        )

    def next_rendezvous(self):
        self._refuse()

    def is_closed(self):
        self._refuse()

    def set_closed(self):
        self._refuse()

    def num_nodes_waiting(self):
        self._refuse()

    def shutdown(self) -> bool:
        return True


def _refuse_etcd(params: RendezvousParameters) -> RendezvousHandler:
    raise NotImplementedError(
        f'the rendezvous backend {params.backend!r} is not supported: use "c10d", or "static" with the nodes\' ranks'
    )


def _register_default_handlers() -> None:
    for backend in ("etcd", "etcd-v2"):
        rendezvous_handler_registry.register(backend, _refuse_etcd)
    rendezvous_handler_registry.register("c10d", _LaunchersRendezvous)
    rendezvous_handler_registry.register("static", create_rdzv_handler)


def get_rendezvous_handler(params: RendezvousParameters) -> RendezvousHandler:
    """Creates the handler of a registered backend.

    Raises:
        ValueError: there is no such backend, or it needs other parameters.
        NotImplementedError: etcd.
    """
    return rendezvous_handler_registry.create_handler(params)


_register_default_handlers()
