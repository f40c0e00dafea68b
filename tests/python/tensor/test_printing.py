"""Texts of tensors are PyTorch's, also where suffixes begin a new line (tests/conformance compares more of them)."""

from __future__ import annotations

import pytest

import teletensor as torch

SEVEN = (1.5, -2.25, 3.125, 4.0, 5.0, 6.0, 7.0)
TEXTS = {
    "a long number": (lambda: torch.tensor([7875558642732048222, 2474614332948913288, 6742647596734310365], dtype=torch.uint64),
                      "tensor([7875558642732048222, 2474614332948913288, 6742647596734310365],\n       dtype=torch.uint64)"),
    "a history": (lambda: torch.tensor(SEVEN, requires_grad=True) * 1.001,
                  "tensor([ 1.5015, -2.2523,  3.1281,  4.0040,  5.0050,  6.0060,  7.0070],\n       grad_fn=<MulBackward0>)"),
    "two suffixes": (lambda: torch.tensor([1e-5, 1, 2, 3], dtype=torch.float16).requires_grad_(),
                     "tensor([1.0014e-05, 1.0000e+00, 2.0000e+00, 3.0000e+00], dtype=torch.float16,\n       requires_grad=True)"),
    "no suffix": (lambda: torch.tensor(SEVEN), "tensor([ 1.5000, -2.2500,  3.1250,  4.0000,  5.0000,  6.0000,  7.0000])"),
    "a short line": (lambda: torch.ones(2, requires_grad=True), "tensor([1., 1.], requires_grad=True)"),
    "complex": (lambda: torch.tensor([0, 1.5, 2, 2, 12345]) + 0j,
                "tensor([0.0000e+00+0.j, 1.5000e+00+0.j, 2.0000e+00+0.j, 2.0000e+00+0.j, 1.2345e+04+0.j])"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_text(name):
    make, expected = TEXTS[name]
    assert repr(make()) == expected


def test_scientific_mode_needs_a_number():
    with torch._tensor_str.printoptions(sci_mode=True):
        assert repr(torch.zeros(2)) == "tensor([0., 0.])" and repr(torch.tensor([1 + 0j])) == "tensor([1.0000e+00+0.j])"
        assert repr(torch.ones(1)) == "tensor([1.0000e+00])"


def test_formats_of_scalars_are_those_of_their_numbers():
    """A meta tensor has none, and a parameter is formatted as an object."""
    meta, parameter = torch.empty((), device="meta"), torch.nn.Parameter(torch.tensor(2.5))
    assert f"{torch.tensor(2.5):.2f} {torch.tensor(2.5)}" == "2.50 2.5"
    assert f"{meta}" == repr(meta) and f"{parameter}" == repr(parameter)
    with pytest.raises(TypeError, match="unsupported format string"):
        format(parameter, ".2f")
