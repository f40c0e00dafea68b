"""Remote procedure calls. Each function runs on all workers, which are "worker0", "worker1" and so on."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np

import teletensor as torch
import teletensor.distributed as dist
from teletensor.distributed import rpc
from teletensor.futures import wait_all

from ..collectives.object_cases import assert_same, values_of


def run(rank: int, size: int, case: str, port: int, options: dict, settings: dict | None = None):
    """Runs a case between init_rpc() and shutdown()."""
    settings = rpc.TensorPipeRpcBackendOptions(init_method=f"tcp://127.0.0.1:{port}", **(settings or {}))
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=settings)
    graceful = False
    try:
        result = globals()[case](rank, size, **options)
        graceful = True
        return result
    finally:
        rpc.shutdown(graceful=graceful)


def meet(rank: int, size: int) -> None:
    """Waits until all workers have arrived. Called once per case."""
    for peer in range(size):
        rpc.rpc_sync(peer, arrive, args=(rank,))
    while len(_arrived) < size:
        time.sleep(0.002)
    _arrived.clear()


_arrived: list[int] = []


@rpc.register
def arrive(rank: int) -> None:
    _arrived.append(rank)


@rpc.register
def scaled(x, factor=2, *, add=0):
    return x * factor + add


@rpc.register
def echo(*args, **kwargs):
    return [args, kwargs]


@rpc.register
def fail(kind: str, message: str):
    raise {"value": ValueError, "key": KeyError, "zero": ZeroDivisionError, "own": OwnError}[kind](message)


class OwnError(LookupError):
    pass


@rpc.register
def nested(x, hops: int):
    if hops == 0:
        return x + rpc.get_worker_info().id
    following = (rpc.get_worker_info().id + 1) % len(rpc.api._get_current_rpc_agent().peers)
    return rpc.rpc_sync(following, nested, args=(x, hops - 1)) + 1


def unregistered() -> int:
    return 1


def calls(rank: int, size: int) -> None:
    peer = (rank + 1) % size
    x = torch.arange(6.0).reshape(2, 3) + rank
    for to in (peer, f"worker{peer}", rpc.get_worker_info(f"worker{peer}"), rank):
        assert torch.equal(rpc.rpc_sync(to, torch.add, args=(x, 1)), x + 1)
        assert torch.equal(rpc.rpc_sync(to, torch.Tensor.mul, args=(x, x)), x * x)
        assert torch.equal(rpc.rpc_sync(to, torch.nn.functional.relu, args=(x - 3,)), (x - 3).relu())
        assert torch.equal(rpc.rpc_sync(to, scaled, args=(x,), kwargs={"add": 5}), x * 2 + 5)
        got_args, got_kwargs = rpc.rpc_sync(to, echo, args=tuple(values_of(rank)), kwargs={"a": x, "b": [x, (x, "t")]})
        assert_same(got_args, tuple(values_of(rank)))
        assert torch.equal(got_kwargs["b"][1][0], x)
        assert rpc.rpc_sync(to, echo, args=(torch.add, scaled)) == [(torch.add, scaled), {}]
    futures = [rpc.rpc_async(peer, scaled, args=(x, i)) for i in range(50)]
    for i, value in enumerate(wait_all(futures)):
        assert torch.equal(value, x * i)
    assert rpc.get_worker_info().name == f"worker{rank}" and rpc.get_worker_info("worker0").id == 0
    assert rpc.rpc_sync(peer, nested, args=(1, 2 * size)) == 1 + 2 * size + peer


def every_dtype(rank: int, size: int, dtypes: list) -> None:
    for name in dtypes:
        x = torch.arange(12).remainder(2).reshape(3, 4).to(getattr(torch, name))
        for layout in (x, x.t(), x[1:, ::2], x[0, 0], x[:0]):
            (back,), _ = rpc.rpc_sync((rank + 1) % size, echo, args=(layout,))
            assert back.dtype == layout.dtype and back.shape == layout.shape
            assert back.to(torch.float32).tolist() == layout.to(torch.float32).tolist()


def arguments_are_values(rank: int, size: int) -> None:
    """Later writes of the caller and of the function change neither."""
    peer = (rank + 1) % size
    for to in (peer, rank):
        x = torch.zeros(1000)
        future = rpc.rpc_async(to, torch.Tensor.add_, args=(x, 1))
        x.add_(10)
        assert future.wait().tolist() == [1.0] * 1000 and x.tolist() == [10.0] * 1000


def errors(rank: int, size: int) -> list[str]:
    peer = f"worker{(rank + 1) % size}"
    messages = []
    for kind, expected in (("value", ValueError), ("key", KeyError), ("zero", ZeroDivisionError), ("own", LookupError)):
        for to in (peer, rank):
            try:
                rpc.rpc_sync(to, fail, args=(kind, "the reason"))
            except Exception as error:  # noqa: BLE001
                assert type(error) is expected, error
                assert "the reason" in str(error) and "rpc_cases.py" in str(error), error
                messages.append(str(error))
    bad = rpc.rpc_sync(peer, torch.gather, args=(torch.ones(3), 0, torch.tensor([7])))  # fails in the engine
    try:
        bad.tolist()
    except IndexError as error:
        messages.append(str(error))
    return messages


def raised(function, *args, **kwargs) -> list[str]:
    """Returns the type and the message of the exception that a call raises."""
    try:
        function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001
        return [type(error).__name__, str(error)]
    return ["", ""]


class Custom:
    pass


@rpc.register
def custom():
    return Custom()


def refused(rank: int, size: int) -> list:
    peer = (rank + 1) % size
    agent = rpc.api._get_current_rpc_agent()
    x = torch.ones(2)
    return [
        raised(rpc.rpc_sync, peer, unregistered),
        raised(rpc.rpc_sync, peer, print),
        raised(rpc.rpc_sync, peer, lambda: 1),
        raised(rpc.rpc_sync, peer, "torch.add"),
        raised(rpc.rpc_sync, peer, torch.save, args=(x, "/tmp/x")),
        raised(rpc.rpc_sync, peer, echo, args=(Custom(),)),
        raised(rpc.rpc_sync, peer, custom),
        raised(rpc.rpc_sync, peer, echo, args=("x" * (9 << 20),)),
        raised(rpc.rpc_sync, "worker9", echo),
        raised(rpc.rpc_sync, 77, echo),
        raised(rpc.rpc_sync, None, echo),
        # What a hostile worker would send.
        raised(agent.call(agent.peers[peer], "builtins:eval", ["1"], {}).wait),
        raised(agent.call(agent.peers[peer], "os:system", ["true"], {}).wait),
        raised(agent.call(agent.peers[peer], ".no.such", [], {}).wait),
        raised(agent.call(agent.peers[peer], ".rref.fetch", [(peer, 10**6)], {}).wait),
        raised(agent.call(agent.peers[peer], ".autograd.reach", [5, 5, False, [1]], {}).wait),
        rpc.rpc_sync(peer, echo, args=(1,))[0][0],
    ]


def futures(rank: int, size: int) -> None:
    peer = (rank + 1) % size
    called = []
    future = rpc.rpc_async(peer, scaled, args=(3,))
    then = future.then(lambda f: rpc.rpc_sync(peer, scaled, args=(f.wait(),)))  # a callback may wait for a call
    assert then.wait() == 12 and future.done() and future.value() == 6
    future.add_done_callback(lambda f: called.append(f.value()))
    assert called == [6]
    failed = rpc.rpc_async(peer, fail, args=("value", "no"))
    assert raised(failed.wait)[0] == "ValueError" and raised(failed.then(lambda f: f.value()).wait)[0] == "RuntimeError"
    threads = [threading.Thread(target=calls, args=(rank, size)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@rpc.register
@rpc.functions.async_execution
def add_through(to: str, x, y):
    return rpc.rpc_async(to, torch.add, args=(x, y)).then(lambda f: f.wait() + 1)


@rpc.functions.async_execution
@rpc.register
def not_a_future():
    return 1


@rpc.register
def never():
    time.sleep(3)


def asynchronous(rank: int, size: int) -> None:
    peer, third = f"worker{(rank + 1) % size}", f"worker{(rank + 2) % size}"
    x = torch.ones(2) * rank
    # More calls than there are threads: none holds one.
    futures = [rpc.rpc_async(peer, add_through, args=(third, x, i)) for i in range(30)]
    for i, future in enumerate(futures):
        assert torch.equal(future.wait(), x + i + 1)
    assert torch.equal(rpc.remote(peer, add_through, args=(third, x, 1)).to_here(), x + 2)
    assert "async_execution" in raised(rpc.rpc_sync, peer, not_a_future)[1]


def timeouts(rank: int, size: int) -> list:
    peer = (rank + 1) % size
    found = [
        raised(rpc.rpc_sync, peer, never, timeout=0.05),
        raised(rpc.rpc_async(peer, never, timeout=0.05).wait),
        raised(rpc.remote(peer, never).to_here, timeout=0.05),
        raised(rpc.rpc_sync, peer, never),  # the default of the options
    ]
    assert rpc.rpc_sync(peer, scaled, args=(1,), timeout=0) == 2
    return found


@rpc.register
class Counter:
    def __init__(self, start: int):
        self.count = start

    def increase(self, by: int = 1) -> int:
        self.count += by
        return self.count

    def tensor(self):
        return torch.full((2,), float(self.count))

    def fail(self):
        raise ValueError("the method failed")

    def _private(self):
        return "secret"

    @rpc.functions.async_execution
    def through(self, to: str):
        return rpc.rpc_async(to, scaled, args=(self.count,))


@rpc.register
def counter_of(rref) -> int:
    return rref.to_here().count if rref.is_owner() else rref.rpc_sync().increase(0)


@rpc.register
def pass_on(rref, to: str):
    """Returns what another worker reads through the RRef."""
    return rpc.rpc_sync(to, counter_of, args=(rref,))


@rpc.register
def keep(rref) -> None:
    _kept.append(rref)


@rpc.register
def read_kept() -> int:
    return _kept[-1].rpc_sync().increase()


@rpc.register
def drop_kept() -> None:
    _kept.clear()


@rpc.register
def own_value():
    return rpc.RRef(torch.full((2,), 7.0))


@rpc.register
def table_counts() -> tuple:
    gc.collect()
    agent = rpc.api._get_current_rpc_agent()
    agent.timers.wait()
    return agent.rrefs.counts()


_kept: list = []


def references(rank: int, size: int) -> None:
    peer, third = f"worker{(rank + 1) % size}", f"worker{(rank + 2) % size}"
    for to in (peer, f"worker{rank}"):
        rref = rpc.remote(to, Counter, args=(10,))
        assert rref.owner_name() == to and rref.owner() == rpc.get_worker_info(to)
        assert rref.is_owner() == (to == f"worker{rank}")
        assert rref.rpc_sync().increase() == 11 and rref.rpc_async().increase(by=4).wait() == 15
        assert rref.remote().tensor().to_here().tolist() == [15.0, 15.0]
        assert rref.rpc_sync().through(peer) == 30
        assert rref.confirmed_by_owner()
        assert raised(rref.rpc_sync().fail)[0] == "ValueError"
        assert raised(rref.rpc_sync()._private)[0] == "AttributeError"
        assert rpc.rpc_sync(to, counter_of, args=(rref,)) == 15  # to its owner
        assert rpc.rpc_sync(third, counter_of, args=(rref,)) == 15  # to a third worker
        assert rpc.rpc_sync(peer, pass_on, args=(rref, third)) == 15
        assert rpc.rpc_sync(third, echo, args=([rref],))[0][0][0].rpc_sync().increase(0) == 15  # and back
    assert rpc.remote(peer, torch.add, args=(torch.ones(2), 1)).to_here().tolist() == [2, 2]
    module = rpc.remote(peer, torch.nn.Linear, args=(3, 2))
    assert module.rpc_sync().forward(torch.ones(1, 3)).shape == (1, 2)
    theirs = rpc.rpc_sync(peer, own_value)
    assert theirs.to_here().tolist() == [7, 7] and theirs.is_owner() == (size == 1)
    if size > 1:
        assert raised(theirs.local_value)[0] == "RuntimeError"
    mine = rpc.RRef({"a": 1})
    assert mine.is_owner() and mine.local_value() == {"a": 1} and mine.to_here() is mine.local_value()
    assert raised(rpc.remote(peer, fail, args=("key", "x")).to_here)[0] == "KeyError"
    assert raised(rpc.remote(peer, custom).rpc_sync().x)[0] == "PermissionError"


def reference_counts(rank: int, size: int) -> None:
    """Values are freed when no worker refers to them."""
    if rank == 0:
        for holder in (1, 2):  # the owner, a third worker
            rref = rpc.remote(1, Counter, args=(0,))
            rpc.rpc_sync(holder, keep, args=(rref,))
            del rref
            gc.collect()
            rpc.api._get_current_rpc_agent().timers.wait()
            assert rpc.rpc_sync(holder, read_kept) == 1, "the other reference keeps the value"
            rpc.rpc_sync(holder, drop_kept)
            assert rpc.rpc_sync(holder, table_counts) == (0, 0)
            for _ in range(200):  # the holder's message may be on its way
                if rpc.rpc_sync(1, table_counts) == (0, 0):
                    break
                time.sleep(0.01)
            assert rpc.rpc_sync(1, table_counts) == (0, 0)
            assert table_counts() == (0, 0)


def in_a_group(rank: int, size: int, port: int) -> None:
    """Calls and collectives together: a worker executes the calls of others while it waits for a collective."""
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", world_size=size, rank=rank)
    for i in range(5):
        x = torch.full((3,), float(rank))
        dist.all_reduce(x)
        y = rpc.rpc_sync((rank + 1) % size, torch.add, args=(x, rank))
        if i % 2:
            dist.all_reduce(y)
        else:
            work = dist.all_reduce(y, async_op=True)
            z = rpc.rpc_sync((rank + 1) % size, torch.add, args=(x, 1))
            work.wait()
            assert z.tolist() == [sum(range(size)) + 1] * 3
        assert y.tolist() == [size * sum(range(size)) + sum(range(size))] * 3
        dist.barrier()
    dist.destroy_process_group()


def large_tensors(rank: int, size: int) -> None:
    x = torch.arange(3_000_000.0) + rank
    back = rpc.rpc_sync((rank + 1) % size, torch.neg, args=(x,))
    assert torch.equal(back, -x)
    array = np.arange(1000)
    (same,), _ = rpc.rpc_sync((rank + 1) % size, echo, args=(array,))
    assert (same == array).all()
