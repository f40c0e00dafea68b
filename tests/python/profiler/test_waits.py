"""no_sync() and set_sync_debug_mode(): calls that wait raise or warn."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.conftest import IN_PROCESS


def _wait_for_pending(x):
    for _ in range(50):  # some values may arrive before they are waited for
        (x @ x).numpy_async().wait()


WAITS = {
    "item": lambda t, x: x.sum().item(),
    "float": lambda t, x: float(x.sum()),
    "condition": lambda t, x: bool(x.sum() > 0),
    "numpy": lambda t, x: x.numpy(),
    "large numpy": lambda t, x: x.repeat(100, 100).numpy(),
    "tolist": lambda t, x: x.tolist(),
    "repr": lambda t, x: repr(x),
    "sizes": lambda t, x: t.nonzero(x),
    "mask": lambda t, x: x[x > 0],
    "pending value": lambda t, x: _wait_for_pending(x.repeat(30, 30)),
}
FREE = {
    "operator": lambda t, x: (x @ x).sum(),
    "factory": lambda t, x: t.zeros(3, 3),
    "small upload": lambda t, x: t.tensor(np.ones((10, 10))),
    "backward": lambda t, x: (x.clone().requires_grad_() * 2).sum().backward(),
    "explicit": lambda t, x: t.synchronize(),
    "shape": lambda t, x: x.view(-1).shape[0] + x.numel(),
}


if not IN_PROCESS:  # uploads in the background need a connection
    FREE["upload in the background"] = lambda t, x: t.tensor(np.ones((100, 100)))


@pytest.mark.parametrize("name", WAITS)
def test_wait_raises(torch, name):
    x = torch.rand(8, 8)
    with torch.no_sync(), pytest.raises(RuntimeError, match=r"\[no_sync\].*test_waits\.py"):
        WAITS[name](torch, x)
    WAITS[name](torch, x)  # the session goes on


@pytest.mark.parametrize("name", FREE)
def test_other_calls_are_allowed(torch, name):
    x = torch.rand(8, 8)
    with torch.no_sync():
        FREE[name](torch, x)


def test_value_that_has_arrived_can_be_read(torch):
    value = torch.ones(3).numpy_async()
    value.wait()
    with torch.no_sync():
        assert value.wait().tolist() == [1, 1, 1]


def test_nesting_decorator_and_threads(torch):
    x = torch.ones(2)
    found = []

    @torch.no_sync()
    def read():
        return x.sum().item()

    with pytest.raises(RuntimeError):
        read()
    with torch.no_sync():
        with torch.no_sync(False):
            assert x.sum().item() == 2
        with pytest.raises(RuntimeError):
            x.sum().item()
        thread = threading.Thread(target=lambda: found.append(x.sum().item()))
        thread.start()
        thread.join()
    assert found == [2] and x.sum().item() == 2


def test_debug_mode(torch):
    x = torch.ones(2)
    mode = torch.cuda.set_sync_debug_mode
    assert torch.cuda.get_sync_debug_mode() == 0
    try:
        mode("warn")
        assert torch.cuda.get_sync_debug_mode() == 1
        with pytest.warns(UserWarning, match=r"a call waits for the engine at .*test_waits\.py"):
            assert x.sum().item() == 2
        mode(2)
        with pytest.raises(RuntimeError, match="no_sync"):
            x.sum().item()
    finally:
        mode("default")
    assert x.sum().item() == 2
    for wrong in ("loud", 3):
        with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
            mode(wrong)
