"""Every operator with a tensor of each layout: it computes, or raises an error that names the operator or the layout."""

from __future__ import annotations

import re

import numpy as np
import pytest

import teletensor as torch

from .samples import SAMPLES, arguments, call, tensor

# What an error's text contains for each layout: its name as the library or PyTorch writes it.
NAMES = {
    "sparse_coo": "[Ss]parse", "sparse_csr": "[Ss]parse|CSR", "sparse_csc": "[Ss]parse|CSR", "sparse_bsr": "[Ss]parse|CSR",
    "sparse_bsc": "[Ss]parse|CSR", "jagged": r"[Nn]ested|ragged|jagged|\bj\d+", "nested": "[Nn]ested|constituents", "masked": "[Mm]ask",
    "quantized": "[Qq]uanti[sz]|quint8",
}  # fmt: skip
ERRORS = (NotImplementedError, RuntimeError, TypeError, ValueError, IndexError)


def _converted(layout: str, array: np.ndarray):
    """The array as a tensor of the layout; None if it has too few dimensions."""
    t = tensor(torch, array)
    blocks = tuple(2 - n % 2 for n in array.shape)
    if layout == "quantized":
        return torch.quantize_per_tensor(t.float(), 0.125, 128, torch.quint8) if array.dtype.kind == "f" else None
    if layout == "masked":
        return torch.masked.masked_tensor(t, t > 0) if array.dtype.kind == "f" else None
    if layout in ("jagged", "nested"):
        if array.ndim < 2 or min(array.shape[:2]) < 1:
            return None
        rows = [row[: array.shape[1] - i % 2] for i, row in enumerate(t)]
        return torch.nested.nested_tensor(rows, layout=torch.jagged if layout == "jagged" else torch.strided)
    if layout == "sparse_coo":
        return t.to_sparse() if array.ndim else None
    if array.ndim != 2 or not array.size:
        return None
    return t.to_sparse(layout=getattr(torch, layout), **({"blocksize": blocks} if layout in ("sparse_bsr", "sparse_bsc") else {}))


FIRST = {s.operator.name: s for s in reversed(SAMPLES) if any(isinstance(v, np.ndarray) and v.ndim for v in s.values.values())}


@pytest.mark.parametrize("layout", NAMES)
def test_computes_or_names_the_layout(layout):
    unnamed, computed = [], 0
    for name, sample in FIRST.items():
        first = next(k for k, v in sample.values.items() if isinstance(v, np.ndarray) and v.ndim)
        given = _converted(layout, sample.values[first])
        if given is None:
            continue
        try:
            call(torch, sample, arguments(torch, sample, lambda key, v: given if key == first else tensor(torch, v)))
            computed += 1
        except ERRORS as error:
            if not re.search(rf"{NAMES[layout]}|\b{name}\b", str(error)) or "has no values in the engine" in str(error):
                unnamed.append(f"{name}: {type(error).__name__}: {error}")
        except Exception as error:  # noqa: BLE001 - reported with the others
            unnamed.append(f"{name}: {type(error).__name__}: {error}")
    assert not unnamed, "\n".join(unnamed)
    assert computed > 15


F = torch.nn.functional
# Functions that compute with sizes before they call an operator, with a jagged tensor of sizes [2, j, 4] or [2, j, 4, 4, 4].
OF_SIZES = {
    "batch_norm": lambda x, _: F.batch_norm(x, None, None, training=True), "instance_norm": lambda x, _: F.instance_norm(x),
    "block_diag": lambda x, _: torch.block_diag(x), "lu_unpack": lambda x, _: torch.lu_unpack(x, x),
    "ormqr": lambda x, _: torch.ormqr(x, x, x),
    "lu_solve": lambda x, _: torch.linalg.lu_solve(x, x, x), "adaptive": lambda _, x: F.adaptive_avg_pool3d(x, 2),
    "fractional_max_pool2d": lambda x, _: F.fractional_max_pool2d(x, 2, output_size=1),
    "multilabel_soft_margin_loss": lambda x, _: F.multilabel_soft_margin_loss(x.sum(-1), x.sum(-1)),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_SIZES)
def test_functions_of_sizes_refuse_nested_tensors_by_name(name):
    made = [torch.nested.nested_tensor([torch.rand(n, *rest) for n in (2, 3)], layout=torch.jagged) for rest in ((4,), (4, 4, 4))]
    with pytest.raises(NotImplementedError, match=rf"\[.*{name}.*\] expected tensors .*not nested"):
        OF_SIZES[name](*made)


def test_new_quantized_tensors_are_refused_by_name():
    q = torch.quantize_per_tensor(torch.rand(3), 0.1, 0, torch.quint8)
    for function, name in ((q.new_empty, "new_empty"), (q.new_zeros, "zero_")):
        with pytest.raises(NotImplementedError, match=f"aten::{name}' .*Quantized"):
            function((2, 3))
