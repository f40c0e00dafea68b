"""Calls of sparse tensors against what PyTorch does (values.json, made by record.py)."""

from __future__ import annotations

import builtins
import json
import math
from pathlib import Path
from typing import Any

import pytest

import teletensor as torch

from .cases import BEYOND, EXPRESSIONS, MORE_COALESCED, operands
from .encode import outcome

WANTED = json.loads(Path(__file__).with_name("values.json").read_text())["results"]


def _close(want: Any, got: Any) -> bool:
    """Whether results are equal; floats, which are texts, to 5 digits."""
    if isinstance(want, list):
        return isinstance(got, list) and len(want) == len(got) and all(map(_close, want, got))
    if isinstance(want, dict):
        return isinstance(got, dict) and want.keys() == got.keys() and all(_close(want[k], got[k]) for k in want)
    if isinstance(want, str) and isinstance(got, str):
        try:
            x, y = float(want), float(got)
        except ValueError:
            return want == got
        return x == y or math.isclose(x, y, rel_tol=1e-5, abs_tol=1e-6) or (math.isnan(x) and math.isnan(y))
    return want == got


def _matches(expression: str, want: Any, got: Any) -> bool:
    if isinstance(want, dict) and "error" in want:
        if not isinstance(got, dict) or "error" not in got or want["error"] == "crash":
            return want["error"] == "crash"
        wanted, found = (getattr(builtins, k["error"], Exception) for k in (want, got))
        return issubclass(found, wanted) or issubclass(wanted, found)
    if expression in MORE_COALESCED:
        want = json.loads(json.dumps(want).replace('"coalesced": false', '"coalesced": true'))
    return _close(want, got)


@pytest.mark.usefixtures("device")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(8))
def test_calls_are_those_of_pytorch(part: int) -> None:
    wrong = []
    for expression in EXPRESSIONS[part::8]:
        if expression in BEYOND:
            continue
        got = outcome(torch, expression, operands(torch))
        if not _matches(expression, WANTED[expression], got):
            wrong.append(f"{expression}\n  expected {str(WANTED[expression])[:300]}\n  got {str(got)[:300]}")
    assert not wrong, "\n".join(wrong)


def test_all_calls_are_recorded() -> None:
    assert WANTED.keys() == set(EXPRESSIONS)
    assert not set(BEYOND) - set(EXPRESSIONS)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("expression", sorted(BEYOND))
def test_calls_that_pytorch_refuses(expression: str) -> None:
    """Results that PyTorch does not compute are those of strided tensors."""
    assert "error" in WANTED[expression]
    names = operands(torch)
    dense = {k: v.to_dense() if isinstance(v, torch.Tensor) else v for k, v in operands(torch).items()}
    got = eval(expression, {}, names)
    want = eval(BEYOND[expression] or expression, {}, dense)
    torch.testing.assert_close(got.to_dense(), want)


def test_errors_name_the_operator_and_the_layout() -> None:
    names = operands(torch)
    with pytest.raises(NotImplementedError, match="'aten::cos' with arguments from the 'SparseCPU' backend"):
        names["cc"].cos()
    with pytest.raises(NotImplementedError, match="'aten::lerp' with arguments from the 'SparseCsrCPU' backend"):
        torch.lerp(names["csr"], names["csr"], 0.5)


def test_values_are_shared_with_the_tensor() -> None:
    t = operands(torch)["cc"]
    t.values().mul_(2)
    assert t.to_dense().sum().item() == 1.0


def test_invariants() -> None:
    checks = torch.sparse.check_sparse_tensor_invariants
    assert not checks.is_enabled()
    with checks():
        assert checks.is_enabled()
        with pytest.raises(RuntimeError, match="size is inconsistent with indices: for dim 0, size is 2 but found index 5"):
            torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (2,))
    assert not checks.is_enabled()
    with pytest.raises(RuntimeError, match="found negative index -1 for dim 0"):
        torch.sparse_coo_tensor([[-1]], [1.0], (2,), check_invariants=True)


def test_unchecked_indices_do_no_harm() -> None:
    for t in (
        torch.sparse_coo_tensor([[0, 10**15]], [1.0, 2.0], (2,)), torch.sparse_coo_tensor([[-1]], [1.0], (2,)),
        torch.sparse_csr_tensor([0, 1, 2], [0, 10**12], [1.0, 2.0], (2, 3)), torch.sparse_csr_tensor([0, 7, 2], [0, 1], [1.0, 2.0], (2, 3)),
        torch.sparse_csr_tensor([5, 1, 2], [0, 1], [1.0, 2.0], (2, 3)),
    ):  # fmt: skip
        with pytest.raises((RuntimeError, IndexError)):
            t.to_dense().sum().item()
        if t.dim() == 2:
            with pytest.raises((RuntimeError, IndexError)):
                (t @ torch.ones(3, 2)).sum().item()


@pytest.mark.parametrize("make", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_alpha_of_a_kind_that_the_sum_does_not_hold(make: str) -> None:
    a, b = (getattr(torch.tensor(rows), make)() for rows in ([[1, 0], [0, 2]], [[0, 3], [0, 4]]))
    assert torch.add(a, b, alpha=2).to_dense().tolist() == [[1, 6], [0, 10]]
    for other in (a, b):
        with pytest.raises(RuntimeError, match="must not be a floating point number"):
            torch.add(a, other, alpha=1.5)
        with pytest.raises(RuntimeError, match="Boolean alpha"):
            torch.add(a, other, alpha=True)
        with pytest.raises(RuntimeError, match="must not be a complex number"):
            torch.add(a, other, alpha=2j)


def test_dense_dimensions_of_a_conversion(torch):
    x = torch.eye(5)
    assert x.to_sparse(layout=torch.strided) is x
    made = x.to_sparse(dense_dim=1)
    assert (made.sparse_dim(), tuple(made.values().shape)) == (1, (5, 5)) and made.to_dense().tolist() == x.tolist()
    for options, message in (
        ({"dense_dim": 3}, r"dense_dim argument must be in \[0,2\] range, but 3 is given"),
        ({"dense_dim": 2}, r"dense_dim argument must be !=self.dim\(\) when self.dim\(\)>0"),
        ({"dense_dim": 1, "layout": torch.strided}, r"dense_dim argument must be in \[0,0\] range, but 1 is given"),
    ):
        with pytest.raises(RuntimeError, match=message):
            x.to_sparse(**options)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
def test_memory_formats(layout):
    s = torch.eye(3).to_sparse(layout=getattr(torch, layout))
    for memory_format in (torch.contiguous_format, torch.channels_last):
        for clone in (torch.clone, torch.Tensor.clone):
            with pytest.raises(RuntimeError, match="unsupported memory format option"):
                clone(s, memory_format=memory_format)
    for like in (torch.zeros_like, torch.empty_like):
        if layout == "sparse_coo":
            with pytest.raises(RuntimeError, match="memory format option is only supported by strided tensors"):
                like(s, memory_format=torch.contiguous_format)
        else:
            assert like(s, memory_format=torch.contiguous_format).layout == s.layout


def test_only_zero_fills_sparse_coo():
    for fill in (torch.Tensor.fill_, torch.fill_, lambda s, value: s.fill_(value)):
        if fill is not torch.Tensor.fill_:
            with pytest.raises(NotImplementedError, match="aten::fill_"):
                fill(torch.eye(3).to_sparse(), 0)
        assert fill(torch.eye(3).to_sparse_csr(), 0).values().tolist() == [0, 0, 0]
    for zero in (torch.zero_, torch.Tensor.zero_, lambda s: s.zero_()):
        assert zero(torch.eye(3).to_sparse())._nnz() == 0


def test_normal_changes_the_values_of_compressed_layouts():
    torch.manual_seed(3)
    for layout in ("sparse_csr", "sparse_csc"):
        s = torch.eye(300).to_sparse(layout=getattr(torch, layout))
        assert s.normal_(5, 0.1) is s and s._nnz() == 300
        assert abs(s.values().mean().item() - 5) < 0.05 and 0.05 < s.values().std().item() < 0.2
    with pytest.raises(NotImplementedError, match="aten::normal_"):
        torch.eye(3).to_sparse().normal_()


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_bytes_are_those_of_the_components(layout):
    with pytest.raises(RuntimeError, match="nbytes is not defined for sparse tensors"):
        _ = torch.eye(3).to_sparse(layout=getattr(torch, layout)).nbytes
