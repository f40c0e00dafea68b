"""The backend "static": the nodes' ranks and the address of the first one are known."""

from __future__ import annotations

from datetime import timedelta

from ..._store import PrefixStore, TCPStore
from ._handlers import RendezvousHandler, RendezvousInfo, RendezvousParameters, RendezvousStoreInfo
from .utils import parse_rendezvous_endpoint

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]

_TIMEOUT = 600


class StaticTCPRendezvous(RendezvousHandler):
    """A rendezvous at a TCPStore, which the engine of node 0 serves. `timeout`: seconds.

    Under LocalElasticAgent the launchers' own store replaces it.
    """

    def __init__(self, master_addr: str, master_port: int, rank: int, world_size: int, run_id: str, timeout: int):
        self.master_addr, self.master_port, self.rank, self.world_size = master_addr, master_port, rank, world_size
        self.run_id, self.timeout = run_id, timedelta(seconds=timeout)
        self._store: TCPStore | None = None

    def get_backend(self) -> str:
        return "static"

    @property
    def use_agent_store(self) -> bool:
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        if self._store is None:
            self._store = TCPStore(
                self.master_addr, self.master_port, self.world_size, self.rank == 0, self.timeout, multi_tenant=True
            )
        address = RendezvousStoreInfo(self.master_addr, self.master_port)
        return RendezvousInfo(PrefixStore(self.run_id, self._store), self.rank, self.world_size, address)

    def is_closed(self) -> bool:
        return False

    def set_closed(self) -> None:
        pass  # nodes with known ranks cannot join again, so there is nothing to close

    def num_nodes_waiting(self) -> int:
        return 0

    def get_run_id(self) -> str:
        return self.run_id

    def shutdown(self) -> bool:
        return True


def create_rdzv_handler(params: RendezvousParameters) -> StaticTCPRendezvous:
    """Creates the handler. Raises ValueError if the rank or the endpoint is missing."""
    if "rank" not in params.config:
        raise ValueError("rank is absent in RendezvousParameters. Try add --node-rank to the cmd request")
    if not params.endpoint.strip():
        raise ValueError(
            "endpoint is absent in RendezvousParameters. Try add --master-port and --master-addr to the cmd request"
        )
    host, port = parse_rendezvous_endpoint(params.endpoint, -1)
    if port == -1:
        raise ValueError(f"Port is absent in endpoint: {params.endpoint}. Try launching with --master-port")
    timeout = int(params.get("timeout", _TIMEOUT))
    return StaticTCPRendezvous(host, port, int(params.config["rank"]), params.max_nodes, params.run_id, timeout)
