"""The table of a tensor in a notebook."""

from __future__ import annotations

from . import _C, _html, _tensor_str
from ._layouts import strided

_ROWS = 20  # rows and columns that are shown in full


def _edges(tensor: _C.Tensor, everything: bool) -> tuple[_C.Tensor, list[int]]:
    """The shown elements of a matrix, and by dimension where elements were left out (0: nowhere)."""
    edge, cuts = _tensor_str._options["edgeitems"], []
    for d, size in enumerate(tensor.shape):
        cut = size > (max(_ROWS, 2 * edge) if everything else 2 * edge)
        if cut:
            tensor = _C.torch.cat([tensor.narrow(d, 0, edge), tensor.narrow(d, size - edge, edge)], d)
        cuts.append(edge if cut else 0)
    return tensor, cuts


def _caption(tensor: _C.Tensor) -> str:
    """Type, shape, dtype, device and gradient of a tensor."""
    words = [
        f"shape {tuple(tensor.shape)}",
        str(tensor.dtype),
        str(tensor.device),
        f"grad_fn {tensor.grad_fn.name()}" if tensor.grad_fn is not None else "requires_grad" if tensor.requires_grad else "",
    ]
    return f"<b>{_html.escape(type(tensor).__name__)}</b> " + _html.escape(", ".join(filter(None, words)))


def tensor_html(tensor: _C.Tensor) -> str:
    """A table of the first matrix of a tensor's last two dimensions, with the caption "shape, dtype, device".

    Only the shown elements are read: a subset of those that printing reads.
    """
    caption = _caption(tensor)
    if tensor.device.type == "meta" or _C._is_wrapper(tensor) or tensor.layout != strided or tensor.numel() == 0:
        return _html.table(caption, [])
    matrix = tensor.detach()
    outer = matrix.dim() - 2
    for _ in range(outer):
        matrix = matrix.select(0, 0)
    if outer > 0:
        caption += f"; [{', '.join('0' * outer)}, :, :]"
    everything = tensor.numel() <= _tensor_str._options["threshold"]
    shown, cuts = _edges(matrix.reshape(1, -1) if matrix.dim() < 2 else matrix, everything)
    nested = shown.tolist()
    values = _tensor_str._flatten(nested)
    form = _tensor_str._ComplexFormatter if tensor.dtype.is_complex else _tensor_str._Formatter
    formatter = form(values) if tensor.dtype.is_complex else form(values, tensor.is_floating_point())
    rows = [[formatter(value).strip() for value in row] for row in nested]
    if cuts[1]:
        rows = [[*row[: cuts[1]], "…", *row[cuts[1] :]] for row in rows]
    if cuts[0]:
        rows.insert(cuts[0], ["⋮"] * len(rows[0]))
    return _html.table(caption, rows)
