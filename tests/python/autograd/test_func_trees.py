"""torch.func with registered containers, and the steps of vmap that libraries replace."""

from dataclasses import dataclass

import pytest

import teletensor as torch
from teletensor.utils import _pytree as pytree


@dataclass
class Pair:
    a: torch.Tensor
    b: torch.Tensor


@pytest.fixture(autouse=True)
def registered():
    pytree.register_dataclass(Pair)
    yield
    pytree._deregister_pytree_node(Pair)


def product(pair):
    return Pair(pair.a + pair.b, (pair.a * pair.b).sum())


def test_vmap_maps_over_registered_containers():
    x = torch.arange(6.0).reshape(2, 3)
    mapped = torch.vmap(product)(Pair(x, x + 1))
    assert mapped.a.tolist() == (2 * x + 1).tolist()
    assert mapped.b.tolist() == (x * (x + 1)).sum(1).tolist()
    chunks = torch.vmap(product, in_dims=(Pair(1, 0),), out_dims=Pair(1, 0), chunk_size=2)(Pair(x, torch.ones(3, 2)))
    assert chunks.a.tolist() == (x + 1).tolist()
    assert chunks.b.tolist() == x.sum(0).tolist()


def test_derivatives_of_registered_containers():
    x = torch.tensor([1.0, 2.0])
    gradient = torch.func.grad(lambda p: (p.a * p.b).sum())(Pair(x, x * 3))
    assert (gradient.a.tolist(), gradient.b.tolist()) == ([3, 6], [1, 2])
    value, tangent = torch.func.jvp(product, (Pair(x, x),), (Pair(x, -x),))
    assert (value.b.item(), tangent.a.tolist(), tangent.b.item()) == (5, [0, 0], 0)
    (cotangents,) = torch.func.vjp(product, Pair(x, x))[1](Pair(x, x.sum()))
    assert cotangents.a.tolist() == [4, 8]
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        found = jacobian(lambda p: p.a * p.b)(Pair(x, x + 1))
        assert (found.a.tolist(), found.b.tolist()) == ([[2, 0], [0, 3]], [[1, 0], [0, 2]])


def test_libraries_can_replace_the_steps_of_vmap(monkeypatch):
    from teletensor._functorch import vmap as steps

    level_of = []

    def create(flat_in_dims, flat_args, vmap_level, args_spec):
        level_of.append(vmap_level)
        made = [x if d is None else steps._add_batch_dim(x, d, vmap_level) for x, d in zip(flat_args, flat_in_dims)]
        return pytree.tree_unflatten(made, args_spec)

    monkeypatch.setattr(steps, "_create_batched_inputs", create)
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.vmap(lambda v: v.sum())(x).tolist() == [3, 12]
    assert len(level_of) == 1


def test_vmap_as_captured_graphs_call_it():
    steps, c = torch._functorch.predispatch, torch._C._functorch
    rows, columns = torch.arange(3), torch.arange(4)
    torch.vmap(lambda v: v)(rows)  # levels do not depend on transforms that have ended
    torch._functorch.vmap.lazy_load_decompositions()
    assert steps._vmap_increment_nesting(3, "error") == 1
    outer = steps._add_batch_dim(rows, 0, 1)
    assert c._vmap_increment_nesting(4, "error") == 2
    inner = c._add_batch_dim(columns, 0, 2)
    with pytest.raises(RuntimeError, match="randomness"):
        torch.rand(2)
    values = c._remove_batch_dim(outer * 10 + inner, 2, 4, 0)
    assert steps._vmap_decrement_nesting() == 2
    values = steps._remove_batch_dim(values, 1, 3, 0)
    assert c._vmap_decrement_nesting() == 1
    assert values.tolist() == [[10 * i + j for j in range(4)] for i in range(3)]
    with pytest.raises(RuntimeError, match="got none"):
        steps._vmap_decrement_nesting()
    with pytest.raises(RuntimeError, match="expected a level of the 0 vmaps"):
        steps._add_batch_dim(rows, 0, 1)


def test_names_of_transformed_tensors():
    from teletensor._C import _functorch

    seen = {}

    def function(v):
        seen.update(batched=_functorch.is_batchedtensor(v), level=_functorch.maybe_get_level(v), inside=_functorch.get_unwrapped(v).shape)
        assert _functorch._remove_batch_dim(v, seen["level"], 2, 1).shape == (3, 2)
        return v * 2

    x = torch.ones(2, 3)
    torch.vmap(function)(x)
    assert seen["level"] == 1
    assert seen["batched"] and seen["level"] >= 0 and seen["inside"] == (2, 3)
    assert not _functorch.is_batchedtensor(x) and _functorch.maybe_get_level(x) == _functorch.maybe_get_bdim(x) == -1
    with pytest.raises(RuntimeError, match="function transform"):
        _functorch.get_unwrapped(x)


def test_named_tensors_of_modules_are_exchanged():
    from teletensor.nn.utils._named_member_accessor import _MISSING, set_tensor, swap_tensor

    layer = torch.nn.Linear(2, 2)
    weight, other = layer.weight, torch.zeros(2, 2)
    assert swap_tensor(layer, "weight", other) is weight
    assert layer._parameters["weight"] is other
    assert swap_tensor(layer, "weight", _MISSING) is other
    assert not hasattr(layer, "weight")
    assert swap_tensor(layer, "weight", weight, allow_missing=True) is _MISSING
    set_tensor(layer, "bias", None)
    assert layer.bias is None
    for name, error in (("a.b", KeyError), ("", KeyError), ("missing", AttributeError), ("in_features", TypeError)):
        with pytest.raises(error):
            swap_tensor(layer, name, other)


def test_context_decorator():
    from teletensor.utils._contextlib import _DecoratorContextManager, context_decorator

    class Recorded(_DecoratorContextManager):
        entered = 0

        def __enter__(self):
            Recorded.entered += 1

        def __exit__(self, *exc):
            Recorded.entered -= 1

    @Recorded()
    def inside():
        return Recorded.entered

    def steps():
        yield Recorded.entered

    steps = context_decorator(lambda: Recorded(), steps)

    assert inside() == 1 and list(steps()) == [1] and Recorded.entered == 0
    with pytest.raises(RuntimeError, match="Cannot decorate classes"):
        context_decorator(lambda: Recorded(), Recorded)


def test_modules_of_devices():
    from teletensor._utils import _get_available_device_type, _get_device_module

    assert _get_device_module("cuda") is torch.cuda
    assert (_get_available_device_type() is None) == (torch.accelerator.current_accelerator() is None)
    with pytest.raises(RuntimeError, match="corresponding module"):
        _get_device_module("no_device")


def test_aliases():
    from teletensor import _C

    x = torch.ones(3)
    assert _C._is_alias_of(x, x[1:]) and not _C._is_alias_of(x, x.clone())


def _gradient_of(result, w):
    return torch.autograd.grad(result.sum(), w, allow_unused=True)[0] if result.requires_grad else None


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda x, w: torch.func.grad(lambda a, b: (a * b).pow(2).sum())(x, w), "4 * x * w"),
        (lambda x, w: torch.func.grad(lambda a: (a * w).pow(2).sum())(x), "4 * x * w"),
        (lambda x, w: torch.vmap(torch.func.grad(lambda a, b: a * a * b))(x, w), "2 * x"),
        (lambda x, w: torch.func.jacrev(lambda a: a * w)(x), "torch.ones(3)"),
        (lambda x, w: torch.func.vjp(lambda a: a * w, x)[0], "x"),
        (lambda x, w: torch.func.vjp(lambda a: a * w, x)[1](x)[0], "x"),
        (lambda x, w: torch.func.hessian(lambda a: (a * a * w).sum())(x), "torch.full((3,), 2.0)"),
        (lambda x, w: torch.func.grad(torch.func.grad(lambda a: a**3 * w[0]))(x[0]), "torch.stack([6 * x[0], x[0] * 0, x[0] * 0])"),
        (lambda x, w: torch.func.grad_and_value(lambda a: (a * a).sum())(x)[1], "None"),
        (lambda x, w: torch.func.grad_and_value(lambda a: ((a * a).sum(), w * 2), has_aux=True)(x)[0], "None"),
        (lambda x, w: torch.func.grad_and_value(lambda a: ((a * a).sum(), w * 2), has_aux=True)(x)[1][1], "torch.full((3,), 2.0)"),
    ],
)
def test_results_depend_on_tensors_that_are_not_differentiated(compute, expected):
    x, w = torch.tensor([1.0, 2, 3]), torch.tensor([0.5, 1, 2], requires_grad=True)
    want = eval(expected, {"torch": torch, "x": x, "w": w.detach()})
    got = _gradient_of(compute(x, w), w)
    assert (got is None) == (want is None)
    assert got is None or torch.equal(got, want)
    with torch.no_grad():
        assert not compute(x, w).requires_grad
