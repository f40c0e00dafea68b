"""Published tensors: one copy for many sessions, read-only for all of them, for those who may open it."""

from __future__ import annotations

import itertools
import json
import pickle
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest

import teletensor as torch
import teletensor.distributed as dist
import teletensor.multiprocessing  # noqa: F401 - registers how tensors are pickled
import teletensor.nn as nn
import teletensor.nn.functional as F
from tests.conftest import IN_PROCESS, eventually, not_sanitized
from tests.python.distributed.ranks import free_port
from tests.python.session.test_principals import engine, run, user  # noqa: F401 - a fixture
from tests.python.session.test_quotas import MIB, clients  # noqa: F401 - a fixture

pytestmark = pytest.mark.slow

needs_daemon = pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")
REFUSED = "a published tensor is read-only"
_numbers = itertools.count()


@pytest.fixture
def name():
    made = f"test_{next(_numbers)}"
    yield made
    if any(each["name"] == made for each in torch.published()):
        torch.unpublish(made)


def test_state_dict_of_a_module(name):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval()
    assert torch.publish(name, model) == 4 * (12 + 3 + 4 * 3) + 8
    opened = torch.open(name)
    assert list(opened) == list(model.state_dict())
    for key, value in model.state_dict().items():
        assert torch.equal(opened[key], value) and opened[key].dtype == value.dtype
        assert opened[key].is_leaf and not opened[key].requires_grad
    with torch.device("meta"):
        served = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval()
    served.load_state_dict(opened, assign=True)
    x = torch.randn(5, 4)
    assert torch.equal(served(x), model(x))
    (listed,) = [each for each in torch.published() if each["name"] == name]
    assert (listed["tensors"], listed["sessions"], listed["read_only"], listed["to"]) == (7, 1, True, [])
    # Training ends at the first write, at its line.
    model.train()
    with pytest.raises(RuntimeError, match=REFUSED):
        model(x)
    model.eval()
    assert torch.equal(served(x), model(x))


def test_layouts_dtypes_and_ties(name):
    base = torch.arange(24, dtype=torch.float32)
    tensors = {
        "plain": torch.randn(2, 3), "scalar": torch.tensor(3), "empty": torch.empty(0, 5), "flag": torch.tensor([True, False]),
        "complex": torch.tensor([1 + 2j]), "half": torch.ones(3, dtype=torch.bfloat16), "small": torch.ones(3).to(torch.float8_e4m3fn),
        "last": torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last), "turned": base.view(4, 6).T,
        "part": base[3:7], "bytes": base.view(torch.uint8)[:5], "layer": {"weight": base, "deep": {"bias": torch.zeros(1)}},
    }  # fmt: skip
    torch.publish(name, tensors)
    opened = torch.open(name)
    assert list(opened)[-2:] == ["layer.weight", "layer.deep.bias"]
    expected = {**tensors, **{"layer.weight": base, "layer.deep.bias": tensors["layer"]["deep"]["bias"]}}
    for key, value in opened.items():
        assert (value.shape, value.stride(), value.dtype) == (expected[key].shape, expected[key].stride(), expected[key].dtype), key
        assert torch.equal(value.view(torch.uint8) if key == "small" else value,
                           expected[key].view(torch.uint8) if key == "small" else expected[key]), key  # fmt: skip
    assert opened["turned"].untyped_storage() == opened["part"].untyped_storage() == opened["layer.weight"].untyped_storage()
    single = torch.randn(3)
    torch.unpublish(name)
    torch.publish(name, single)
    assert torch.equal(torch.open(name), single)


# Every way to write to a tensor `w` of six ones.
WRITES = {
    "in place": lambda w: w.add_(1),
    "out": lambda w: torch.add(torch.ones(6), 1, out=w),
    "out of two": lambda w: torch.max(torch.zeros(6, 2), 1, out=(w, torch.empty(6, dtype=torch.int64))),
    "index": lambda w: w.__setitem__(0, 5),
    "view": lambda w: w.view(2, 3)[1].fill_(0),
    "data": lambda w: w.data.zero_(),
    "detach": lambda w: w.detach().mul_(2),
    "copy": lambda w: w.copy_(torch.zeros(6)),
    "set": lambda w: torch.empty(0).set_(w).zero_(),
    "set storage": lambda w: torch.empty(0).set_(w.untyped_storage(), 0, (6,), (1,)).zero_(),
    "storage": lambda w: w.untyped_storage().fill_(0),
    "parameter": lambda w: nn.init.zeros_(nn.Parameter(w)),
    "scatter": lambda w: w.scatter_(0, torch.tensor([1]), torch.tensor([5.0])),
    "foreach": lambda w: torch._foreach_add_([torch.ones(2), w], 1),
    "buffers": lambda w: F.batch_norm(torch.randn(4, 6), w, torch.ones(6), training=True),
    "random": lambda w: w.normal_(),
}


def step(w, optimizer, **options):
    parameter = nn.Parameter(w)
    parameter.grad = torch.ones(6)
    optimizer([parameter], lr=0.1, **options).step()


WRITES["sgd"] = lambda w: step(w, torch.optim.SGD)
WRITES["sgd, each"] = lambda w: step(w, torch.optim.SGD, foreach=False)
WRITES["adamw"] = lambda w: step(w, torch.optim.AdamW)


def test_writes_are_refused_at_their_line(name):
    published = torch.ones(6)
    alias = published.view(3, 2)
    torch.publish(name, {"w": published})
    opened = torch.open(name)["w"]
    for how, write in WRITES.items():
        for tensor in (opened, published):
            with pytest.raises(RuntimeError, match=REFUSED) as error:
                write(tensor)
            assert error.traceback[1].path == Path(__file__), how
    with pytest.raises(RuntimeError, match=REFUSED):
        alias.zero_()
    torch.unpublish(name)
    with pytest.raises(RuntimeError, match=REFUSED):  # others may still read the bytes
        published.zero_()
    assert published.tolist() == opened.tolist() == alias.flatten().tolist() == [1.0] * 6
    # What is no write: copies, rebinding, gradients.
    copy = opened.clone().add_(1)
    assert copy.tolist() == [2.0] * 6
    parameter = nn.Parameter(opened)
    (parameter * copy).sum().backward()
    assert parameter.grad.tolist() == [2.0] * 6
    parameter.data = copy
    assert parameter.add(0).tolist() == [2.0] * 6 and opened.tolist() == [1.0] * 6


def test_gradients_are_not_accumulated_in_published_bytes(name):
    torch.publish(name, torch.ones(4))
    x = torch.zeros(4, requires_grad=True)
    for _ in range(2):
        y = x + x
        y.backward(torch.open(name))  # whose last reference is the backward pass's
    assert x.grad.tolist() == [4.0] * 4
    assert torch.open(name).tolist() == [1.0] * 4


def test_tensors_that_may_be_written(name):
    shared = torch.zeros(3)
    torch.publish(name, shared, read_only=False)
    torch.open(name).add_(1)
    assert shared.tolist() == [1.0] * 3
    with pytest.raises(RuntimeError, match="got one that is shared"):
        torch.publish("again", shared)
    with pytest.raises(ValueError, match="for sessions of the same principal"):
        torch.publish("again", torch.zeros(3), to="bob", read_only=False)


def test_invalid_arguments(name):
    for value, text in ((3, "a tensor, a mapping of tensors or a module, got int"), ({"a": 1}, "the value of 'a', got int"),
                        ({1: torch.ones(1)}, "str as keys, got int"), ({"a": {"b": None}}, "of 'a.b', got NoneType")):  # fmt: skip
        with pytest.raises(TypeError, match=text):
            torch.publish(name, value)
    with pytest.raises(TypeError, match="names of principals in `to`, got int"):
        torch.publish(name, torch.ones(1), to=[3])
    x = torch.ones(1)
    for bad, arguments in (("a/b", {}), ("", {}), ("ok", {"to": ["a b"]}), ("ok", {"to": "a\nb"})):
        with pytest.raises(ValueError, match=r"\[publish\] expected"):
            torch.publish(bad, x, **arguments)
    with pytest.raises(ValueError, match="keys without line breaks"):
        torch.publish(name, {"a\nb": x})
    with pytest.raises(ValueError, match="at least one tensor"):
        torch.publish(name, {})
    with pytest.raises(ValueError, match="the key \"a.b\" occurs twice"):
        torch.publish(name, {"a": {"b": x}, "a.b": x})
    with pytest.raises(NotImplementedError, match="got a meta tensor"):
        torch.publish(name, torch.ones(1, device="meta"))
    failed = torch.ones(2).index_select(0, torch.tensor([5]))
    with pytest.raises(IndexError):
        torch.publish(name, {"x": x, "failed": failed})
    x.add_(1)  # nothing was published, so nothing is read-only
    torch.publish(name, x)
    with pytest.raises(ValueError, match="already: unpublish it first"):
        torch.publish(name, x)
    with pytest.raises(ValueError, match="has published nothing as \"none\""):
        torch.open("none")
    with pytest.raises(ValueError, match="expected one principal"):
        torch.open("a/none", principal="b")


@needs_daemon
def test_processes_receive_read_only_tensors(name):
    torch.publish(name, torch.ones(3))
    received = pickle.loads(ForkingPickler.dumps(torch.open(name)))
    with pytest.raises(RuntimeError, match=REFUSED):
        received.add_(1)
    assert received.tolist() == [1.0] * 3


@needs_daemon
def test_collectives_do_not_write_to_published_tensors(name):
    dist.init_process_group("gloo", f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=1)
    try:
        x = torch.ones(3)
        work = dist.all_reduce(x, async_op=True)
        with pytest.raises(RuntimeError, match="all collectives of the session have been waited for"):
            torch.publish(name, x)
        work.wait()
        torch.publish(name, x)
        for collective in (lambda: dist.all_reduce(x), lambda: dist.broadcast(torch.open(name), 0)):
            with pytest.raises(RuntimeError, match=REFUSED):
                collective()
        assert x.tolist() == [1.0] * 3
    finally:
        dist.destroy_process_group()


OPEN = "w = torch.open({!r})"
SUM = "w.sum().item()"


@needs_daemon
def test_principals(engine, clients):  # noqa: F811
    tokens = {who: user(engine.file, "add", who, *(("--role", "operator") if who == "root" else ()))
              for who in ("alice", "bob", "carol", "root")}  # fmt: skip
    engine.start()
    alice, bob, carol = (clients(engine, tokens[who]) for who in ("alice", "bob", "carol"))
    assert alice("torch.publish('net', {'w': torch.ones(1000)}, to=['bob'])") == 4000
    assert alice("torch.publish('kept', torch.full((10,), 2.0), to='*', persist=True)") == 40
    assert bob("w = torch.open('alice/net')['w']") is None and bob(SUM) == 1000
    refused = carol(OPEN.format("alice/net"))
    assert refused.startswith(
        'ValueError: [open_publication] alice has published nothing as "net" that carol may use: there is no such publication, it '
        "has ended, or it is for others"
    )
    assert carol(OPEN.format("alice/nix")) == refused.replace("net", "nix")
    assert carol(OPEN.format("zelda/net")) == refused.replace("alice", "zelda")
    assert REFUSED in bob("w.add_(1)") and bob(SUM) == 1000
    listed = bob("torch.published()")
    assert [(each["name"], each["principal"], each["sessions"], each["to"]) for each in listed] == [
        ("kept", "alice", 0, ["*"]), ("net", "alice", 1, None)]  # fmt: skip
    assert [each["name"] for each in carol("torch.published()")] == ["kept"]

    def command(who: str, *words: str):
        return run("--address", engine.address, "--token", tokens[who], *words)

    assert json.loads(command("bob", "published", "--json").stdout) == bob("torch.published()")
    assert "read only" in command("alice", "published").stdout
    denied = command("bob", "unpublish", "alice/net")
    assert denied.returncode == 1 and "that bob may use" in denied.stderr
    # The publisher is killed: its session, and what does not persist, end; what bob has opened stays.
    alice.process.kill()
    eventually(lambda: [each["name"] for each in bob("torch.published()")] == ["kept"])
    assert bob(SUM) == 1000
    assert "has published nothing" in bob("torch.open('alice/net')")
    assert bob("torch.open('alice/kept').sum().item()") == 20
    ended = command("root", "unpublish", "alice/kept")
    assert ended.returncode == 0 and ended.stdout == "alice/kept was unpublished\n"
    assert bob("torch.published()") == []
    # Revocation ends publications.
    second = clients(engine, tokens["alice"])
    second("torch.publish('again', torch.ones(4), to='bob', persist=True)")
    bob("w = torch.open('alice/again')")
    user(engine.file, "revoke", "alice")
    eventually(lambda: bob("torch.published()") == [])
    assert "has published nothing" in bob("torch.open('alice/again')") and bob(SUM) == 4
    outcomes = [(each["principal"], each["outcome"], each["reason"]) for each in engine.records("publication.open")]
    assert ("bob", "ok", "alice/net") in outcomes
    assert ("carol", "permission_denied", "alice/net: it is published to others") in outcomes
    assert ("carol", "not_found", "alice/nix: there is no such publication") in outcomes
    assert [each["principal"] for each in engine.records("publication.publish")] == ["alice"] * 3
    assert [(each["principal"], each["outcome"]) for each in engine.records("publication.unpublish")] == [
        ("bob", "permission_denied"), ("root", "ok")]  # fmt: skip


ONES = "w = torch.ones({}, dtype=torch.uint8); torch.synchronize()"


@needs_daemon
def test_quotas_count_the_bytes_once(engine, clients):  # noqa: F811
    alice, bob = user(engine.file, "add", "alice", "--memory", "256MB"), user(engine.file, "add", "bob", "--memory", "32MB")
    engine.start()
    first, second, other = clients(engine, alice), clients(engine, alice), clients(engine, bob)
    first(ONES.format(100 * MIB))
    assert first("torch.publish('w', w, to='*', persist=True)") == 100 * MIB
    second(OPEN.format("w"))
    assert second(SUM) == 100 * MIB  # the publication, two sessions: once
    more = "x = torch.ones({}, dtype=torch.uint8); torch.synchronize(); x[0].item()"
    assert "OutOfMemoryError" in second(more.format(160 * MIB)) and second(more.format(100 * MIB)) is None
    # The publisher and its other session end; the publication stays, and is charged.
    first.end()
    second.end()
    third = clients(engine, alice)
    eventually(lambda: "the sessions of alice hold 1" in third(more.format(156 * MIB)))  # besides its own bookkeeping
    assert third(more.format(100 * MIB)) is None
    third("x = None; torch.synchronize()")
    refused = other(OPEN.format("alice/w"))
    assert refused.startswith("OutOfMemoryError") and "the sessions of bob hold" in refused
    assert other("torch.ones(3).sum().item()") == 3
    third("torch.unpublish('w')")
    assert third(more.format(156 * MIB)) is None


@needs_daemon
@not_sanitized("it measures resident memory, to which shadow memory adds")
def test_four_sessions_use_one_copy(engine, clients):  # noqa: F811
    tokens = [user(engine.file, "add", who) for who in ("alice", "bob")]
    engine.start()
    sessions = [clients(engine, tokens[i % 2]) for i in range(5)]
    for session in sessions:
        session("torch.ones(2).sum().item()")

    def memory() -> int:
        fields = Path(f"/proc/{engine.process.pid}/status").read_text().split("VmRSS:")[1].split()
        return int(fields[0]) << 10

    before = memory()
    assert sessions[0]("model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(6)))") is None
    size = sessions[0]("torch.publish('model', model, to='bob')")
    assert size == 6 * 4 * (2048 * 2048 + 2048)
    for session in sessions[1:]:
        session("w = torch.open('alice/model')")
    sums = [session("[v.sum().item() for v in w.values()]") for session in sessions[1:]]
    assert np.all(np.array(sums) == sums[0])
    assert memory() - before < 1.2 * size
    # The CPU's library may prefer weights in another layout: the sessions use one more copy together, not one each.
    forward = "y = torch.ones(8, 2048); y = [y := F.linear(y, w[f'{i}.weight'], w[f'{i}.bias']) for i in range(6)][-1].sum().item()"
    for session in sessions[1:]:
        session("F = torch.nn.functional")
        for _ in range(3):
            session(forward)
    results = [session("y") for session in sessions[1:]]
    assert results[0] is not None and results == [results[0]] * 4
    assert memory() - before < 2.3 * size
