"""nn, optim, data and saving, compared with their definitions in NumPy."""

from __future__ import annotations

import numpy as np
import pytest


def mlp(torch):
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Dropout(0.0), torch.nn.Linear(8, 2))


def sgd(p, g, state, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=False):
    g = g + weight_decay * p
    state["v"] = g if "v" not in state else momentum * state["v"] + g
    return p - lr * (g + momentum * state["v"] if nesterov else state["v"])


def adam(p, g, state, lr=0.1, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01, decoupled=False, amsgrad=False):
    t = state["t"] = state.get("t", 0) + 1
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    m = state["m"] = betas[0] * state.get("m", 0) + (1 - betas[0]) * g
    v = state["v"] = betas[1] * state.get("v", 0) + (1 - betas[1]) * g * g
    if amsgrad:
        v = state["x"] = np.maximum(state.get("x", 0), v)
    return p - lr / (1 - betas[0] ** t) * m / (np.sqrt(v) / np.sqrt(1 - betas[1] ** t) + eps)


OPTIMIZERS = {
    "sgd": (lambda o, p: o.SGD(p, 0.1), lambda p, g, s: sgd(p, g, s, momentum=0, weight_decay=0)),
    "momentum": (lambda o, p: o.SGD(p, 0.1, 0.9, weight_decay=0.01), sgd),
    "nesterov": (
        lambda o, p: o.SGD(p, 0.1, 0.9, weight_decay=0.01, nesterov=True),
        lambda p, g, s: sgd(p, g, s, nesterov=True),
    ),
    "adam": (lambda o, p: o.Adam(p, 0.1, weight_decay=0.01), adam),
    "amsgrad": (
        lambda o, p: o.Adam(p, 0.1, weight_decay=0.01, amsgrad=True),
        lambda p, g, s: adam(p, g, s, amsgrad=True),
    ),
    "adamw": (lambda o, p: o.AdamW(p, 0.1, weight_decay=0.01), lambda p, g, s: adam(p, g, s, decoupled=True)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizer_equals_its_definition(torch, name):
    make, reference = OPTIMIZERS[name]
    start = np.random.default_rng(0).standard_normal((3, 5))
    p = torch.nn.Parameter(torch.tensor(start))
    optimizer, expected, state = make(torch.optim, [p]), start, {}
    for step in range(5):
        optimizer.zero_grad()
        (p.sin() * (step + 1)).sum().backward()
        optimizer.step()
        expected = reference(expected, np.cos(expected) * (step + 1), state)
        np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-9, atol=1e-9)


def test_training_learns_and_continues_from_state(torch, tmp_path):
    x = torch.randn(64, 4)
    y = (x.sum(1) > 0).long()
    model = mlp(torch)
    optimizer = torch.optim.AdamW(model.parameters(), 0.05)
    losses = []
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses).tolist()
    assert losses[-1] < losses[0] / 3
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, tmp_path / "run.tt")
    saved = torch.load(tmp_path / "run.tt")
    again = mlp(torch)
    assert repr(again.load_state_dict(saved["model"])) == "<All keys matched successfully>"
    torch.optim.AdamW(again.parameters(), 0.05).load_state_dict(saved["optimizer"])
    assert again(x).tolist() == model(x).tolist() and saved["epoch"] == 3


def test_loading_reports_all_errors(torch, tmp_path):
    model = mlp(torch)
    state = model.state_dict()
    del state["0.bias"]
    state["extra"] = torch.ones(1)
    state["3.weight"] = torch.ones(1, 1)
    with pytest.raises(RuntimeError, match=r"(?s)Missing.*0.bias.*Unexpected.*extra.*size mismatch for 3.weight"):
        model.load_state_dict(state)
    (tmp_path / "bad").write_bytes(b"not a file of ours")
    with pytest.raises(RuntimeError, match=r"\[load\]"):
        torch.load(tmp_path / "bad")


def test_module_registries(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.ModuleList([nn.Linear(2, 2) for _ in range(2)])
            self.scale = nn.Parameter(torch.ones(1))
            self.register_buffer("count", torch.zeros(1))

    net = Net()
    names = [n for n, _ in net.named_parameters()]
    assert names == ["scale", "body.0.weight", "body.0.bias", "body.1.weight", "body.1.bias"]
    assert list(net.state_dict()) == ["scale", "count", *names[1:]]
    assert not net.eval().body[0].training and net.train().body[1].training
    net.double()
    assert all(p.dtype is torch.float64 for p in net.parameters())
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        net.nope  # noqa: B018 - the access is under test
    with pytest.raises(TypeError, match="cannot assign 'int' as parameter 'scale'"):
        net.scale = 3
    assert "Linear(in_features=2, out_features=2, bias=True)" in repr(net)


def test_batch_norm_tracks_statistics(torch):
    norm = torch.nn.BatchNorm2d(3)
    x = torch.randn(8, 3, 4, 4) * 2 + 1
    y = norm(x)
    assert abs(y.mean().item()) < 1e-5 and norm.num_batches_tracked.item() == 1
    array = x.numpy()
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.1 * array.mean((0, 2, 3)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.9 + 0.1 * array.var((0, 2, 3), ddof=1), rtol=1e-4)
    norm.eval()
    before = norm.running_mean.tolist()
    norm(x)
    assert norm.running_mean.tolist() == before


def test_dropout_scales(torch):
    x = torch.ones(10000)
    y = torch.nn.functional.dropout(x, 0.25)
    assert abs(y.mean().item() - 1) < 0.05 and abs((y == 0).float().mean().item() - 0.25) < 0.03
    assert torch.nn.functional.dropout(x, 0.25, training=False) is x


def test_data_loader(torch):
    data = torch.utils.data
    x = torch.arange(10)
    for workers in (0, 2):
        loader = data.DataLoader(data.TensorDataset(x, x * 2), batch_size=4, num_workers=workers)
        batches = [(a.tolist(), b.tolist()) for a, b in loader]
        assert [a for a, _ in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] and len(loader) == 3
        assert all(b == [2 * v for v in a] for a, b in batches)
    shuffled = data.DataLoader(list(range(10)), batch_size=5, shuffle=True, drop_last=True)
    assert sorted(v for batch in shuffled for v in batch.tolist()) == list(range(10))
    first, second = data.random_split(data.TensorDataset(x), [0.8, 0.2])
    assert (len(first), len(second)) == (8, 2)


def test_schedulers(torch):
    p = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([p], 1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    rates = []
    for _ in range(5):
        rates.append(scheduler.get_last_lr()[0])
        scheduler.step()
    assert rates == [1, 1, 0.5, 0.5, 0.25]


def test_clip_grad_norm(torch):
    p = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    (p * p).sum().backward()
    assert abs(torch.nn.utils.clip_grad_norm_([p], 1.0).item() - 10) < 1e-5
    assert abs(p.grad.norm().item() - 1) < 1e-4
