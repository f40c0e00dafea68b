"""torch.distributed.rpc.api: calls of functions on other workers."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import re
import time
from datetime import timedelta

from ... import _C, _connection
from .. import _pull, _rendezvous, _work
from .._errors import DistStoreError
from . import _current, _errors, _registry, _rref
from ._agent import Agent, Peer, WorkerInfo
from ._future import RpcFuture
from ._mailbox import Outbox
from ._rref import RRef
from .constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT
from .options import BackendType, TensorPipeRpcBackendOptions

__all__ = ["RRef", "get_worker_info", "remote", "rpc_async", "rpc_sync", "shutdown"]

_NAME = re.compile(r"[A-Za-z0-9_:-]{1,127}")
_SLICE_SECONDS = 1.0  # how often a waiting worker checks whether another one was lost
_LEAVE_SECONDS = 5.0  # how long a worker waits in shutdown() for workers that may have been lost

_run_store: tuple[_C.RemoteStore, str] | None = None  # the store that the workers share, and the prefix of their keys


def _require_initialized(func):
    """Wraps a function of a library: it raises RuntimeError if RPC has not been initialized."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        _current.agent()
        return func(*args, **kwargs)

    return wrapper


def init_rpc(
    name: str,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: TensorPipeRpcBackendOptions | None = None,
) -> None:
    """Joins the group of workers as a worker with this name. Waits for all of them.

    Args:
        name: unique; letters, digits, ``_``, ``-`` and ``:``.
        backend: the only one is ``BackendType.TENSORPIPE``.
        rank, world_size: by default from the environment, as for init_process_group().
        rpc_backend_options: see TensorPipeRpcBackendOptions.

    Raises:
        ValueError: the name, the rank or the address is missing or invalid.
        DistStoreError: workers are missing after the timeout of the options, or two have the same name.
        RuntimeError: this process is a worker already.
    """
    global _run_store
    options = rpc_backend_options or TensorPipeRpcBackendOptions()
    if not isinstance(options, TensorPipeRpcBackendOptions):
        raise TypeError(f"[init_rpc] expected TensorPipeRpcBackendOptions, got {type(options).__name__}")
    if backend not in (None, BackendType.TENSORPIPE):
        raise TypeError(f"[init_rpc] expected BackendType.TENSORPIPE, got {backend!r}")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"Worker name must match ^[A-Za-z0-9-_:]*$ and have 1 to 127 characters, got {name!r:.200}")
    if _current._agent is not None:
        raise RuntimeError("RPC is already initialized. Call shutdown() first.")
    timeout = options.rpc_timeout or 365 * 24 * 3600.0
    run_store = _rendezvous.find_store(
        options.init_method, None, rank, -1 if world_size is None else world_size, timedelta(seconds=timeout)
    )
    store = _C.RemoteStore(run_store.address, run_store.token, timeout)
    prefix = f"{run_store.run}/rpc"
    pull_address, pull_token = _pull.endpoint(run_store.address)
    outbox = Outbox(pull_address.rpartition(":")[0].strip("[]"))
    own = {
        "name": name, "address": outbox.address, "token": outbox.token, "prefix": outbox.prefix, "pull_address": pull_address,
        "pull_token": pull_token, "device_maps": options.device_maps,
    }  # fmt: skip
    keys = [f"{prefix}/{r}" for r in range(run_store.world_size)]
    store.set([keys[run_store.rank]], [json.dumps(own)])
    workers = [json.loads(value) for value in _wait_for_workers(store, keys, timeout)]
    names = [worker.pop("name") for worker in workers]
    if len(set(names)) != len(names):
        raise DistStoreError(f"[init_rpc] expected one worker per name, got {names}")
    peers = [Peer(WorkerInfo(r, names[r]), **worker) for r, worker in enumerate(workers)]
    agent = Agent(run_store.rank, peers, outbox, options)
    _run_store = store, prefix
    _current.set_agent(agent)
    _work.process_waits = True
    agent.start()


def _wait_for_workers(store: _C.RemoteStore, keys: list[str], timeout: float) -> list[bytes]:
    try:
        return store.get(keys, timeout)
    except TimeoutError:
        missing = [r for r, key in enumerate(keys) if not store.check([key])]
        raise DistStoreError(
            f"[init_rpc] timed out after {timeout:g} s: expected {len(keys)} workers, missing: rank "
            + ", ".join(map(str, missing))
        ) from None
    except ConnectionError as error:
        raise DistStoreError(f"[init_rpc] {error}") from None


def get_worker_info(worker_name: str | None = None) -> WorkerInfo:
    """Returns the worker of this name, by default this one. Raises RuntimeError for an unknown name."""
    agent = _current.agent()
    return agent.me.info if worker_name is None else _peer(agent, worker_name).info


def _get_current_rpc_agent() -> Agent:
    return _current.agent()


def _is_current_rpc_agent_set() -> bool:
    return _current._agent is not None


def get_rpc_timeout() -> float:
    """Returns the default timeout of calls in seconds."""
    return _current.agent().timeout


def _set_rpc_timeout(seconds: float) -> None:
    _current.agent().timeout = float(seconds)


def _peer(agent: Agent, to) -> Peer:
    if isinstance(to, WorkerInfo):
        to = to.id
    if isinstance(to, str):
        if to not in agent.by_name:
            raise RuntimeError(f"Unknown destination worker {to}: expected one of {sorted(agent.by_name)}")
        return agent.by_name[to]
    if isinstance(to, int) and not isinstance(to, bool):
        if not 0 <= to < len(agent.peers):
            raise RuntimeError(f"Unknown destination worker id {to}: expected 0 to {len(agent.peers) - 1}")
        return agent.peers[to]
    raise ValueError(f"Cannot get WorkerInfo from name {to!r}")


def rpc_async(to, func, args=None, kwargs=None, timeout: float = UNSET_RPC_TIMEOUT) -> RpcFuture:
    """Calls a function on a worker; returns a future of the result, without waiting.

    Args:
        to: the worker's name, number or WorkerInfo.
        func: an operator, or a function that all workers have registered with register().
        args, kwargs: tensors, RRefs, registered functions, and the values that object collectives send.
        timeout: in seconds, after which the future fails; 0: none. By default that of the options.

    Raises:
        TypeError: an argument's type cannot be sent, or the function is not callable.
        ValueError: the function is not registered, or the arguments are too large.
        RuntimeError: the worker is unknown or was lost.
    """
    agent = _current.agent()
    return agent.call(_peer(agent, to), _registry.name_of(func), args or (), kwargs or {}, timeout)


def rpc_sync(to, func, args=None, kwargs=None, timeout: float = UNSET_RPC_TIMEOUT):
    """Calls a function on a worker and returns its result; waits for it. See rpc_async().

    Raises:
        The function's exception as the same builtin type, with the remote traceback in its message; RuntimeError after the
        timeout, or if the worker is lost.
    """
    return rpc_async(to, func, args, kwargs, timeout).wait()


def remote(to, func, args=None, kwargs=None, timeout: float = UNSET_RPC_TIMEOUT) -> RRef:
    """Calls a function on a worker; returns an RRef of the result, which stays there, without waiting. See rpc_async()."""
    agent = _current.agent()
    return agent.remote(_peer(agent, to), _registry.name_of(func), args or (), kwargs or {}, timeout)


def shutdown(graceful: bool = True, timeout: float = DEFAULT_SHUTDOWN_TIMEOUT) -> None:
    """Leaves the group of workers. Further calls raise RuntimeError.

    Args:
        graceful: waits until all workers that were not lost have called shutdown(), and all calls have ended.
        timeout: in seconds, after which a graceful shutdown raises RuntimeError; 0: none.
    """
    global _run_store
    agent = _current.agent()
    deadline = time.monotonic() + timeout if timeout > 0 else None
    try:
        if graceful:
            _await_others(agent, deadline)
    finally:
        store_and_prefix, _run_store = _run_store, None
        if not graceful:
            agent.stop(0.0)
        else:
            agent.stop(None if deadline is None else max(0.0, deadline - time.monotonic()))
        _current.set_agent(None)
        _work.process_waits = False
        if graceful:
            _leave(agent, *store_and_prefix)


def _await_others(agent: Agent, deadline: float | None) -> None:
    """Waits until all workers have ended their calls: until no worker has issued one since the previous round."""
    previous, number = None, 0
    while True:
        left = None if deadline is None else deadline - time.monotonic()
        if not agent.wait_until_idle(left):
            raise _errors.timed_out(max(0.0, left))
        # The results that this worker has received must arrive before their owners leave.
        with contextlib.suppress(ConnectionError):
            _connection.synchronize()
        totals = _round(agent, number, deadline)
        if totals is None or totals == previous:
            return
        previous, number = totals, number + 1


def _round(agent: Agent, number: int, deadline: float | None) -> dict[int, bytes] | None:
    """Exchanges the numbers of calls issued so far. Returns those of the living workers; None if the store was lost."""
    store, prefix = _run_store
    try:
        store.set([f"{prefix}/shutdown/{number}/{agent.me.rank}"], [str(agent.issued)])
        while True:
            ranks = [agent.me.rank, *(peer.rank for peer in agent.living())]
            try:
                values = store.get([f"{prefix}/shutdown/{number}/{r}" for r in ranks], _SLICE_SECONDS)
                return dict(zip(ranks, values))
            except TimeoutError:
                if deadline is not None and time.monotonic() > deadline:
                    raise RuntimeError("[shutdown] timed out: not all workers have called shutdown()") from None
    except (ConnectionError, PermissionError):
        return None


def _leave(agent: Agent, store: _C.RemoteStore, prefix: str) -> None:
    """Waits until all workers have read their last messages, before this one's engine may end."""
    living = sum(1 for peer in agent.peers if peer is agent.me or peer.has_left)
    with contextlib.suppress(ConnectionError, PermissionError, RuntimeError, TimeoutError):
        if store.add(f"{prefix}/left", 1) >= living:
            store.set([f"{prefix}/all-left"], [b"1"])
        store.wait([f"{prefix}/all-left"], _LEAVE_SECONDS)


def _shutdown_at_exit() -> None:
    if _current._agent is not None:
        shutdown(graceful=False)


atexit.register(_shutdown_at_exit)


_rref.calls.update(rpc_sync=rpc_sync, rpc_async=rpc_async, remote=remote)
