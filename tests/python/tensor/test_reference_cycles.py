"""Functions that pass tensors on do not keep them until the next garbage collection."""

from __future__ import annotations

import gc
import weakref

import pytest


def through_trees(torch, tensor):
    from teletensor.utils import _pytree

    leaves, structure = _pytree.tree_flatten({"a": [tensor]})
    _pytree.tree_unflatten(leaves, structure)
    _pytree.tree_map(lambda t: t, (tensor, tensor))


def through_a_loader(torch, tensor):
    from teletensor.utils.data._sample_structure import restore

    assert len([*torch.utils.data.DataLoader([{"x": (tensor, 1)}, {"x": (tensor, 2)}], batch_size=1)]) == 2
    assert restore((), [tensor], batch=False) == ()


def through_transforms(torch, tensor):
    torch.func.grad(lambda x: x.sum())(tensor)
    torch.func.vmap(lambda x: (x, {"a": x}))(tensor)


def through_forward_mode(torch, tensor):
    for function in (torch.logcumsumexp, torch.cummax, torch.cumprod):
        torch.func.jvp(lambda x: function(x, 0), (tensor,), (tensor,))  # noqa: B023


def through_a_nested_state_dict(torch, tensor):
    from teletensor.distributed.checkpoint._nested import flatten_state_dict

    assert flatten_state_dict({"a": {"b": [tensor, 1]}, "c": {}})[1] == {"a.b.0": ("a", "b", 0), "a.b.1": ("a", "b", 1), "c": ("c",)}


def through_a_module(torch, tensor):
    layer = torch.nn.Linear(2, 2)
    layer.load_state_dict({"weight": tensor, "bias": torch.zeros(2)})


def through_a_selective_checkpoint(torch, tensor):
    from teletensor.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

    contexts = lambda: create_selective_checkpoint_contexts(lambda *args, **kwargs: True)  # noqa: E731
    checkpoint(lambda x: x * tensor + tensor * 2, tensor.clone().requires_grad_(), use_reentrant=False, context_fn=contexts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        through_trees, through_a_loader, through_transforms, through_forward_mode, through_a_nested_state_dict, through_a_module,
        through_a_selective_checkpoint,
    ],  # fmt: skip
)
def test_tensors_are_not_kept(torch, use):
    use(torch, torch.ones(2, 2))  # modules that are imported at the first use
    gc.collect()
    gc.disable()
    try:
        tensor = torch.ones(2, 2)
        known = weakref.ref(tensor)
        use(torch, tensor)
        del tensor
        assert known() is None
    finally:
        gc.enable()


def test_load_state_dict_makes_no_cycle(torch):
    module = torch.nn.Linear(2, 2)
    module.load_state_dict(module.state_dict())
    gc.collect()
    module.load_state_dict(module.state_dict())
    assert gc.collect() == 0
