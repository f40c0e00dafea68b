"""immediate_errors(), its environment variables and anomaly mode: the call that fails raises."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

FAILING = {
    "embedding": lambda t: t.nn.functional.embedding(t.tensor([5]), t.ones(3, 2)),
    "cross_entropy": lambda t: t.nn.functional.cross_entropy(t.ones(2, 3), t.tensor([0, 7])),
    "index": lambda t: t.ones(3)[t.tensor([4])],
    "update": lambda t: t.zeros(2).add_(t.ones(3).index_select(0, t.tensor([5, 0]))),
    "scatter_": lambda t: t.zeros(2).scatter_(0, t.tensor([2]), 1.0),
    "out=": lambda t: t.gather(t.ones(2), 0, t.tensor([3]), out=t.empty(1)),
    "view of a failed value": lambda t: t.ones(3)[t.tensor([4])].view(1, 1),
}


@pytest.mark.parametrize("name", FAILING)
def test_the_call_raises(torch, name):
    with torch.immediate_errors(), pytest.raises((IndexError, RuntimeError)) as caught:
        FAILING[name](torch)
    assert any(entry.path.name == "test_error_waits.py" for entry in caught.traceback[1:])
    FAILING[name](torch)  # outside of the block, the error is that of the value


def test_targets_keep_their_values(torch):
    x, index = torch.zeros(2), torch.tensor([2])
    with torch.immediate_errors(), pytest.raises((IndexError, RuntimeError)):
        x.scatter_(0, index, 1.0)
    assert x.tolist() == [0, 0]
    x.add_(1)
    assert x.tolist() == [1, 1]


def test_calls_without_results(torch):
    """An optimizer step whose gradient is an error raises, and leaves its parameters."""
    weight = torch.ones(2, requires_grad=True)
    weight.grad = torch.ones(3).index_select(0, torch.tensor([5, 0]))
    optimizer = torch.optim.SGD([weight], 0.1, foreach=True)
    with torch.immediate_errors(), pytest.raises((IndexError, RuntimeError)):
        optimizer.step()
    assert weight.tolist() == [1, 1]


def test_backward_and_compiled_functions(torch):
    x = torch.ones(3, requires_grad=True)

    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient[torch.tensor([7, 7, 7])]

    with torch.immediate_errors(), pytest.raises((IndexError, RuntimeError)):
        Fails.apply(x).sum().backward()
    compiled = torch.compile(lambda x, i: (x * 2)[i] + 1)
    assert compiled(torch.ones(3), torch.tensor([1])).tolist() == [3]
    with torch.immediate_errors(), pytest.raises((IndexError, RuntimeError)):
        compiled(torch.ones(3), torch.tensor([5]))


def test_anomaly_mode(torch):
    with torch.autograd.detect_anomaly():
        with pytest.raises((IndexError, RuntimeError)):
            torch.nn.functional.embedding(torch.tensor([5]), torch.ones(3, 2))
        x = torch.zeros(2, requires_grad=True)
        loss = (x.sqrt() * 0).sum()
        with pytest.raises(RuntimeError, match="nan"):
            loss.backward()
    torch.ones(3)[torch.tensor([4])]  # does not wait any more


def test_other_threads_do_not_wait(torch):
    raised = []

    def fail() -> None:
        try:
            torch.ones(3)[torch.tensor([4])]
        except (IndexError, RuntimeError) as error:
            raised.append(error)

    with torch.immediate_errors():
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()
        assert not raised
        fail()
    assert raised


@pytest.mark.parametrize("variable", ["TELETENSOR_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING"])
@pytest.mark.parametrize("value", ["1", "0"])
def test_environment(variable, value):
    program = "import teletensor as torch\nx = torch.ones(3)[torch.tensor([4])]\nprint('passed')\nx.tolist()\n"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False, env={**os.environ, variable: value}
    )
    assert result.returncode == 1 and "IndexError" in result.stderr
    assert ("passed" in result.stdout) == (value == "0")
    assert f"line {2 if value == '1' else 4}" in result.stderr
