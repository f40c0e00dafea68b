"""Mixed precision and checkpointing."""

import numpy as np
import pytest


def test_autocast_lowers_products_only(torch):
    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    with torch.autocast("cpu"):
        assert torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is torch.bfloat16
        y = layer(x)
        assert y.dtype is torch.bfloat16 and (x @ x.t()).dtype is torch.bfloat16
        assert torch.trace(y).dtype is torch.float32 and (y + 1).dtype is torch.bfloat16
        assert torch.cat([y, x]).dtype is torch.float32
        assert (x.double() @ x.double().t()).dtype is torch.float64
        with torch.autocast("cpu", enabled=False):
            assert layer(x).dtype is torch.float32
    assert not torch.is_autocast_enabled("cpu") and layer(x).dtype is torch.float32
    y.float().sum().backward()
    assert layer.weight.grad.dtype is torch.float32
    with pytest.raises(RuntimeError, match="unsupported autocast device_type"):
        torch.autocast("tpu")


@pytest.mark.filterwarnings("ignore:CUDA is not available", "ignore:`torch.cuda.amp.autocast")
def test_autocast_of_gpus_does_not_affect_the_cpu(torch):
    @torch.cuda.amp.autocast()
    def multiply(x):
        return x @ x

    assert multiply(torch.ones(2, 2)).dtype is torch.float32


def test_autocast_trains(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.randn(8, 1, 6, 6), torch.randint(0, 2, (8,))
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        assert loss.dtype is torch.float32
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_scaler_skips_overflowing_steps(torch):
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)
    for factor, expected, scale in ((1.0, 0.0, 4.0), (float("inf"), 0.0, 2.0), (1.0, -1.0, 2.0), (1.0, -2.0, 4.0)):
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert p.tolist() == [expected] * 2 and scaler.get_scale() == scale
    optimizer.zero_grad()
    scaler.scale(p.sum() * 3).backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4.0


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_checkpoints_give_the_same_gradients(torch, use_reentrant):
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
    x = torch.randn(4, 3, requires_grad=True)
    torch.manual_seed(1)
    net(x).square().sum().backward()
    expected = [x.grad.numpy().copy(), *(p.grad.numpy().copy() for p in net.parameters())]
    x.grad = None
    net.zero_grad()
    torch.manual_seed(1)
    torch.utils.checkpoint.checkpoint(net, x, use_reentrant=use_reentrant).square().sum().backward()
    for got, wanted in zip([x.grad, *(p.grad for p in net.parameters())], expected):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-6)


def test_checkpoints_of_inputs_without_gradients(torch):
    layer, x = torch.nn.Linear(3, 2), torch.randn(4, 3)
    torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    np.testing.assert_allclose(layer.weight.grad.numpy(), np.tile(x.numpy().sum(0), (2, 1)), rtol=1e-5)
    net = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(4)))
    y = torch.utils.checkpoint.checkpoint_sequential(net, 2, x.requires_grad_())
    np.testing.assert_allclose(y.detach().numpy(), net(x).detach().numpy(), rtol=1e-5)
