"""Parameters, handlers and errors of rendezvous."""

from __future__ import annotations

import abc
import dataclasses
import socket
from collections.abc import Callable
from typing import Any, ClassVar

from ...._lazy import set_module
from ..utils.distributed import get_free_port

__all__ = [
    "RendezvousClosedError", "RendezvousConnectionError", "RendezvousError", "RendezvousGracefulExitError", "RendezvousHandler",
    "RendezvousHandlerCreator", "RendezvousHandlerRegistry", "RendezvousInfo", "RendezvousParameters", "RendezvousStateError",
    "RendezvousStoreInfo", "RendezvousTimeoutError", "rendezvous_handler_registry",
]  # fmt: skip


class RendezvousError(Exception):
    """The nodes of a run did not find each other, or lost each other."""


class RendezvousClosedError(RendezvousError):
    """The run has ended."""


class RendezvousTimeoutError(RendezvousError):
    """Too few nodes joined in time."""


class RendezvousConnectionError(RendezvousError):
    """The nodes' store does not answer."""


class RendezvousStateError(RendezvousError):
    """The nodes' store contains something invalid."""


class RendezvousGracefulExitError(RendezvousError):
    """This node is not part of the run, which is no failure."""


@dataclasses.dataclass
class RendezvousStoreInfo:
    """The address at which ranks form groups."""

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(rank: int, store, local_addr: str | None, server_port: int | None = None) -> RendezvousStoreInfo:
        """Rank 0 publishes its address, by default its name and a free port, in the store; all ranks return it."""
        if rank == 0:
            store.set(RendezvousStoreInfo.MASTER_ADDR_KEY, (local_addr or socket.getfqdn()).encode())
            store.set(RendezvousStoreInfo.MASTER_PORT_KEY, str(server_port or get_free_port()).encode())
        address = store.get(RendezvousStoreInfo.MASTER_ADDR_KEY).decode()
        return RendezvousStoreInfo(address, int(store.get(RendezvousStoreInfo.MASTER_PORT_KEY).decode()))


class RendezvousInfo:
    """The result of a rendezvous: the nodes' store, this node's rank, the number of nodes, the address for ranks."""

    def __init__(self, store, rank: int, world_size: int, bootstrap_store_info: RendezvousStoreInfo | None):
        self._store, self._rank, self._world_size = store, rank, world_size
        self._bootstrap_store_info = bootstrap_store_info

    @property
    def store(self):
        return self._store

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def world_size(self) -> int:
        return self._world_size

    @property
    def bootstrap_store_info(self) -> RendezvousStoreInfo | None:
        return self._bootstrap_store_info


class RendezvousHandler(abc.ABC):
    """A rendezvous of nodes."""

    @abc.abstractmethod
    def get_backend(self) -> str:
        """Returns the backend's name."""

    @property
    def use_agent_store(self) -> bool:
        """Whether ranks may use the nodes' store."""
        return False

    @abc.abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Waits for the other nodes."""

    @abc.abstractmethod
    def is_closed(self) -> bool:
        """Whether the run has ended."""

    @abc.abstractmethod
    def set_closed(self) -> None:
        """Ends the run."""

    @abc.abstractmethod
    def num_nodes_waiting(self) -> int:
        """Returns the number of nodes that want to join."""

    @abc.abstractmethod
    def get_run_id(self) -> str:
        """Returns the run's name."""

    @abc.abstractmethod
    def shutdown(self) -> bool:
        """Releases what the rendezvous holds."""


class RendezvousParameters:
    """Parameters of a rendezvous.

    Args:
        backend: its name: "c10d", "static", or a registered one.
        endpoint: HOST or HOST:PORT.
        run_id: the run's name.
        min_nodes, max_nodes: how many nodes take part.
        local_addr: this node's address for the others.
        kwargs: further parameters, for the backend.
    """

    def __init__(
        self, backend: str, endpoint: str, run_id: str, min_nodes: int, max_nodes: int, local_addr: str | None = None, **kwargs
    ):  # fmt: skip
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        if min_nodes < 1:
            raise ValueError(f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero.")
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or equal to the minimum number of "
                f"rendezvous nodes ({min_nodes})."
            )
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes, self.local_addr, self.config = min_nodes, max_nodes, local_addr, kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """Returns a further parameter."""
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """Returns a further parameter. Raises ValueError if it is not a boolean value."""
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        text = str(value).lower() if isinstance(value, int | str) else ""
        if text in ("1", "true", "t", "yes", "y"):
            return True
        if text in ("0", "false", "f", "no", "n"):
            return False
        raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid boolean value.")

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """Returns a further parameter. Raises ValueError if it is not an integer."""
        value = self.get(key, default)
        try:
            return None if value is None else int(value)
        except ValueError as error:
            raise ValueError(f"The rendezvous configuration option '{key}' does not represent a valid integer value.") from error


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """Functions that create handlers, by backend."""

    def __init__(self):
        self._registry: dict[str, RendezvousHandlerCreator] = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """Registers a backend. Raises ValueError if it is registered with another function."""
        if not backend:
            raise ValueError("The rendezvous backend name must be a non-empty string.")
        registered = self._registry.setdefault(backend, creator)
        if registered != creator:
            raise ValueError(
                f"The rendezvous backend '{backend}' cannot be registered with '{creator}' as it is already registered with "
                f"'{registered}'."
            )

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """Creates a handler. Raises ValueError if the backend is not registered."""
        if params.backend not in self._registry:
            raise ValueError(
                f"The rendezvous backend '{params.backend}' is not registered. Did you forget to call `register`?"
            )
        handler = self._registry[params.backend](params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(
                f"The rendezvous backend '{handler.get_backend()}' does not match the requested backend '{params.backend}'."
            )
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()


set_module(
    f"{__package__}.api",
    RendezvousClosedError, RendezvousConnectionError, RendezvousError, RendezvousGracefulExitError, RendezvousHandler,
    RendezvousHandlerRegistry, RendezvousInfo, RendezvousParameters, RendezvousStateError, RendezvousStoreInfo,
    RendezvousTimeoutError,
)  # fmt: skip
