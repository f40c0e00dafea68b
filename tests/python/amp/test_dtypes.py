"""Dtypes of results in autocast regions, compared with PyTorch's (record.py)."""

import json

import pytest

from .cases import CASES, VARIANTS, dtypes
from .record import DTYPES, SETTINGS

RECORDED = json.loads(DTYPES.read_text())


@pytest.mark.parametrize(("device", "lower"), SETTINGS)
def test_dtypes_equal_pytorchs(torch, device, lower):
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no GPU")
    different = {}
    # Recorded without kernels, PyTorch's pinverse on a GPU does not show the product that autocast computes inside it.
    hidden = {"pinverse"} if device == "cuda" else set()
    with torch.autocast(device, getattr(torch, lower)):
        for case, expected in RECORDED[f"{device} {lower}"].items():
            got = [dtypes(torch, CASES[case], device, getattr(torch, lower), variant) for variant in VARIANTS]
            # A call that PyTorch rejects, in lower precision or with several dtypes, may succeed here. PyTorch's results on
            # GPUs were recorded without kernels, which reject lower precision in linear algebra.
            fails = [isinstance(e, str) or (device == "cuda" and isinstance(g, str)) for g, e in zip(got, expected)]
            differs = [g != e for g, e, failed in zip(got, expected, fails) if not failed]
            if any(differs) and case not in hidden:
                different[case] = got, expected
    assert not different, different


def test_every_listed_operator_changes_its_arguments(torch):
    """Without autocast, a listed operator has other results; each case above would otherwise pass without a list."""
    listed = {"lower": "matmul", "float32": "mse_loss", "widest": "cat", "": "add"}
    assert {name: torch._C.autocast_policy(op, "cpu") for name, op in listed.items()} == {name: name for name in listed}
    assert torch._C.autocast_policy("softmax", "cuda") == "float32_result"
    assert torch._C.autocast_policy("binary_cross_entropy", "cuda") == "refused"
    with pytest.raises(ValueError, match="unknown operator"):
        torch._C.autocast_policy("nowhere", "cpu")
