"""Which operators of core ATen export to ONNX, from the rows of tests/python/onnx_export."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.python.onnx_export import test_rows
from tests.python.onnx_export.cases import Case

CORE = Path(__file__).with_name("core_aten.txt")

# Operators that graphs here do not contain, because the functions that have them in PyTorch's graphs record others, with the row
# that tests the function.
ELSEWHERE = {
    "_adaptive_avg_pool3d": "layers-adaptive_avg_pool3d", "_cdist_forward": "reductions-cdist", "_embedding_bag": "layers-embedding_bag",
    "_fft_c2r": "layout-irfft", "_fft_r2c": "layout-rfft", "_native_batch_norm_legit": "layers-batch_norm2d",
    "_native_batch_norm_legit.no_stats": "layers-batch_norm2d-batch-statistics", "_pdist_forward": "reductions-pdist",
    "atan2.out": "layout-write-out", "col2im": "layers-fold", "copy": "layout-write-in-view",
    "max_pool3d_with_indices": "layers-max_pool3d",
    "reflection_pad1d": "layers-pad-reflect", "reflection_pad2d": "layers-conv2d-reflect", "reflection_pad3d": "layers-reflection_pad3d",
    "replication_pad2d": "layers-pad-replicate", "replication_pad3d": "layers-replication_pad3d",
    "upsample_bilinear2d.vec": "layers-bilinear",
}  # fmt: skip

def operators() -> list[str]:
    """The operators of core ATen."""
    return CORE.read_text().split()


def row_of(name: str) -> str | None:
    """The row that tests an operator."""
    rows = dict(test_rows.ROWS)
    return f"core-{name}" if f"core-{name}" in rows else ELSEWHERE.get(name)


def reason_of(name: str) -> str | None:
    """Why an operator has no row."""
    from teletensor.onnx._registry import REFUSED
    from teletensor.onnx._translations import load

    load()
    full = f"aten.{name}" if "." in name else f"aten.{name}.default"
    return REFUSED.get(full)


def outcomes(torch: Any) -> Iterator[tuple[str, bool, str]]:
    """For each operator: whether it exports in all opsets of its row, and the row or the reason."""
    rows: dict[str, Case] = dict(test_rows.ROWS)
    for name in operators():
        row = row_of(name)
        if row is None:
            yield name, False, reason_of(name) or "no row"
            continue
        try:
            test_rows.run(torch, rows[row])
        except Exception as e:  # noqa: BLE001 - the outcome
            yield name, False, f"{type(e).__name__}: {str(e).splitlines()[0]}"
            continue
        yield name, True, "" if row.startswith("core-") else row
