"""Optimizers, compared with their formulas in NumPy, step by step."""

import copy
import math

import numpy as np
import pytest


def rmsprop(p, g, s, t, lr=0.1, alpha=0.99, eps=1e-8):
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
    return p - lr * g / (np.sqrt(s["v"]) + eps)


def rmsprop_centered(p, g, s, t, lr=0.1, alpha=0.9, eps=1e-8, momentum=0.5):
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g * g
    s["m"] = alpha * s.get("m", 0) + (1 - alpha) * g
    s["b"] = momentum * s.get("b", 0) + g / (np.sqrt(s["v"] - s["m"] ** 2) + eps)
    return p - lr * s["b"]


def adagrad(p, g, s, t, lr=0.1, lr_decay=0.05, eps=1e-10):
    s["v"] = s.get("v", 0) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["v"]) + eps)


def adadelta(p, g, s, t, lr=1.0, rho=0.9, eps=1e-6):
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g * g
    delta = np.sqrt(s.get("d", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["d"] = rho * s.get("d", 0) + (1 - rho) * delta * delta
    return p - lr * delta


def moments(g, s, b1=0.9, b2=0.999):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g


def adamax(p, g, s, t, lr=0.1, b1=0.9, b2=0.999, eps=1e-8):
    s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
    s["u"] = np.maximum(b2 * s.get("u", 0), np.abs(g) + eps)
    return p - lr / (1 - b1**t) * s["m"] / s["u"]


def nadam(p, g, s, t, lr=0.1, b1=0.9, b2=0.999, eps=1e-8, psi=4e-3):
    moments(g, s)
    mu, following = (b1 * (1 - 0.5 * 0.96 ** (k * psi)) for k in (t, t + 1))
    s["mu"] = float(np.float32(s.get("mu", 1) * mu))  # stored in float32, as in PyTorch
    mean = following * s["m"] / (1 - s["mu"] * following) + (1 - mu) * g / (1 - s["mu"])
    return p - lr * mean / (np.sqrt(s["v"] / (1 - b2**t)) + eps)


def radam(p, g, s, t, lr=0.1, b1=0.9, b2=0.999, eps=1e-8):
    moments(g, s)
    longest = 2 / (1 - b2) - 1
    length = longest - 2 * t * b2**t / (1 - b2**t)
    mean = s["m"] / (1 - b1**t)
    if length <= 5:
        return p - lr * mean
    r = math.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
    return p - lr * mean * r * math.sqrt(1 - b2**t) / (np.sqrt(s["v"]) + eps)


def rprop(p, g, s, t, lr=0.1):
    sign = np.sign(g * s.get("g", np.zeros_like(g)))
    s["size"] = np.clip(s.get("size", np.full_like(g, lr)) * np.where(sign > 0, 1.2, np.where(sign < 0, 0.5, 1)), 1e-6, 50)
    g = np.where(sign < 0, 0, g)
    s["g"] = g
    return p - np.sign(g) * s["size"]


def asgd(p, g, s, t, lr=0.1, lambd=1e-4, alpha=0.75):
    eta = s.get("eta", lr)
    p = p * (1 - lambd * eta) - eta * g
    s["eta"] = lr / (1 + lambd * lr * t) ** alpha
    return p


CASES = [
    ("RMSprop", {"lr": 0.1}, rmsprop), ("RMSprop", {"lr": 0.1, "alpha": 0.9, "centered": True, "momentum": 0.5}, rmsprop_centered),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.05}, adagrad), ("Adadelta", {}, adadelta), ("Adamax", {"lr": 0.1}, adamax),
    ("NAdam", {"lr": 0.1}, nadam), ("RAdam", {"lr": 0.1}, radam), ("Rprop", {"lr": 0.1}, rprop), ("ASGD", {"lr": 0.1}, asgd),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options", "step"), CASES, ids=[f"{n}{i}" for i, (n, _, _) in enumerate(CASES)])
def test_steps_equal_the_formula(torch, name, options, step):
    start = np.linspace(-2, 3, 7)
    p, state = torch.tensor(start, requires_grad=True), {}
    optimizer = getattr(torch.optim, name)([p], **options)
    expected = start
    for t in range(1, 9):
        optimizer.zero_grad()
        ((p - 1) ** 2 * 0.5 + p.sin()).sum().backward()
        optimizer.step()
        expected = step(expected, (expected - 1) + np.cos(expected), state, t)
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=1e-8, atol=1e-10)
    again = getattr(torch.optim, name)([p], **options)
    again.load_state_dict(optimizer.state_dict())
    assert again.state[p]["step"] == 8


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_minimises_rosenbrock(torch, search):
    p = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([p], lr=1 if search else 0.1, max_iter=60, history_size=10, line_search_fn=search)

    def closure():
        optimizer.zero_grad()
        loss = 100 * (p[1] - p[0] ** 2) ** 2 + (1 - p[0]) ** 2
        loss.backward()
        return loss

    first = optimizer.step(closure).item()
    for _ in range(3 if search else 15):
        optimizer.step(closure)
    last = closure().item()
    assert first == pytest.approx(24.2)
    assert last < (1e-10 if search else 0.5)


def test_line_search_of_lbfgs(torch):
    """Libraries import the line search, which LBFGS uses; the numbers are those of PyTorch 2.15."""
    from teletensor.optim.lbfgs import _cubic_interpolate, _strong_wolfe

    assert _cubic_interpolate(0.0, 1.0, -2.0, 1.0, 0.5, 0.3) == pytest.approx(2 / 3)
    assert _cubic_interpolate(1.0, torch.tensor(0.5), torch.tensor(0.3), 0.0, 1.0, -2.0, bounds=(0.1, 0.6)) == 0.6
    assert _cubic_interpolate(0.0, 1.0, 1.0, 2.0, 0.5, 1.0) == pytest.approx(1.68313005)
    x = torch.tensor([1.0, -2.0, 0.3], dtype=torch.float64)
    steps = []

    def objective(x, t, d):
        steps.append(t)
        y = (x + t * d).detach().requires_grad_()
        loss = (y**4).sum() + (1.5 - y).cos().sum()
        loss.backward()
        return float(loss), y.grad

    loss, grad = objective(x, 0.0, x)
    loss, gradient, t, count = _strong_wolfe(objective, x, 30.0, -grad, loss, grad, -grad.dot(grad), c2=0.001)
    assert count == len(steps) - 1 == 10
    assert (loss, t) == pytest.approx((1.1212891, 0.046300496))
    np.testing.assert_allclose(gradient.numpy(), objective(x, t, -grad)[1].numpy())
    p = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.LBFGS([p], line_search_fn="strong_wolfe")
    again = copy.deepcopy(optimizer)
    assert again._params is again.param_groups[0]["params"]


def test_schedules(torch):
    p = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=1.0, momentum=0.9)
    restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2, T_mult=2)
    rates = [restarts.get_last_lr()[0]]
    for _ in range(6):
        optimizer.step()
        restarts.step()
        rates.append(restarts.get_last_lr()[0])
    half = (1 + math.cos(math.pi / 4)) / 2
    np.testing.assert_allclose(rates, [1, 0.5, 1, half, 0.5, 1 - half, 1], atol=1e-12)
    cyclic = torch.optim.lr_scheduler.CyclicLR(torch.optim.SGD([p], lr=1.0, momentum=0.9), 0.1, 0.5, step_size_up=2)
    rates = []
    for _ in range(5):
        rates.append(cyclic.get_last_lr()[0])
        cyclic.step()
    np.testing.assert_allclose(rates, [0.1, 0.3, 0.5, 0.3, 0.1])


def test_averaged_models(torch):
    model = torch.nn.Linear(2, 1)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    weights = []
    for value in (1.0, 2.0, 6.0):
        torch.nn.init.constant_(model.weight, value)
        averaged.update_parameters(model)
        weights.append(value)
    assert averaged.module.weight.tolist() == [[3.0, 3.0]] and averaged.n_averaged.item() == 3


def test_invalid_options_are_rejected(torch):
    p = torch.zeros(1, requires_grad=True)
    for name in ("RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop"):
        with pytest.raises(ValueError, match="Invalid learning rate: -1"):
            getattr(torch.optim, name)([p], lr=-1)


def test_zero_grad_frees_the_gradients(torch):
    """Also those that the step has read: two sets of gradients must not exist at the peak of the next pass."""
    w = torch.ones(1 << 20, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)

    def held() -> int:
        return torch._C.ops.memory_stats(0).tolist()[-3]  # bytes of this session

    without = held()
    for _ in range(2):
        (w * 2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        assert held() == without


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RAdam", "NAdam", "Adamax", "Adadelta", "Adagrad", "RMSprop"])
def test_gradient_of_a_learning_rate(torch, name):
    """Of a differentiable step, beside the slope between two learning rates."""

    def loss(lr):
        w = torch.tensor([1.0, -2.0], dtype=torch.float64).clone()
        optimizer = getattr(torch.optim, name)([w], lr=lr, differentiable=True)
        for i in range(3):
            w.grad = torch.tensor([0.5, -0.25], dtype=torch.float64) * (i + 1)
            optimizer.step()
        return (w * w).sum()

    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(lr), lr)
    slope = (loss(0.1 + 1e-6) - loss(0.1 - 1e-6)) / 2e-6
    assert gradient.item() == pytest.approx(slope.item(), rel=1e-4)


@pytest.mark.parametrize(
    "name, options",
    [
        ("SGD", {"lr": 0.1, "weight_decay": 0.3, "momentum": 0.8}),
        ("SGD", {"lr": 0.1, "weight_decay": 0.3, "momentum": 0.8, "nesterov": True, "maximize": True}),
        ("Adam", {"lr": 0.1, "weight_decay": 0.3, "beta1": 0.8, "beta2": 0.9, "eps": 0.01}),
        ("Adam", {"lr": 0.1, "weight_decay": 0.3, "beta1": 0.8, "beta2": 0.9, "eps": 0.01, "amsgrad": True}),
        ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "beta1": 0.8, "beta2": 0.9, "eps": 0.01}),
    ],
)
def test_gradients_of_options(torch, name, options):
    """Of differentiable steps whose losses depend on the options, too; beside slopes between two values of an option."""

    def loss(options):
        w = torch.tensor([1.0, -2.0], dtype=torch.float64).requires_grad_().clone()
        optimizer = getattr(torch.optim, name)([w], differentiable=True, **options)
        if name == "SGD":  # the step that creates the buffer detaches it
            optimizer.state[w]["momentum_buffer"] = torch.tensor([0.5, 0.25], dtype=torch.float64)
        for _ in range(3):
            (w.grad,) = torch.autograd.grad(w.clone().sin().sum(), w, create_graph=True)
            optimizer.step()
        return (w * w).sum()

    def with_betas(options):
        betas = {"betas": (options["beta1"], options["beta2"])} if "beta1" in options else {}
        return {**{k: v for k, v in options.items() if k not in ("beta1", "beta2")}, **betas}

    leaves = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in options.items() if v is not True}
    gradients = torch.autograd.grad(loss(with_betas({**options, **leaves})), list(leaves.values()))
    for option, gradient in zip(leaves, gradients):
        ends = [loss(with_betas({**options, option: options[option] + change})).item() for change in (1e-6, -1e-6)]
        assert gradient.item() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-4), option


def test_differentiable_steps_reject_foreach(torch):
    w = torch.ones(2, requires_grad=True)
    w.grad = torch.ones(2)
    with pytest.raises(AssertionError, match="_foreach ops don't support autograd"):
        torch.optim.Adam([w], foreach=True, differentiable=True).step()


def test_options_whose_gradients_would_be_lost(torch):
    rate = torch.tensor(0.1, requires_grad=True)
    for kind, options in ((torch.optim.ASGD, {"lr": rate}), (torch.optim.NAdam, {"weight_decay": rate})):
        w = torch.ones(2, requires_grad=True).clone()
        optimizer = kind([w], differentiable=True, **options)
        w.grad = torch.ones(2)
        with pytest.raises(NotImplementedError, match="its gradient is not recorded"):
            optimizer.step()


def test_fused_steps_on_a_cpu_are_capturable(torch):
    weights = []
    for capturable in (False, True):
        w = torch.ones(3, requires_grad=True)
        w.grad = torch.tensor([0.5, -1.0, 2.0])
        torch.optim.AdamW([w], lr=torch.tensor(0.1), fused=True, capturable=capturable).step()
        weights.append(w.tolist())
    assert weights[0] == weights[1] != [1.0] * 3
    with pytest.raises(AssertionError, match="If capturable=True, params and state_steps must be on supported devices"):
        torch.optim.AdamW([w], capturable=True).step()


def test_a_loaded_state_keeps_the_tensor_that_groups_share(torch):
    """As in PyTorch, in which schedulers then change the learning rate of all groups once per group."""
    w = [torch.ones(2, requires_grad=True) for _ in range(2)]
    optimizer = torch.optim.SGD([{"params": [p]} for p in w], lr=torch.tensor(0.5))
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    first, second = (group["lr"] for group in optimizer.param_groups)
    assert first is second and first.item() == 0.5
