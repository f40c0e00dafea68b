"""torch.__future__: whether Module.to() and similar methods change, replace or swap parameters."""

import importlib

import pytest


@pytest.fixture
def future(torch):
    module = importlib.import_module(f"{torch.__name__}.__future__")
    assert module is torch.__future__
    yield module
    module.set_overwrite_module_params_on_conversion(False)
    module.set_swap_module_params_on_conversion(False)


def test_parameters_are_replaced(torch, future):
    assert not future.get_overwrite_module_params_on_conversion()
    kept = torch.nn.Linear(2, 2)
    weight = kept.weight
    assert kept.double().weight is weight and weight.dtype == torch.float64
    future.set_overwrite_module_params_on_conversion(True)
    linear = torch.nn.Linear(2, 2)
    weight = linear.weight
    weight.grad = torch.ones(2, 2)
    linear.bias.requires_grad_(False)
    linear.double()
    assert linear.weight is not weight and weight.dtype == torch.float32 and linear.weight.dtype == torch.float64
    assert linear.weight.requires_grad and not linear.bias.requires_grad and linear.weight.grad.dtype == torch.float64
    assert [type(p) for p in linear.parameters()] == [torch.nn.Parameter] * 2 and weight.grad.dtype == torch.float32


def test_parameters_are_swapped(torch, future):
    future.set_swap_module_params_on_conversion(True)
    linear = torch.nn.Linear(2, 2)
    weight, values = linear.weight, linear.weight.tolist()
    weight.grad = torch.ones(2, 2)
    linear.double()
    assert linear.weight is weight and weight.dtype == weight.grad.dtype == torch.float64 and weight.requires_grad
    torch.testing.assert_close(weight, torch.tensor(values, dtype=torch.float64), rtol=1e-6, atol=1e-6)
    import weakref

    held = weakref.ref(weight)
    with pytest.raises(RuntimeError, match=r"_apply\(\): Couldn't swap Linear.weight"):
        linear.half()
    assert held() is weight and weight.dtype == torch.float64 and weight.grad.dtype == torch.float64
