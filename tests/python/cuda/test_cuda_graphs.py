"""CUDA graphs: automatic replay of repeated work, and explicit capture."""

from __future__ import annotations

import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.test_session import run_script

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="the engine in this process has no GPU")


def test_training_steps_become_graphs_and_equal_cpu(own_daemon):
    """A learning-rate schedule, Adam's step count and the training data change at every step."""
    script = """
import teletensor as torch
from teletensor import nn

def train(device):
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5, gamma=0.5)
    batches = [(torch.randn(32, 8).to(device), torch.randint(0, 4, (32,)).to(device)) for _ in range(4)]
    total = torch.zeros((), device=device)
    for step in range(24):
        x, y = batches[step % 4]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        schedule.step()
        total += loss.detach()
    return total, *model.parameters()

for gpu, cpu in zip(train("cuda"), train("cpu")):
    assert torch.allclose(gpu.cpu(), cpu, rtol=1e-4, atol=1e-6)
counts = torch.cuda.replay_stats()
assert counts["replays"] >= 8, counts
assert counts["launches"] >= 8 * 8 and counts["changed"] > 0, counts
"""
    # No time limit for holding work back, so that the speed of the machine does not matter.
    run = run_script(script, own_daemon(TELETENSOR_CUDA_REPLAY="10000000"))
    assert run.returncode == 0, run.stderr


def test_replay_can_be_disabled(own_daemon):
    script = """
import teletensor as torch
x = torch.ones(4, device="cuda")
for _ in range(5):
    for _ in range(20):
        x = x.sin()
    x.sum().item()
assert torch.cuda.replay_stats() == {"graphs": 0, "replays": 0, "launches": 0, "changed": 0}
"""
    run = run_script(script, own_daemon(TELETENSOR_CUDA_REPLAY="off"))
    assert run.returncode == 0, run.stderr


def test_a_graph_replays_over_its_inputs(torch):
    static_x = torch.ones(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static_y = static_x * 2 + 1
    static_x.copy_(torch.arange(4.0))
    graph.replay()
    assert static_y.tolist() == [1, 3, 5, 7]
    with pytest.raises(RuntimeError, match="draws on the host"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            torch.randperm(4, device="cuda")
    assert static_y.sum().item() == 16


def test_a_graph_draws_new_numbers_at_each_replay(torch):
    """A graph draws the random numbers that the same work draws without a graph: dropout, and noise."""
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5)).to("cuda")
    x, graph = torch.ones(4, 8, device="cuda"), torch.cuda.CUDAGraph()

    def step():
        return model(x) + torch.randn(4, 8, device="cuda")

    with torch.cuda.graph(graph):
        y = step()
    torch.manual_seed(5)
    replayed = []
    for _ in range(3):
        graph.replay()
        replayed.append(y.tolist())
    torch.manual_seed(5)
    assert replayed == [step().tolist() for _ in range(3)] and replayed[0] != replayed[1]


def test_graphed_callables_compute_the_same(torch):
    linear = torch.nn.Linear(3, 2).to("cuda")
    x = torch.ones(4, 3, device="cuda")
    expected = linear(x)
    graphed = torch.cuda.make_graphed_callables(linear, (x,))
    assert torch.equal(graphed(x), expected)
    with pytest.raises(ValueError, match="for each of 2 callables, got 1"):
        torch.cuda.make_graphed_callables((linear, linear), ((x,),))


def test_fused_operators_are_captured(own_daemon):
    """Pointwise operators of large tensors, which run as one loop."""
    script = """
import teletensor as torch
a, b = torch.randn(2, 4, 2, 600, 64, device="cuda")
cos, sin = torch.randn(2, 600, 64, device="cuda")
expected = a * cos - b * sin
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = a * cos - b * sin
graph.replay()
assert torch.equal(y, expected)
"""
    run = run_script(script, own_daemon())
    assert run.returncode == 0, run.stderr
