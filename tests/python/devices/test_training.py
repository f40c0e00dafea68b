"""Training on a device library's device gives the CPU's values: eager, compiled, with random numbers."""

from __future__ import annotations

import pytest


def _train(torch, device: str, optimizer: str, compiled: bool) -> tuple[list[float], list[list[float]]]:
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3))
    x, y = torch.randn(32, 8).to(device), torch.randint(0, 3, (32,)).to(device)
    model.to(device)
    step = getattr(torch.optim, optimizer)(model.parameters(), lr=0.05)
    run = torch.compile(model) if compiled else model
    losses = []
    for _ in range(8):
        step.zero_grad()
        loss = torch.nn.functional.cross_entropy(run(x), y)
        loss.backward()
        step.step()
        losses.append(loss.item())
    return losses, [p.detach().flatten().tolist() for p in model.parameters()]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_mlp(torch, optimizer, compiled):
    want, got = (_train(torch, device, optimizer, compiled) for device in ("cpu", "example"))
    assert got[0] == pytest.approx(want[0], rel=1e-5) and want[0][-1] < want[0][0]
    for mine, theirs in zip(got[1], want[1], strict=True):
        assert mine == pytest.approx(theirs, rel=1e-3, abs=1e-5)


def test_random_numbers(torch):
    """The CPU draws for the device: the same numbers."""
    drawn = []
    for device in ("cpu", "example"):
        torch.manual_seed(1)
        drawn.append((torch.randn(5, device=device).tolist(), torch.randperm(9, device=device).tolist(),
                      torch.nn.functional.dropout(torch.ones(20, device=device)).tolist()))  # fmt: skip
    assert drawn[0] == drawn[1]


def test_buffers_written_by_operators(torch):
    """Batch normalisation writes its running statistics, also if the CPU executes it."""
    layers = [torch.nn.BatchNorm1d(4).to(device) for device in ("cpu", "example")]
    x = torch.randn(16, 4)
    outputs = [layer(x.to(layer.weight.device)).cpu() for layer in layers]
    assert torch.allclose(*outputs) and torch.allclose(layers[0].running_mean, layers[1].running_mean.cpu())
    assert layers[1].running_mean.abs().sum().item() > 0 and layers[1].num_batches_tracked.item() == 1


def test_written_arguments_that_share_memory(torch):
    """Arguments with the same elements are one tensor, whichever of them is written; those that overlap are refused."""
    results = []
    for device in ("cpu", "example"):
        weight, p, g = torch.ones(2, device=device), torch.ones(3, device=device), torch.arange(3.0, device=device)
        x = torch.arange(6.0, device=device).reshape(3, 2)
        y = torch.nn.functional.batch_norm(x, weight.detach(), torch.zeros(2, device=device), weight=weight, training=True)
        torch._C.ops.sgd_step([p], [g], [g], lr=0.5, momentum=0.5, dampening=0.0, weight_decay=0.0, nesterov=False,
                              maximize=False, first_step=False)  # fmt: skip
        results.append([t.tolist() for t in (y, weight, p, g)])
    assert results[0] == results[1] and results[0][3] == [0, 1.5, 3]
    shared = torch.ones(3, device="example")
    with pytest.raises(NotImplementedError, match="partly overlaps another argument"):
        torch.nn.functional.batch_norm(x, shared[:2], torch.zeros(2, device="example"), weight=shared[1:], training=True).tolist()


def test_odd_arguments_of_kernels(torch):
    """What the example's kernels do not support is computed by the CPU."""
    x = torch.tensor(3.0, device="example")
    assert [x.sum(dim=0).item(), x.sum(dim=-1).item(), x.mean(-1, keepdim=True).item()] == [3, 3, 3]
    x, w = torch.ones(2, 3, device="example"), torch.ones(4, 3, device="example")
    for bias in (torch.ones(1, device="example"), torch.tensor(1.0, device="example"), torch.tensor(1.0)):
        assert torch.nn.functional.linear(x, w, bias).tolist() == [[4] * 4] * 2


def test_in_place_and_out(torch):
    x = torch.arange(6.0, device="example").reshape(2, 3)
    x.t().add_(1).mul_(x.t())  # reads and writes one storage
    assert x.tolist() == [[(v + 1) ** 2 for v in row] for row in ([0, 1, 2], [3, 4, 5])]
    out = torch.empty(2, 3, device="example", dtype=torch.float64)
    torch.add(x, 1, out=out)
    assert out.tolist() == (x.cpu().double() + 1).tolist()
    torch.sinh(x / 100, out=out)
    assert torch.equal(out.cpu(), torch.sinh(x.cpu() / 100).double())
    y = torch.zeros(4, device="example")
    y[1:3].fill_(2)
    y[torch.tensor([0, 3], device="example")] = 7
    assert y.tolist() == [7, 2, 2, 7]
    version = y._version
    torch.sinh_(y)
    assert y._version == version + 1


def test_autograd_threads(torch):
    """A graph over two devices and the CPU."""
    w = torch.ones(3, requires_grad=True)
    loss = (w.to("example:0") * 2).sum() + (w.to("example:1") * 3).sum().to("example:0") + w.sum().to("example:0")
    loss.backward()
    assert w.grad.tolist() == [6, 6, 6]


def test_saved_tensors_on_the_host(torch):
    """save_on_cpu() frees the device's memory between the passes."""
    x = torch.rand(1 << 18, device="example", requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = x.exp().sinh()
    held = torch.example.memory_allocated()
    y.sum().backward()
    assert held == 2 << 20  # x and y
    assert torch.allclose(x.grad, (x.exp().cosh() * x.exp()).detach())


def test_layers_and_transforms(torch):
    """Composites, layers without kernels, sizes that depend on data, decompositions and function transforms."""
    image, layer = torch.randn(2, 3, 8, 8), torch.nn.Conv2d(3, 4, 3)
    want = layer(image)
    layer.to("example")
    assert torch.allclose(layer(image.to("example")).cpu(), want, atol=1e-5)
    output, _ = torch.nn.LSTM(4, 5).to("example")(torch.randn(3, 2, 4).to("example"))
    assert output.device.type == "example" and output.shape == (3, 2, 5)
    assert torch.nonzero(torch.tensor([0, 1, 2], device="example")).tolist() == [[1], [2]]
    assert torch.unique(torch.tensor([3, 1, 3], device="example")).tolist() == [1, 3]
    a = torch.randn(6, 6)
    there = a.to("example")
    assert torch.allclose(torch.linalg.inv(there).cpu(), torch.linalg.inv(a), atol=1e-4)
    assert torch.allclose(torch.func.grad(lambda v: (v**3).sum())(there).cpu(), 3 * a**2, atol=1e-5)
    assert torch.allclose(torch.func.vmap(lambda row: row.sinh().sum())(there).cpu(), a.sinh().sum(1), atol=1e-5)
    table = torch.nn.Embedding(10, 3).to("example")
    table(torch.tensor([1, 2], device="example")).sum().backward()
    assert table.weight.grad.sum().item() == 6
    half = there.to(torch.bfloat16)
    assert torch.equal((half @ half).cpu(), a.to(torch.bfloat16) @ a.to(torch.bfloat16))


def test_profile(torch):
    """An operator that the CPU executes appears twice, one within the other; a kernel once."""
    x = torch.ones(4, device="example")
    with torch.profiler.profile() as profile:
        torch.sinh(x).add(1).tolist()
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts["aten::sinh"] == 2 and counts["aten::add"] == 1
