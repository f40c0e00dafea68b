"""Gradients in traced functions: backward passes that a Program contains, beside the same calls one by one."""

from __future__ import annotations

import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F

trace = torch.compiler.trace


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setenv("TELETENSOR_EXACT_PROGRAMS", "1")


def network():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))


def same(got, want):
    assert (got is None) == (want is None)
    if got is not None:
        assert got.dtype == want.dtype and got.shape == want.shape and got.stride() == want.stride()
        assert torch.equal(got, want)


def losses_of(step, model, optimizer):
    """What step(x, target) returns in five steps of a training."""
    torch.manual_seed(9)
    x, target = torch.randn(5, 6), torch.tensor([0, 2, 1, 1, 0])
    losses = []
    for _ in range(5):
        losses.append(step(x + 0.01, target).item())
        optimizer.step()
    return losses


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.AdamW])
@pytest.mark.parametrize("set_to_none", [True, False])
@pytest.mark.parametrize("clips", [False, True])
def test_training_has_the_bits_of_single_calls(optimizer, set_to_none, clips):
    results = []
    for traced in (True, False):
        model = network()
        steps = optimizer(model.parameters(), lr=0.1)

        def step(x, target, model=model, steps=steps):
            steps.zero_grad(set_to_none=set_to_none)
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            if clips:
                nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            return loss.detach() * 1

        if not set_to_none:  # the gradients that the function sets to zero
            step(torch.randn(5, 6), torch.tensor([0, 2, 1, 1, 0]))
        if traced:
            before = [p.grad for p in model.parameters()]
            run = trace(step, torch.randn(5, 6), torch.tensor([0, 2, 1, 1, 0]))
            assert all(a.grad is b for a, b in zip(model.parameters(), before)), "a trace changes nothing"
            step = run
        results.append(
            (
                losses_of(step, model, steps),
                [p.detach().clone() for p in model.parameters()],
                [p.grad for p in model.parameters()],
            )
        )
    (losses, weights, grads), (other_losses, other_weights, other_grads) = results
    assert losses == other_losses and losses[4] < losses[0]
    for a, b in zip([*weights, *grads], [*other_weights, *other_grads]):
        same(a, b)


def test_gradients_accumulate_over_runs():
    weights = [torch.randn(4, 3), torch.randn(4, 3)]
    for w in weights:
        w.requires_grad_()
    other = weights[1].detach().clone().requires_grad_()
    weights[0].data.copy_(weights[1].data)
    for w, run in ((weights[1], None), (other, "trace")):

        def f(x, w=w):
            ((x @ w).exp().sum() * 0.1).backward()

        call = trace(f, torch.ones(2, 4)) if run else f
        torch.manual_seed(1)
        for _ in range(3):
            assert call(torch.randn(2, 4)) is None
    same(other.grad, weights[1].grad)
    held = other.grad
    call(torch.randn(2, 4))
    assert other.grad is held, "the gradient is accumulated in place"
    assert not torch.equal(other.grad, weights[1].grad)


def test_inputs_are_leaves_too():
    def f(x, y):
        (x * y).sum().backward()
        return y * 1

    program = trace(f, torch.ones(3, requires_grad=True), torch.ones(3))
    for _ in range(2):
        x, y = torch.randn(3, requires_grad=True), torch.randn(3)
        program(x, y)
        same(x.grad, y)
        program(x, y)
        same(x.grad, y + y)
    with pytest.raises(RuntimeError, match="expected a leaf"):
        program(x * 2, y)
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        program(y, y)
    with pytest.raises(RuntimeError, match="requires_grad=False"):
        program(x, x)
    with torch.no_grad(), pytest.raises(RuntimeError, match="does not require grad"):
        program(x, y)


def test_grad_returns_what_it_returns_outside():
    w = torch.randn(3, 3, requires_grad=True)

    def f(x, y):
        hidden = torch.tanh(x @ w)
        loss = (hidden * y).sum()
        gx, gw, gh = torch.autograd.grad(loss, [x, w, hidden], retain_graph=True)
        (again,) = torch.autograd.grad(loss, w)
        return gx, gw, gh, again, (gw * gx).sum()

    program = trace(f, torch.randn(3, 3, requires_grad=True), torch.randn(3, 3))
    for _ in range(2):
        x, y = torch.randn(3, 3, requires_grad=True), torch.randn(3, 3)
        for got, want in zip(program(x, y), f(x, y)):
            same(got, want)
            assert not got.requires_grad
    hidden = torch.randn(3, 3, requires_grad=True) * 2  # not a leaf: its gradient is returned, not accumulated
    for got, want in zip(program(hidden, y), f(hidden, y)):
        same(got, want)
    with pytest.raises(ValueError, match="one of them twice"):
        program(w, y)


def test_equal_gradients_are_different_tensors():
    a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    program = trace(lambda: (a + b).sum().backward())
    program()
    a.grad.mul_(5)
    assert b.grad.tolist() == [1, 1, 1]
    program()
    assert a.grad.tolist() == [6, 6, 6] and b.grad.tolist() == [2, 2, 2]


def test_assigned_gradients():
    w = torch.ones(2, requires_grad=True)

    def f(x):
        w.grad = x * 2
        (w * x).sum().backward()  # adds to it
        kept = w.grad.clone()
        w.grad = None
        (w * 3).sum().backward()
        return kept

    program = trace(f, torch.ones(2))
    for start in (None, torch.full((2,), 100.0)):
        w.grad = start
        assert program(torch.tensor([1.0, 2.0])).tolist() == [3, 6]
        assert w.grad.tolist() == [3, 3]


def test_reading_grad_is_noticed():
    w = torch.ones(2, requires_grad=True)

    def clipped(x):
        (w * x).sum().backward()
        w.grad.clamp_(max=1)

    program = trace(clipped, torch.ones(2))
    program(torch.tensor([3.0, 0.5]))
    assert w.grad.tolist() == [1, 0.5]
    with pytest.raises(RuntimeError, match="reads .grad of a leaf that had none"):
        program(torch.ones(2))
    w.grad = None

    def zeroed(x):
        if w.grad is not None:
            w.grad.zero_()
        (w * x).sum().backward()

    program = trace(zeroed, torch.ones(2))
    program(torch.ones(2))
    with pytest.raises(RuntimeError, match="another one than at the trace"):
        program(torch.ones(2))
    program = trace(lambda x: (w * x).sum().backward(), torch.ones(2))  # adds to the gradient that there is
    program(torch.ones(2))
    assert w.grad.tolist() == [2, 2]
    w.grad = None
    with pytest.raises(RuntimeError, match="another one than at the trace"):
        program(torch.ones(2))


def test_what_is_refused():
    w = torch.randn(3, requires_grad=True)
    history = w * 2
    optimizer = torch.optim.Adafactor([w], lr=0.1)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    def hooked(x):
        y = w * x
        y.register_hook(lambda g: g)
        y.sum().backward()

    def retained(x):
        y = w * x
        y.retain_grad()

    refused = {
        "create_graph=True": lambda x: torch.autograd.grad((w * x).sum(), w, create_graph=True),
        "computed before": lambda x: (history * x).sum().backward(),
        "cannot contain": hooked,
        "stores gradients of leaves only": retained,
        "cannot contain it": lambda x: Twice.apply(w * x).sum().backward(),
        "steps of LBFGS": lambda x: optimizer.step(),
        "that it has made itself": lambda x: torch.ones(3).requires_grad_(),
    }
    for match, f in refused.items():
        with pytest.raises(NotImplementedError, match=match):
            trace(f, torch.ones(3))
    assert w.grad is None
    program = trace(lambda x: (w * x).sum().backward(), torch.ones(3))
    handle = w.register_hook(lambda g: g * 10)
    with pytest.raises(RuntimeError, match="hooks of a tensor"):
        program(torch.ones(3))
    handle.remove()
    program(torch.ones(3))
    assert w.grad.tolist() == [1, 1, 1]


def test_hooks_of_leaves_belong_to_the_program():
    w, v = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    seen = []
    w.register_hook(lambda g: g.clamp(max=1.5))
    w.register_hook(lambda g: seen.append(1) or g * v.detach())
    v.register_hook(lambda g: None)

    def after(leaf):
        leaf.grad.mul_(2)

    handle = v.register_post_accumulate_grad_hook(after)

    def f(x):
        loss = (w * w * v * x).sum()
        loss.backward()
        return loss.detach()

    x = torch.tensor([1.0, 2.0, 3.0])
    for anomaly in (False, True):
        w.grad = v.grad = None
        loss, called = f(x), len(seen)
        expected = w.grad, v.grad
        w.grad = v.grad = None
        with torch.autograd.set_detect_anomaly(anomaly):
            program = trace(f, torch.ones(3))
            assert w.grad is None and len(seen) == called + 1
            assert torch.equal(program(x), loss)
        assert torch.equal(w.grad, expected[0]) and torch.equal(v.grad, expected[1])
        assert len(seen) == called + 1
    handle.remove()
    with pytest.raises(RuntimeError, match="hooks of a tensor"):
        program(x)


def test_a_failed_run_is_the_error_of_the_gradients():
    w = torch.randn(4, 3, requires_grad=True)

    def f(index, x):
        (torch.index_select(w, 0, index) * x).sum().backward()

    program = trace(f, torch.zeros(2, dtype=torch.int64), torch.ones(3))
    program(torch.tensor([0, 1]), torch.ones(3))
    good = w.grad.clone()
    program(torch.tensor([0, 99]), torch.ones(3))
    with pytest.raises(IndexError, match="instruction"):
        w.grad.tolist()
    program(torch.tensor([0, 1]), torch.ones(3))  # adds to a gradient that is incomplete
    with pytest.raises(IndexError):
        w.grad.tolist()
    w.grad = None
    program(torch.tensor([0, 1]), torch.ones(3))
    same(w.grad, good)


def test_a_graph_is_freed_once():
    w = torch.randn(3, requires_grad=True)

    def f(x):
        loss = (w * x).exp().sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="second time"):
        trace(lambda x: f(x).backward(), torch.ones(3))
    loss = trace(f, torch.ones(3))(torch.ones(3))
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
        w.grad.tolist()


def test_replaced_parameters_are_noticed():
    model = network()
    program = trace(model, torch.ones(2, 6))
    program(torch.ones(2, 6))
    model.load_state_dict(network().state_dict())
    same(program(torch.ones(2, 6)), model(torch.ones(2, 6)))
    model[0].weight.data = torch.zeros(16, 6)
    with pytest.raises(RuntimeError, match="was replaced"):
        program(torch.ones(2, 6))
    w = torch.ones(3)
    with pytest.raises(NotImplementedError, match="cannot replace a tensor"):
        trace(lambda x: setattr(w, "data", x * 2), torch.ones(3))


def test_random_numbers_are_those_of_single_calls():
    w = torch.randn(200, 200, requires_grad=True)

    def f(x):
        hidden = F.dropout(x @ w, 0.3) * torch.rand(200)
        loss = (F.dropout(hidden, 0.5) + torch.randn_like(hidden)).pow(2).sum()
        return loss.detach(), *torch.autograd.grad(loss, w)

    x = torch.randn(200, 200)
    program = trace(f, x)
    results = []
    for call in (program, f):
        torch.manual_seed(3)
        results += [call(x), call(x)]
    for got, want in zip(results[:2], results[2:]):
        for a, b in zip(got, want):
            same(a, b)
    assert not torch.equal(results[0][1], results[1][1])


def test_anomalies_are_found():
    w = torch.zeros(3, requires_grad=True)

    def f(x):
        (torch.sqrt(w) * x).sum().backward()

    program = trace(f, torch.zeros(3))
    program(torch.zeros(3))
    assert w.grad.isnan().all()
    w.grad = None
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
        program(torch.zeros(3))
        w.grad.tolist()


def test_backward_is_expanded_into_its_calls():
    w = torch.randn(64, 300, requires_grad=True)

    def f(x, y):
        loss = F.mse_loss(F.gelu(x @ w), y)
        loss.backward()
        return loss.detach()

    program = trace(f, torch.ones(5, 64), torch.ones(5, 300))
    assert "backward(" in program.text
    passes = program.explain(torch.ones(5, 64), torch.ones(5, 300)).split("# after ")
    assert any(text.startswith("expand") and "gelu_erf_backward" in text for text in passes)
    assert " backward(" not in passes[-1]
    # An output that requires grad depends on the tape.
    program = trace(lambda x, y: (f(x, y), w * 2), torch.ones(5, 64), torch.ones(5, 300))
    text = program.explain(torch.ones(5, 64), torch.ones(5, 300))
    assert (
        "# after expand, which has failed: an output requires grad" in text
        and " backward(" in text.split("# after ")[-1]
    )
    w.grad = None
    f(torch.ones(5, 64), torch.ones(5, 300))
    want = w.grad
    w.grad = None
    loss, doubled = program(torch.ones(5, 64), torch.ones(5, 300))
    same(w.grad, want)
    doubled.sum().backward()
    same(w.grad, want + 2)


def test_kernels_that_copy_are_one_call():
    """A view kernel that copies, as flatten of a transposed tensor, is expanded as itself, not as its copy."""
    qkv = torch.randn(2, 6, 3 * 8, requires_grad=True)

    def attend():
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in qkv.chunk(3, -1))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        loss = out.square().sum()
        loss.backward()
        return loss.detach()

    want = attend()
    gradient, qkv.grad = qkv.grad, None
    program = trace(attend)
    last = program.explain().split("# after ")[-1]
    assert "attention_backward" in last and " backward(" not in last and "assign" not in last
    same(program(), want)
    same(qkv.grad, gradient)


def memory_of(text):
    """The bytes of a Program's values after each pass, as its explanation says."""
    return [int(line.split(" bytes")[0].split()[-1]) for line in text.splitlines() if " values of at most " in line]


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_checkpoints_compute_again(dropout):
    from teletensor.utils.checkpoint import checkpoint, checkpoint_sequential

    torch.manual_seed(4)
    blocks = [nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Dropout(dropout), nn.Linear(64, 16)) for _ in range(4)]
    model = nn.Sequential(*blocks)
    x, target = torch.randn(32, 16), torch.randn(32, 16)

    def step(forward):
        model.zero_grad()
        loss = F.mse_loss(forward(x), target)
        loss.backward()
        return loss.detach()

    def each(h):
        for block in blocks:
            h = checkpoint(block, h, use_reentrant=False)
        return h

    torch.manual_seed(5)
    want = step(model)
    gradients = [p.grad for p in model.parameters()]
    memory, calls = [], []
    for forward in (model, each, lambda h: checkpoint_sequential(blocks, 2, h, use_reentrant=False)):
        program = trace(lambda forward=forward: step(forward))
        torch.manual_seed(5)
        same(program(), want)
        for p, g in zip(model.parameters(), gradients):
            same(p.grad, g)
        text = program.explain()
        assert " backward(" not in text.split("# after ")[-1]
        memory.append(memory_of(text)[-1])
        calls.append(text.split("# after expand")[1].split("# after ")[0].count(" tanh("))
    assert calls == [4, 8, 6]
    assert memory[1] < memory[0] and memory[2] < memory[0]


def test_checkpoints_without_backward_in_the_program():
    from teletensor.utils.checkpoint import checkpoint

    w = torch.randn(8, 8, requires_grad=True)
    program = trace(lambda x: checkpoint(lambda y: torch.tanh(y @ w).exp(), x, use_reentrant=True).sum(), torch.ones(4, 8))
    program(torch.ones(4, 8)).backward()
    gradient, w.grad = w.grad, None
    torch.tanh(torch.ones(4, 8) @ w).exp().sum().backward()
    same(gradient, w.grad)
    with pytest.raises(NotImplementedError, match="context_fn"):
        trace(lambda x: checkpoint(torch.sin, x, use_reentrant=False, context_fn=lambda: None), torch.ones(2))


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_fused_calls_store_what_others_read(layout):
    def f(x, y):
        a = torch.exp(x * 0.1)
        b = torch.sigmoid(a + y)
        return a, b, a * b, (b > 0.5), b.sum(2)

    x, y = (torch.randn(4, 8, 32, 33).contiguous(memory_format=layout) for _ in range(2))
    program = trace(f, x, y)
    assert "pointwise_chain" in program.explain(x, y)
    for got, want in zip(program(x, y), f(x, y)):
        same(got, want)


def test_equal_calls_of_two_passes_stay_two():
    p = torch.randn(4, requires_grad=True)

    def passes(x):
        y = x.clone()
        y.add_(1)
        first = torch.autograd.grad((y * p).sigmoid().sum(), [p])[0]
        return first, torch.autograd.grad((y * p).sigmoid().sum(), [p])[0]

    def captured(x):
        y = x.clone()
        y.add_(1)
        a, b = y * p, y * p
        return torch.autograd.grad((a * b + b).sum(), [a])[0]

    def outputs(x):
        return (x * p).sigmoid().sum(), (x * p).sigmoid().sum() * 2

    def changed(x):
        o = x.detach() * 3
        (g,) = torch.autograd.grad(o * 0 + x * 0 + p, [p], [o])
        g.mul_(2)
        return g + 0, o + 0

    x = torch.randn(4)
    for f in (passes, captured, changed):
        got, want = torch.compiler.trace(f, x)(x), f(x)
        for a, b in zip(got, want) if isinstance(got, tuple) else [(got, want)]:
            assert torch.equal(a, b), f.__name__
    first, second = torch.compiler.trace(outputs, x)(x)
    first.backward()
    second.backward()  # of a graph of its own
    value = (x * p).sigmoid().detach()
    assert torch.allclose(p.grad, 3 * x * value * (1 - value))


@pytest.mark.parametrize("function", [
    lambda x, y: ((x / 2).div_(2), 1 / y)[1], lambda x, y: x.long() + y * 2, lambda x, y: (x.bool(), y * 2)[1],
    lambda x, y: ((x * 2)[0].zero_(), y * 2)[1], lambda x, y: x.long().float() * y,
])  # fmt: skip
def test_inputs_without_a_gradient_get_none(function):
    x, y = torch.ones(3, 4, requires_grad=True), torch.ones(3, 4, requires_grad=True)
    trace(function, x, y)(x, y).sum().backward()
    assert x.grad is None and torch.equal(y.grad, torch.autograd.grad(function(x, y).sum(), y)[0])


@pytest.mark.parametrize("function", [
    lambda x, y: torch.zeros(3, 4).copy_(x) * y, lambda x, y: torch.zeros(12).view(3, 4).add_(x) * y,
    lambda x, y: (base := torch.zeros(3, 4), base[0].add_(x[0]), base)[2] * y,
    lambda x, y: (base := y * 1, base.t().mul_(x.t()), base.view(12))[2],
    lambda x, y: (base := torch.zeros(3, 4), base[0].copy_(x[0] + y[0]), base)[2],
])  # fmt: skip
def test_gradients_through_writes_to_views(function):
    x, y = torch.rand(3, 4, requires_grad=True), torch.rand(3, 4, requires_grad=True)
    want = torch.autograd.grad(function(x, y).sum(), (x, y))
    got = torch.autograd.grad(trace(function, x, y)(x, y).sum(), (x, y))
    assert all(torch.equal(a, b) for a, b in zip(got, want))


@pytest.mark.parametrize("function", [
    lambda x: (base := torch.zeros(3, 4), v := base.detach(), base.copy_(x), v * 2)[3],
    lambda x: (base := torch.zeros(3, 4), v := base.t().reshape(12), base.copy_(x), v * 2)[3],
    lambda x: (base := torch.zeros(3, 4), v := base.view(12), base.copy_(x), v * 2)[3],
    lambda x: (base := torch.zeros(3, 4), v := base[1:], u := v[0], base.view(12).mul_(x.view(12)), u * 2)[4],
])  # fmt: skip
def test_views_made_before_a_write(function):
    x = torch.rand(3, 4, requires_grad=True)
    want, got = function(x), trace(function, x)(x)
    assert got.requires_grad == want.requires_grad and torch.equal(got, want)
    if want.requires_grad:
        assert torch.equal(torch.autograd.grad(got.sum(), x)[0], torch.autograd.grad(want.sum(), x)[0])


def test_a_backward_pass_through_a_view_made_before_a_write():
    def step(x, p):
        base = torch.zeros(3, 4)
        view = base.view(12)
        base.copy_(x)
        (view.sum() + p.sum()).backward()

    x, p = torch.rand(3, 4, requires_grad=True), torch.rand(2, requires_grad=True)
    trace(step, x, p)(x, p)
    assert torch.equal(x.grad, torch.ones(3, 4)) and torch.equal(p.grad, torch.ones(2))


def test_a_view_made_without_gradients_of_what_requires_them():
    def both(x):
        base = x * 2
        with torch.no_grad():
            constant = base[0]
        base[1].add_(x[2])
        return constant * 3, base

    x = torch.rand(3, 4, requires_grad=True)
    want, got = both(x), trace(both, x)(x)
    assert [t.requires_grad for t in got] == [t.requires_grad for t in want]
    assert all(torch.equal(a, b) for a, b in zip(got, want))


def test_offsets_of_inputs_may_differ_between_runs():
    weight, base = torch.ones(4, requires_grad=True), torch.arange(8.0)

    def f(x):
        view = x.as_strided((4,), (1,), 0)  # the elements of x if it begins where its storage does
        return torch.autograd.grad((x * weight).sum() + 0 * view.sum(), [weight])[0]

    program = trace(f, base[:4])
    for x in (base[:4], base[4:], base[2:6]):
        same(program(x), f(x))


@pytest.mark.parametrize("apart_first", [False, True])
def test_inputs_that_share_memory_in_some_runs(apart_first):
    weight = torch.ones(4, requires_grad=True)

    def step(state, x):
        h = (x * 3).exp() * weight
        with torch.no_grad():
            state.zero_()
        return torch.autograd.grad(h.square().sum(), [weight])[0]

    with torch._functorch.config.patch(activation_memory_budget=0.0):
        program = trace(step, torch.ones(4), torch.ones(4))
    for is_apart in (apart_first, not apart_first):
        x = torch.ones(4)
        y = torch.ones(4)
        same(program(torch.ones(4) if is_apart else x, x), step(torch.ones(4) if is_apart else y, y))
