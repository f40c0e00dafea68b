"""Parametrizations: weights computed from other tensors."""

import numpy as np
import pytest


def test_weight_norm_keeps_values_and_trains_both_parts(torch):
    plain = torch.nn.Linear(3, 4)
    before = plain.weight.detach().numpy().copy()
    layer = torch.nn.utils.weight_norm(plain)
    assert set(dict(layer.named_parameters())) == {"bias", "weight_g", "weight_v"}
    layer(torch.randn(2, 3)).sum().backward()
    np.testing.assert_allclose(layer.weight.detach().numpy(), before, rtol=1e-5)
    assert layer.weight_g.grad.shape == (4, 1) and layer.weight_v.grad.shape == (4, 3)
    with pytest.raises(RuntimeError, match="two weight_norm hooks"):
        torch.nn.utils.weight_norm(layer)
    torch.nn.utils.remove_weight_norm(layer)
    assert set(dict(layer.named_parameters())) == {"bias", "weight"}
    np.testing.assert_allclose(layer.weight.detach().numpy(), before, rtol=1e-5)


def test_spectral_norm_finds_the_largest_singular_value(torch):
    layer = torch.nn.utils.spectral_norm(torch.nn.Linear(6, 4), n_power_iterations=3)
    for _ in range(30):
        layer(torch.randn(2, 6))
    assert set(layer.state_dict()) == {"bias", "weight_orig", "weight_u", "weight_v"}
    np.testing.assert_allclose(np.linalg.svd(layer.weight.detach().numpy())[1][0], 1.0, rtol=1e-3)
    layer.eval()
    u = layer.weight_u.clone()
    layer(torch.randn(2, 6)).sum().backward()
    assert layer.weight_u.tolist() == u.tolist() and layer.weight_orig.grad.shape == (4, 6)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_parametrizations_of_layers(torch, name):
    layer = getattr(torch.nn.utils.parametrizations, name)(torch.nn.Conv2d(2, 3, 3))
    parametrize = torch.nn.utils.parametrize
    assert parametrize.is_parametrized(layer, "weight") and isinstance(layer, torch.nn.Conv2d)
    layer(torch.randn(1, 2, 5, 5)).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    value = layer.weight.detach().numpy()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is torch.nn.Conv2d and set(dict(layer.named_parameters())) == {"weight", "bias"}
    np.testing.assert_allclose(layer.weight.detach().numpy(), value, rtol=1e-4)


def test_custom_parametrization(torch):
    class Symmetric(torch.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(0, 1)

        def right_inverse(self, x):
            return x.triu()

    parametrize = torch.nn.utils.parametrize
    layer = parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
    weight = layer.weight.detach().numpy()
    np.testing.assert_array_equal(weight, weight.T)
    layer.weight = torch.eye(3) * 2
    assert layer.weight.tolist() == (2 * np.eye(3)).tolist()
    with parametrize.cached():
        assert layer.weight is layer.weight
    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", torch.nn.Flatten(0))


@pytest.mark.parametrize("transpose", [False, True])
def test_folded_batch_norms(torch, transpose):
    conv = (torch.nn.ConvTranspose2d if transpose else torch.nn.Conv2d)(3, 4, 3)
    bn = torch.nn.BatchNorm2d(4)
    torch.nn.init.uniform_(bn.weight, 0.5, 2.0)
    bn(conv(torch.randn(8, 3, 5, 5)))
    with pytest.raises(AssertionError, match="only for eval"):
        torch.nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    conv.eval(), bn.eval()
    x = torch.randn(2, 3, 5, 5)
    folded = torch.nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    np.testing.assert_allclose(folded(x).detach().numpy(), bn(conv(x)).detach().numpy(), rtol=1e-3, atol=1e-5)


def _scaled(torch, factor, with_inverse=True):
    class Scaled(torch.nn.Module):
        def forward(self, x):
            return factor * x

    if with_inverse:
        Scaled.right_inverse = lambda self, y: y / factor
    return Scaled()


def _weight(torch, values):
    layer = torch.nn.Linear(len(values), 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([values]))
    return layer


def test_a_second_parametrization_leaves_the_original(torch):
    parametrize = torch.nn.utils.parametrize
    layer = _weight(torch, [6.0, 12.0])
    parametrize.register_parametrization(layer, "weight", _scaled(torch, 2))
    parametrize.register_parametrization(layer, "weight", _scaled(torch, 3))
    assert layer.parametrizations.weight.original.tolist() == [[3.0, 6.0]]
    assert layer.weight.tolist() == [[18.0, 36.0]]
    layer.weight = torch.tensor([[6.0, 12.0]])
    assert layer.weight.tolist() == [[6.0, 12.0]]
    assert layer.parametrizations.weight.original.tolist() == [[1.0, 2.0]]


def test_assignment_needs_an_inverse(torch):
    layer = _weight(torch, [1.0])
    torch.nn.utils.parametrize.register_parametrization(layer, "weight", _scaled(torch, 2, with_inverse=False))
    with pytest.raises(RuntimeError, match="does not implement right_inverse"):
        layer.weight = torch.tensor([[1.0]])


def test_a_parametrization_of_several_originals(torch):
    parametrize = torch.nn.utils.parametrize
    layer = torch.nn.utils.parametrizations.weight_norm(_weight(torch, [3.0, 4.0]))
    layer.weight = torch.tensor([[6.0, 8.0]])
    assert layer.parametrizations.weight.original0.tolist() == [[10.0]]
    parametrize.register_parametrization(layer, "weight", _scaled(torch, 2))
    np.testing.assert_allclose(layer.weight.detach().numpy(), [[12.0, 16.0]], rtol=1e-6)
    with pytest.raises(ValueError, match="in terms of a sequence of tensors"):
        parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
    parametrize.remove_parametrizations(layer, "weight")
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
