"""Results of calls as values that JSON contains."""

from __future__ import annotations

from typing import Any


def _numbers(values: Any) -> Any:
    if isinstance(values, list):
        return [_numbers(v) for v in values]
    if isinstance(values, complex):
        return [str(values.real), str(values.imag)]
    return str(values) if isinstance(values, float) else values


def _components(tensor: Any) -> dict[str, list]:
    layout = str(tensor.layout)
    if layout == "torch.sparse_coo":
        tensor = tensor.coalesce()
        return {"indices": tensor.indices().tolist(), "values": _numbers(tensor.values().tolist())}
    rows = layout in ("torch.sparse_csr", "torch.sparse_bsr")
    parts = (tensor.crow_indices(), tensor.col_indices()) if rows else (tensor.ccol_indices(), tensor.row_indices())
    return {"compressed": parts[0].tolist(), "plain": parts[1].tolist(), "values": _numbers(tensor.values().tolist())}


def encoded(result: Any, tensor_class: type) -> Any:
    """A result as plain values: of sparse tensors, the layout and the components, coalesced."""
    if isinstance(result, tensor_class):
        result = result.detach()
        layout = str(result.layout)
        what = {"layout": layout, "dtype": str(result.dtype).removeprefix("torch."), "size": list(result.shape)}
        if layout == "torch.strided":
            return {**what, "values": _numbers(result.tolist())}
        if layout == "torch.sparse_coo":
            what["coalesced"] = result.is_coalesced()
        return {**what, **_components(result)}
    if isinstance(result, (tuple, list)):
        return [encoded(r, tensor_class) for r in result]
    return result if isinstance(result, (bool, int, type(None))) else str(result)


def outcome(torch: Any, expression: str, names: dict) -> Any:
    """The encoded result of an expression, or the class of its exception."""
    try:
        return encoded(eval(expression, {}, names), torch.Tensor)
    except Exception as error:  # noqa: BLE001 - the class is what is recorded
        return {"error": type(error).__name__, "message": str(error).split("\n")[0].split(". This could")[0][:200]}
