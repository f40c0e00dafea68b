"""What a notebook shows of a tensor: its text and a table, of values that are read once."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from . import _C, _html, _tensor_str
from ._layouts import strided

_ROWS = 20  # rows and columns that are shown in full


def _cut(values: list, size: int, summarized: bool) -> tuple[list, int | None]:
    """The shown ones of a dimension's values, and the number of those before the ones that were left out, or None.

    Of a summarized tensor `values` are the edges already.
    """
    edge = _tensor_str._options["edgeitems"]
    if summarized:
        return values, edge if size > 2 * edge else None
    return (values[:edge] + values[size - edge :], edge) if size > max(_ROWS, 2 * edge) else (values, None)


def _caption(tensor: _C.Tensor) -> str:
    """Type, shape, dtype, device and gradient of a tensor."""
    words = [
        f"shape {tuple(tensor.shape)}",
        str(tensor.dtype),
        str(tensor.device),
        f"grad_fn {tensor.grad_fn.name()}" if tensor.grad_fn is not None else "requires_grad" if tensor.requires_grad else "",
    ]
    return f"<b>{_html.escape(type(tensor).__name__)}</b> " + _html.escape(", ".join(filter(None, words)))


def _table(tensor: _C.Tensor, matrix: Any) -> str:
    """A tensor's table with the caption "shape, dtype, device". `matrix`: of the values that were read the first matrix."""
    caption = _caption(tensor)
    outer = tensor.dim() - 2
    if outer > 0:
        caption += f"; [{', '.join('0' * outer)}, :, :]"
    rows = [matrix] if tensor.dim() == 1 else [[matrix]] if tensor.dim() == 0 else matrix
    height, width = (1, 1, *tensor.shape)[-2:]
    summarized = _tensor_str.is_summarized(tensor)
    rows, above = _cut(rows, height, summarized)
    cut = [_cut(row, width, summarized) for row in rows]
    formatter = _tensor_str.formatter_of(tensor, [value for row, _ in cut for value in row])
    cells = []
    for row, left in cut:
        words = [formatter(value).strip() for value in row]
        cells.append(words if left is None else [*words[:left], "…", *words[left:]])
    if above is not None:
        cells.insert(above, ["⋮"] * max(map(len, cells), default=1))
    return _html.table(caption, cells)


def _is_shown(tensor: _C.Tensor) -> bool:
    """Whether the table shows values."""
    return _tensor_str.is_read(tensor) and tensor.layout == strided


def _is_plain(kind: type) -> bool:
    """Whether a class leaves the text to Tensor."""
    override, own = kind.__torch_function__, _C.Tensor.__torch_function__
    overrides = override is not _C._disabled_torch_function_impl and getattr(override, "__func__", None) is not own.__func__
    return kind.__repr__ in {_C.Tensor.__repr__, *_tensor_str.other_reprs} and not overrides and not hasattr(kind, "_repr_pretty_")


def tensor_html(tensor: _C.Tensor) -> str | None:
    """A table of the first matrix of a tensor's last two dimensions; None for a subclass with another text.

    Only the shown elements are read: a subset of those that printing reads.
    """
    if not _is_plain(type(tensor)):
        return None
    if not _is_shown(tensor):
        return _html.table(_caption(tensor), [])
    matrix = tensor.detach()
    for _ in range(matrix.dim() - 2):
        matrix = matrix.select(0, 0)
    return _table(tensor, _tensor_str.read(matrix, summarize=_tensor_str.is_summarized(tensor)))


def bundle(tensor: _C.Tensor, include: Container[str] | None, exclude: Container[str] | None) -> dict[str, str] | None:
    """The text and the table of a tensor by their types, without those that are not included; the values are read once.

    None for a subclass with another text or table.
    """
    kind = type(tensor)
    if not _is_plain(kind) or kind._repr_html_ is not _C.Tensor._repr_html_:
        return None
    if _is_shown(tensor):
        nested = _tensor_str.read(tensor, summarize=_tensor_str.is_summarized(tensor))
        matrix = nested
        for _ in range(tensor.dim() - 2):
            matrix = matrix[0]
        text = tensor.__repr__(tensor_contents=_tensor_str.contents(tensor, nested))
        table = _table(tensor, matrix)
    else:
        text, table = repr(tensor), _html.table(_caption(tensor), [])
    found = {"text/plain": text, "text/html": table}
    return {name: value for name, value in found.items() if (not include or name in include) and name not in (exclude or ())}
