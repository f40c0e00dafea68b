"""torch.foreach, beside the function of torch for each tensor."""

import pytest

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign "
    "sin sinh sqrt tan tanh trunc"
)


def tensors(torch):
    return [torch.tensor([0.25, 0.5]), torch.tensor([[0.75], [0.125]])]


def equal(got, expected):
    assert type(got) is tuple and [t.tolist() for t in got] == [t.tolist() for t in expected]


@pytest.mark.parametrize("name", UNARY.split())
def test_unary(torch, name):
    x, function = tensors(torch), getattr(torch, name)
    expected = [function(t) for t in x]
    equal(getattr(torch.foreach, name)(x), expected)
    assert getattr(torch.foreach, f"{name}_")(x) is x
    equal(tuple(x), expected)


CALLS = {
    "add": [(2,), ([1, 2],), "x", ("x", {"alpha": 3})], "sub": [(2,), "x", ("x", {"alpha": 3})], "mul": [(2,), "x"], "div": [(2,), "x"],
    "pow": [(2,), ([2, 3],), "x"],
    "clamp_max": [(0.3,), "x"], "clamp_min": [(0.3,), "x"], "maximum": [(0.3,), "x"], "minimum": [(0.3,), "x"],
}  # fmt: skip


def test_binary(torch):
    one = {
        "add": lambda a, b, alpha=1: a + alpha * b, "sub": lambda a, b, alpha=1: a - alpha * b, "mul": lambda a, b: a * b,
        "div": lambda a, b: a / b, "pow": lambda a, b: a**b, "clamp_max": lambda a, b: a.clamp(max=b),
        "clamp_min": lambda a, b: a.clamp(min=b), "maximum": lambda a, b: a.clamp(min=b), "minimum": lambda a, b: a.clamp(max=b),
    }  # fmt: skip
    for name, calls in CALLS.items():
        for call in calls:
            x, keywords = tensors(torch), call[1] if len(call) > 1 else {}
            other = tensors(torch) if call[0] == "x" else call[0]
            others = other if isinstance(other, list) else [other, other]
            expected = [one[name](a, b, **keywords) for a, b in zip(x, others)]
            equal(getattr(torch.foreach, name)(x, other, **keywords), expected)
            assert getattr(torch.foreach, f"{name}_")(x, other, **keywords) is x
            equal(tuple(x), expected)
    equal(torch.foreach.pow(2.0, tensors(torch)), [2.0**t for t in tensors(torch)])


def test_others(torch):
    f, x, y = torch.foreach, tensors(torch), tuple(tensors(torch))
    equal(f.addcmul(x, y, y, value=[1.0, 2.0]), [torch.addcmul(a, b, b, value=v) for a, b, v in zip(x, y, (1, 2))])
    equal(f.addcdiv(x, y, y), [torch.addcdiv(a, b, b) for a, b in zip(x, y)])
    equal(f.lerp(x, [2 * t for t in x], 0.5), [torch.lerp(t, 2 * t, 0.5) for t in x])
    equal(f.norm(x, ord=1, dtype=torch.float64), [t.double().abs().sum() for t in x])
    equal(f.max(x), [t.max() for t in x])
    equal(f.mm([x[1]], [x[1].T]), [x[1] @ x[1].T])
    copies = f.clone(x)
    assert f.zero_(x) is x and f.copy_(y, copies) is y
    equal(copies, tensors(torch))
    leaf = torch.ones(2, requires_grad=True)
    f.mul([leaf, leaf], [3, 4])[1].sum().backward()
    assert leaf.grad.tolist() == [4, 4]
    halves = torch.linspace(-3, 3, 50).half()
    others = halves.flip(0) * 1.7
    equal(f.sub([halves], [others], alpha=3.14), [torch.sub(halves, others, alpha=3.14)])
    assert f.add.__name__ == "add" and set(f.__all__) <= set(dir(f))


def test_rejected_arguments(torch):
    f, x = torch.foreach, tensors(torch)
    for call in (lambda: f.add([], 1), lambda: f.add(x, x[:1]), lambda: f.add(x, torch.ones(2))):
        with pytest.raises(RuntimeError):
            call()
    for call in (
        lambda: f.add(x, 2, alpha=3), lambda: f.sub(x, 2, alpha=1), lambda: f.abs(x[0]), lambda: f.abs([1, 2]), lambda: f.add(iter(x), 1),
        lambda: f.add(x), lambda: f.norm(x, 1), lambda: f.lerp(x, x, weight=0.5),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            call()
