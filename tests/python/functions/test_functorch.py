"""functorch: the former names of torch.func."""

import copy

import pytest

import teletensor as torch
from teletensor import functorch


def network():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))


def test_functions_warn_and_are_those_of_func():
    x = torch.tensor([1.0, 2.0])
    with pytest.warns(FutureWarning, match="`functorch.grad` is deprecated.*`torch.func.grad`"):
        assert functorch.grad(lambda x: (x**3).sum())(x).tolist() == [3.0, 12.0]
    with pytest.warns(FutureWarning, match="`torch.vmap`"):
        assert functorch.vmap(torch.sum)(torch.ones(2, 3)).tolist() == [3.0, 3.0]


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_modules_as_functions():
    model, x = network().eval(), torch.ones(4, 2)
    function, params, buffers = functorch.make_functional_with_buffers(model)
    assert torch.equal(function(params, buffers, x), model(x)) and all(p.requires_grad for p in params)
    with pytest.raises(RuntimeError, match="has buffers"):
        functorch.make_functional(model)
    layer = torch.nn.Linear(2, 1)
    function, params = functorch.make_functional(layer, disable_autograd_tracking=True)
    assert not any(p.requires_grad for p in params) and all(p.requires_grad for p in layer.parameters())
    assert function(tuple(p * 0 for p in params), x).abs().sum() == 0
    models = [copy.deepcopy(model) for _ in range(3)]
    function, params, buffers = functorch.combine_state_for_ensemble(models)
    results = functorch.vmap(function, in_dims=(0, 0, None))(params, buffers, x)
    assert results.shape == (3, 4, 1) and torch.allclose(results[2], model(x))
