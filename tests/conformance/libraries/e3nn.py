"""e3nn: representations of rotations, spherical harmonics, tensor products and equivariant layers."""

import torch
from e3nn import io, nn, o3
from e3nn.math import soft_one_hot_linspace, soft_unit_step

from .tools import backward, fill, randn, train

HIDDEN = "4x0e + 2x1o + 1x2e"


def representations_other():
    irreps = o3.Irreps(HIDDEN)
    starts = [part.start for part in irreps.slices()]
    return [str(irreps), irreps.dim, irreps.lmax, str((irreps * 2).simplify()), str(o3.Irreps.spherical_harmonics(2)), starts]


def rotations_forward():
    angles = [randn(4, seed=seed) for seed in range(3)]
    matrix = o3.angles_to_matrix(*angles)
    quaternion = o3.matrix_to_quaternion(matrix)
    return [matrix, quaternion.abs(), o3.quaternion_to_matrix(quaternion), o3.wigner_D(2, *angles), o3.Irreps(HIDDEN).D_from_matrix(matrix)]


def coefficients_forward():
    return [o3.wigner_3j(1, 1, 2), o3.wigner_3j(2, 1, 1)]


def harmonics_forward():
    return [o3.spherical_harmonics(degree, randn(6, 3), normalize=True, normalization="component") for degree in range(5)]


def harmonics_backward():
    x = randn(6, 3).requires_grad_()
    o3.spherical_harmonics([0, 1, 2, 3], x, normalize=True).sin().sum().backward()
    return x.grad


def scalars_forward():
    x = torch.linspace(-0.5, 2.5, 9)
    bases = ("gaussian", "cosine", "smooth_finite", "fourier", "bessel")
    return [soft_unit_step(x), *(soft_one_hot_linspace(x[2:], 0.0, 2.0, 4, basis, cutoff=True) for basis in bases)]


def _product():
    return fill(o3.FullyConnectedTensorProduct(HIDDEN, "1x0e + 1x1o", HIDDEN))


def products_forward():
    x, y = o3.Irreps(HIDDEN), o3.Irreps("1x0e + 1x1o")
    a, b = randn(5, x.dim), randn(5, y.dim, seed=1)
    linear = fill(o3.Linear(x, "3x0e + 2x1o"))
    return [_product()(a, b), o3.ElementwiseTensorProduct(x, x)(a, a), o3.FullTensorProduct(x, y)(a, b), linear(a)]


def products_backward():
    product = _product()
    return backward(product, product(randn(5, product.irreps_in1.dim), randn(5, 4, seed=1)).square().sum())


def equivariance_other():
    """Whether a product commutes with rotations."""
    product, matrix = _product(), o3.angles_to_matrix(*(randn(seed=seed) for seed in range(3)))
    a, b = randn(5, product.irreps_in1.dim), randn(5, 4, seed=1)
    rotated = [irreps.D_from_matrix(matrix) for irreps in (product.irreps_in1, product.irreps_in2, product.irreps_out)]
    difference = product(a @ rotated[0].T, b @ rotated[1].T) - product(a, b) @ rotated[2].T
    return bool(difference.abs().max() < 1e-4)


def tensors_other():
    cartesian = io.CartesianTensor("ij=ij")
    return [str(cartesian), cartesian.to_cartesian(cartesian.from_cartesian(torch.eye(3) + 1))]


def _rounded(module):
    """Rounds the factors of activations: they are estimates from random numbers, which differ."""
    for part in module.modules():
        if hasattr(part, "cst"):
            part.cst = round(part.cst, 1)
    return module


def _gated():
    gate = _rounded(nn.Gate("4x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o"))
    return fill(torch.nn.Sequential(o3.Linear(HIDDEN, gate.irreps_in), gate, o3.Linear(gate.irreps_out, "1x0e + 1x1o")))


def layers_forward():
    x = randn(5, o3.Irreps(HIDDEN).dim)
    norm, net = fill(nn.BatchNorm(HIDDEN)), fill(_rounded(nn.FullyConnectedNet([3, 8, 2], torch.tanh)))
    return [_gated()(x), norm(x), nn.NormActivation(HIDDEN, torch.sigmoid)(x), net(randn(4, 3))]


def layers_training():
    model, x = _gated(), randn(6, o3.Irreps(HIDDEN).dim)
    return train(model, lambda: (model(x) - 0.5).square().mean())
