"""Exports every row of the tables, checks the model, and compares onnxruntime's results with the module's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from . import rows_core, rows_layers, rows_layout, rows_pointwise, rows_reductions
from .cases import FIRST, SECOND, Case, array, dynamic

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

TABLES = {
    "pointwise": rows_pointwise.ROWS, "reductions": rows_reductions.ROWS, "layers": rows_layers.ROWS, "layout": rows_layout.ROWS,
    "core": rows_core.ROWS,
}  # fmt: skip
ROWS = [(f"{table}-{name}", case) for table, rows in TABLES.items() for name, case in rows.items()]


def session_of(model: Any) -> Any:
    """A session of onnxruntime without optimizations, which make it slower to create."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def module_of(torch: Any, case: Case) -> Any:
    """The module of a case, in the mode of inference."""
    torch.manual_seed(0)
    if case.is_module:
        return case.call(torch).eval()

    class Function(torch.nn.Module):
        """The case's function."""

        def forward(self, *args: Any) -> Any:
            """Calls it."""
            return case.call(torch, *args)

    return Function()


def arguments(torch: Any, case: Case, sizes: dict[str, int], seed: int) -> tuple:
    """Tensors for the descriptions."""
    rng = np.random.default_rng(seed)
    return tuple(torch.from_numpy(np.array(array(text, sizes, rng))) for text in case.inputs)


def check(model: Any) -> None:
    """Raises an error if the model is invalid, or its types and sizes are contradictory."""
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)


def compare(torch: Any, case: Case, module: Any, model: Any, rounds: list[tuple]) -> None:
    """Compares the results for each round of arguments."""
    session = session_of(model)
    names = [i.name for i in session.get_inputs()]
    for args in rounds:
        found = session.run(None, dict(zip(names, (a.numpy() for a in args), strict=True)))
        with torch.no_grad():
            expected = torch.utils._pytree.tree_leaves(module(*args))
        assert len(found) == len(expected)
        for a, b in zip(found, expected):
            b = b.numpy() if isinstance(b, torch.Tensor) else np.asarray(b)
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            if not case.random:
                np.testing.assert_allclose(a, b, atol=case.tolerance[0], rtol=case.tolerance[1], equal_nan=True)


def run(torch: Any, case: Case) -> None:
    """Exports a case in all of its opsets and compares the values, for two choices of the dynamic sizes."""
    module = module_of(torch, case)
    first = arguments(torch, case, FIRST, 1)
    shapes = [dynamic(text) for text in case.inputs]
    rounds = [first] + ([arguments(torch, case, SECOND, 2)] if any(shapes) else [])
    given = None
    if any(shapes):
        dims = {s: torch.export.Dim(s) for s in FIRST}
        found = [d and {i: dims[s] for i, s in d.items()} for d in shapes]
        given = tuple(found) if case.is_module else {"args": tuple(found)}
    program = torch.export.export(module, first, dynamic_shapes=given)
    for opset in case.opsets:
        model = torch.onnx.export(program, opset_version=opset).model_proto
        check(model)
        compare(torch, case, module, model, rounds)


@pytest.mark.parametrize("case", [c for _, c in ROWS], ids=[n for n, _ in ROWS])
def test_row(torch: Any, case: Case) -> None:
    run(torch, case)


def test_every_operator_of_core_aten_has_a_row_or_a_reason() -> None:
    from tests.conformance.onnx_export import coverage

    assert [n for n in coverage.operators() if coverage.row_of(n) is None and coverage.reason_of(n) is None] == []
    assert set(coverage.ELSEWHERE.values()) <= set(dict(ROWS))
