"""Hostile arguments: of wrong sizes, raising exceptions, changing while they are read, or of another session.

Each must cause a Python exception, never a crash, a wrapped-around value or the end of the session. Found by reviewing
python/bindings and by tests/fuzz/api_fuzz.py.
"""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.test_session import run_script


class Raises:
    """Raises from every method."""

    def _raise(self, *_, **__):
        raise ZeroDivisionError("asked")

    __index__ = __int__ = __float__ = __complex__ = __len__ = __iter__ = __getitem__ = __bool__ = _raise
    __array_interface__ = property(_raise)


class Runs:
    """Calls a function when converted to a number."""

    def __init__(self, function, value=0):
        self.function, self.value = function, value

    def __index__(self):
        self.function()
        return self.value

    def __float__(self):
        self.function()
        return float(self.value)


def test_generator_is_not_a_list_of_tensors(torch):
    """Formerly its tensors were freed before the call, and the engine ended the session."""
    x = torch.ones(2)
    for function in (torch.cat, torch.stack):
        with pytest.raises(TypeError, match="tuple of Tensors, not generator"):
            function(x * i for i in range(3))
    assert x.tolist() == [1, 1]


def test_sequence_that_creates_its_tensors(torch):
    class Sequence:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            if i >= 3:
                raise IndexError
            return torch.full((1,), float(i))

    assert torch.cat(Sequence()).tolist() == [0, 1, 2]


def test_lists_that_change_while_they_are_read(torch):
    def clear():
        tensors.clear()
        numbers.clear()
        gc.collect()

    tensors, numbers = [], []
    for call in (
        lambda: torch.cat(tensors, dim=Runs(clear)),
        lambda: torch.tensor(numbers),
        lambda: torch.zeros(numbers),
        lambda: torch.zeros(3, 3).permute(numbers),
        lambda: torch.ones(3)[numbers],
    ):
        tensors[:] = [torch.full((2,), float(i)) for i in range(64)]
        numbers[:] = [Runs(clear, 1), 0]
        try:
            call().tolist()
        except (IndexError, ValueError, TypeError, RuntimeError):
            pass
    tensors[:] = [torch.full((2,), float(i)) for i in range(64)]
    assert torch.cat(tensors, dim=Runs(clear)).tolist() == [float(i // 2) for i in range(128)]


def test_tensor_that_changes_while_it_is_passed(torch):
    """The handle that the call refers to must live until the call is made."""
    for change in (lambda t: t.unsqueeze_(0), lambda t: torch._C.become(t, torch.zeros(1)), lambda t: t.detach_()):
        x = torch.full((4, 4), 2.0) * 1
        assert torch.cumsum(x, Runs(lambda: change(x), 1))[0].tolist() == [2.0, 4.0, 6.0, 8.0]  # noqa: B023
        x = torch.full((4, 4), 2.0) * 1
        assert (x * Runs(lambda: change(x), 3)).tolist() == [[6.0] * 4] * 4  # noqa: B023


def test_tensor_that_changes_while_its_call_waits(torch):
    x = torch.arange(1000.0)
    stop = threading.Event()

    def replace():
        while not stop.wait(0.001):  # limits the queued work that the main thread waits for
            x.data = torch.arange(1000, dtype=torch.float64)
            x.data = torch.arange(1000, dtype=torch.float32)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(30):
            assert x.nonzero().shape == (999, 1)
    finally:
        stop.set()
        thread.join()


def test_exceptions_reach_the_caller(torch):
    x = torch.ones(2, 2)
    for call in (
        lambda: torch.sum(x, Raises()), lambda: x[Raises()], lambda: torch.zeros(Raises()), lambda: torch.tensor(Raises()),
        lambda: torch.tensor([1, Raises()]), lambda: torch.cat(Raises()), lambda: x + Raises(), lambda: x < Raises(),
        lambda: x.size(Raises()), lambda: torch.device("cpu", Raises()), lambda: torch.Size([Raises()]), lambda: x.fill_(Raises()),
        lambda: torch.zeros(2, requires_grad=Raises()), lambda: x.permute(Raises()), lambda: torch.full((2,), Raises()),
        lambda: x.__setitem__(0, Raises()), lambda: torch.conv2d(x, x, stride=Raises()), lambda: torch.clamp(x, Raises(), 1),
    ):  # fmt: skip
        with pytest.raises((ZeroDivisionError, TypeError, IndexError, ValueError, RuntimeError)):
            call()
    assert x.tolist() == [[1, 1], [1, 1]]


# Each of these formerly returned a wrapped-around number or raised SystemError.
BEYOND = [
    lambda t: t.sum(t.ones(2), dim=10**30), lambda t: t.sum(t.ones(2), dim=2**64 - 1), lambda t: t.ones(2).size(2**70),
    lambda t: t.narrow(t.ones(9), 0, 2**64 - 1, 1), lambda t: t.max_pool2d(t.ones(1, 4, 4), 2**70), lambda t: t.zeros(2**64),
    lambda t: t.device(2**70), lambda t: t.device("cuda", 2**70), lambda t: t.Size([2**62, 2**62]).numel(),
    lambda t: t.tensor([300], dtype=t.uint8), lambda t: t.tensor([-300], dtype=t.uint8), lambda t: t.tensor([2**31], dtype=t.int32),
    lambda t: t.tensor([float("nan")], dtype=t.int64), lambda t: t.tensor(float("inf"), dtype=t.int8), lambda t: t.tensor([2**63]),
    lambda t: t.tensor([2.0**63], dtype=t.int64), lambda t: t.tensor([-1], dtype=t.uint64), lambda t: t.tensor([1e30], dtype=t.int64),
    lambda t: float(t.tensor(1 + 2j)),
]  # fmt: skip


@pytest.mark.parametrize("call", BEYOND)
def test_numbers_do_not_wrap_around(torch, call):
    with pytest.raises((RuntimeError, TypeError, ValueError), match="overflow|Overflow|beyond 64 bits"):
        call(torch)


def test_numbers_that_fit(torch):
    assert torch.tensor([-1], dtype=torch.uint8).tolist() == [255]  # as in PyTorch
    assert torch.tensor([2**64 - 1], dtype=torch.uint64).tolist() == [2**64 - 1]
    assert torch.tensor([2.0**63], dtype=torch.uint64).tolist() == [2**63]
    assert torch.tensor([-(2.0**63), 1.9], dtype=torch.int64).tolist() == [-(2**63), 1]
    assert torch.tensor([float("nan"), 0.0], dtype=torch.bool).tolist() == [True, False]
    assert torch.tensor([1e300]).isinf().all()


def test_sizes(torch):
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'str'\)"):
        torch.Size([1, "a"])
    with pytest.raises(TypeError, match="takes an iterable of 'int'"):
        torch.Size([1.0])
    size = torch.Size([np.int64(3), 4])
    assert size == (3, 4) and type(size[0]) is int and size.numel() == 12
    assert type(size + (1,)) is type(size[:1]) is type(size * 2) is torch.Size and size[0] == 3


class InvalidArrayInterface:
    """An array whose __array_interface__ may be false."""

    def __init__(self, **interface):
        self.__array_interface__ = {"shape": (2,), "typestr": "<f4", "data": (0, False), "version": 3, **interface}


def test_buffers(torch):
    import ctypes

    class Item(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_float)]  # noqa: RUF012

    for value in (
        np.zeros(2, dtype=">f4"), np.array([None]), np.array(["a"]), np.zeros(2, dtype=np.longdouble), (Item * 2)(),
        np.zeros(2, dtype="M8[s]"), np.zeros(2, dtype=[("a", "f4")]), (ctypes.c_void_p * 2)(), memoryview(b"ab").cast("c"),
        InvalidArrayInterface(), b"ab", "ab", None, {}, {1}, object(),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            torch.tensor(value)
    x = np.arange(24.0).reshape(2, 3, 4)
    for view in (x[::-1], x[:, ::2], x.T, x[..., ::-2], np.broadcast_to(np.float32(1), (3, 2)), x[:0], np.array(1.0), memoryview(x)):
        assert torch.tensor(view).tolist() == np.asarray(view).tolist()
    strided = np.lib.stride_tricks.as_strided(x, (5, 5), (8, 8))
    assert torch.tensor(strided).tolist() == strided.tolist()
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        torch._C.read_into(torch.ones(2), bytearray(3))
    with pytest.raises((BufferError, ValueError, TypeError)):
        torch._C.read_into(torch.ones(2), bytes(8))
    for size in ([-1, -2], [2**62, 2**62], [2**32, 2**32, 2**32, 2**32]):
        with pytest.raises(ValueError, match="does not match"):
            torch._C.from_bytes(b"\0" * 8, torch.float32, size, "cpu")


def test_nesting(torch):
    nested = []
    nested.append(nested)
    index = []
    index.append(index)
    x = torch.ones(2)
    for call in (lambda: torch.tensor(nested), lambda: torch.as_tensor(nested), lambda: x[index], lambda: torch.zeros(nested),
                 lambda: torch.cat(nested), lambda: torch.tensor([[1], [1, 2]]), lambda: torch.tensor([1, [2]])):  # fmt: skip
        with pytest.raises((ValueError, TypeError, IndexError, RuntimeError)):
            call()


def test_none_for_a_required_tensor(torch):
    x = torch.ones(2, requires_grad=True)
    loss = (x * 2).sum()
    for call in (
        lambda: torch._C.backward([None], [None], False, False, []),
        lambda: torch._C.backward([loss], [None], False, False, [None]),
        lambda: torch._C.backward([loss], [], False, False, []),
        lambda: torch._C.grad([loss], [None], [None], False, False, False),
        lambda: torch._C.grad([None], [None], [x], False, False, False),
        lambda: torch._C.set_grads([None], [None]),
        lambda: torch._C.set_grads([x], []),
        lambda: torch._C.custom_function([], [x], lambda *_: []),
        lambda: torch._C.ops.backward([loss], [None], [x], False, True),
        lambda: torch._C.become(x, None),
        lambda: torch._C.Admin.__new__(torch._C.Admin).address,
        lambda: torch._C.Connection.__new__(torch._C.Connection).counters(),
    ):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            call()
    loss.backward()
    assert x.grad.tolist() == [2, 2]


def test_wrong_number_of_out_tensors(torch):
    x = torch.tensor([1.0, 0.0])
    for call in (lambda: torch.nonzero(x, out=(x, x)), lambda: torch.sort(x, out=(x,)), lambda: torch.add(x, x, out=(x, x, x)),
                 lambda: torch.masked_select(x, x > 0, out=[x])):  # fmt: skip
        with pytest.raises((TypeError, RuntimeError, ValueError)):
            call()


def test_text_that_is_not_utf8(torch):
    x = torch.ones(2)
    for call in (lambda: torch.device("\ud800"), lambda: torch.device("cpu\0"), lambda: torch.sum(x, **{"\ud800": 1}),
                 lambda: x.to("\udfff")):  # fmt: skip
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            call()
    code = compile("y = x + 1", "caf\udce9.py", "exec")  # a file name with undecodable bytes, as Python decodes it
    scope = {"x": x}
    exec(code, scope)  # noqa: S102
    assert scope["y"].tolist() == [2, 2]


def test_subclasses(torch):
    class Slotted(torch.Tensor):
        __slots__ = ("extra",)

        def __del__(self):
            seen.append(1)

    seen: list[int] = []
    x = Slotted(torch.ones(2))
    x.extra = x.other = x
    y = Slotted(torch.ones(2))
    reference = weakref.ref(y)
    assert (y + 1).tolist() == [2, 2]
    del y
    gc.collect()
    assert reference() is None and seen == [1, 1]  # the sum was a Slotted too
    x.extra = x.other = None
    del x
    with pytest.raises(TypeError):
        object.__new__(torch.Tensor)
    with pytest.raises(TypeError):
        object.__new__(torch.dtype)
    with pytest.raises(TypeError):
        type("Both", (torch.Tensor, torch.Size), {})
    plain = torch.ones(2)
    with pytest.raises(TypeError):
        plain.__class__ = int
    assert (plain * 2).tolist() == [2, 2]


def test_references_on_failed_paths(torch):
    """Arguments of a refused call are released."""
    import sys

    item, numbers = object(), [1, "a"]
    x = torch.ones(2)
    before = sys.getrefcount(item), sys.getrefcount(numbers), sys.getrefcount(x)
    for _ in range(50):
        for call in (lambda: torch.cat([x, item]), lambda: torch.tensor([1, item]), lambda: torch.sum(x, numbers), lambda: x[item],
                     lambda: torch.device("cpu", item), lambda: x.size(item), lambda: torch.add(x, item),
                     lambda: torch.Size([1, item])):  # fmt: skip
            with pytest.raises((TypeError, IndexError, RuntimeError)):
                call()
    assert (sys.getrefcount(item), sys.getrefcount(numbers), sys.getrefcount(x)) == before


@pytest.mark.skipif(IN_PROCESS, reason="opens additional sessions")
def test_tensors_of_a_session_that_ended(daemon):
    script = """
import os, pytest
import teletensor as torch
x, w = torch.ones(3), torch.ones(3, requires_grad=True)
loss = (w * 2).sum()
old = torch.connection()
torch.disconnect()
def refused():
    for call in (lambda: x + 1, lambda: x.tolist(), lambda: x[0].item(), lambda: loss.backward(), lambda: x.nonzero(),
                 lambda: torch.tensor(x),
                 lambda: torch.cat([x, x]), lambda: x.add_(1), lambda: x.copy_(x), lambda: w.requires_grad_(False), lambda: x.numpy(),
                 lambda: setattr(w, "grad", x), lambda: old.synchronize(), lambda: old.flush(), lambda: bool(x[0])):
        with pytest.raises((ConnectionError, RuntimeError)):
            call()
refused()
y = torch.ones(3)
for call in (lambda: x + y, lambda: y + x, lambda: y.add_(x), lambda: torch.add(y, y, out=x), lambda: torch.cat([y, x]),
             lambda: y.__setitem__(0, x[0]),
             lambda: torch.autograd.backward([loss, (y.requires_grad_() * 2).sum()]), lambda: y.__getitem__(x)):
    with pytest.raises((ConnectionError, RuntimeError, IndexError)):
        call()
refused()
old.close()
del x, w, loss, old
print((torch.ones(3) + 1).tolist())
"""
    run = run_script(script, daemon)
    assert run.stdout.strip() == "[2.0, 2.0, 2.0]" and run.returncode == 0, run.stderr


@pytest.mark.skipif(IN_PROCESS, reason="opens additional sessions")
def test_a_forked_child(daemon):
    """The session belongs to the parent: the child gets an error and exits cleanly, and the parent is not affected."""
    script = """
import os, sys
import teletensor as torch
x = torch.ones(3)
torch.synchronize()
child = os.fork()
if child == 0:
    code = 3
    try:
        x + 1
        x.tolist()
    except (ConnectionError, RuntimeError) as e:
        code = 7 if "fork" in str(e) else 4
    del x
    os._exit(code) if sys.argv[-1] == "now" else sys.exit(code)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), (x + 1).tolist())
"""
    run = run_script(script, daemon)
    assert run.stdout.strip() == "7 [2.0, 2.0, 2.0]" and run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("function", ["set_thread_generator", "read_into", "PendingRead", "handle_number"])
def test_functions_below_the_operators_take_tensors_only(torch, function):
    """``set_thread_generator(7)`` formerly ended the process."""
    arguments = (7, bytearray(8)) if function == "read_into" else (7,)
    with pytest.raises(TypeError, match="expected a Tensor, got int"):
        getattr(torch._C, function)(*arguments)
