"""Dynamic sizes of an export: names of dimensions, and dynamic_axes as PyTorch's older exporter takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._C import Tensor
from ..export.dynamic_shapes import Dim, combined_args
from ..utils import _pytree as pytree


def with_dims(shapes: Any, hinted: bool = False) -> tuple[Any, dict[str, str]]:
    """dynamic_shapes with a Dim for each name; also the names of symbols that differ from the user's.

    Args:
        hinted: use Dim.DYNAMIC instead, which lets export find equal sizes.
    """
    dims: dict[str, Dim] = {}
    names: dict[str, str] = {}

    def replaced(value: Any) -> Any:
        if isinstance(value, str):
            if hinted:
                return Dim.DYNAMIC
            if value not in dims:
                identifier = (
                    value if value.isidentifier() else "dim_" + "".join(c if c.isalnum() else "_" for c in value)
                )
                while identifier in names:
                    identifier += "_"
                dims[value] = Dim(identifier)
                names[identifier] = value
            return dims[value]
        if isinstance(value, Mapping):
            return {k: replaced(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(replaced(v) for v in value)
        return value

    return replaced(shapes), {k: v for k, v in names.items() if k != v}


def contains_names(shapes: Any) -> bool:
    """Whether a dimension is given by a name."""
    if isinstance(shapes, str):
        return True
    if isinstance(shapes, Mapping):
        return any(map(contains_names, shapes.values()))
    return isinstance(shapes, (list, tuple)) and any(map(contains_names, shapes))


def from_axes(
    dynamic_axes: Mapping[str, Any], module: Any, args: tuple, kwargs: dict[str, Any], input_names: Sequence[str] | None,
) -> tuple[Any, dict[str, dict[int, str]]]:  # fmt: skip
    """dynamic_shapes that correspond to dynamic_axes, and the axes' names by the input's position and dimension.

    Raises:
        ValueError: a name is neither one of the inputs nor of the outputs.
    """
    combined = combined_args(module, args, kwargs)
    leaves = []  # (path, leaf) for each tensor, in the order of the inputs
    for name, value in combined.items():
        for path, leaf in pytree.tree_flatten_with_path(value)[0]:
            leaves.append((name, tuple(path), leaf))
    tensors = [(name, path, leaf) for name, path, leaf in leaves if isinstance(leaf, Tensor)]
    names = list(input_names or [])
    names += [
        "_".join([n, *(str(getattr(k, "key", getattr(k, "idx", k))) for k in p)]) for n, p, _ in tensors[len(names) :]
    ]
    by_name = dict(zip(names, range(len(tensors))))
    axes: dict[int, dict[int, str]] = {}
    for name, given in dynamic_axes.items():
        if name not in by_name:
            continue  # of an output: its sizes follow from those of the inputs
        place = by_name[name]
        if isinstance(given, Mapping):
            axes[place] = {int(d): str(v) for d, v in given.items()}
        else:
            axes[place] = {int(d): f"{name}_dynamic_axes_{i + 1}" for i, d in enumerate(given)}
    ids = {id(leaf): i for i, (_, _, leaf) in enumerate(tensors)}

    def of(leaf: Any) -> Any:
        found = axes.get(ids.get(id(leaf), -1)) if isinstance(leaf, Tensor) else None
        return {d % leaf.dim(): Dim.DYNAMIC for d in found} if found else None

    shapes = {name: pytree.tree_map(of, value) for name, value in combined.items()}
    return shapes, {names[i]: {d % tensors[i][2].dim(): v for d, v in a.items()} for i, a in axes.items()}
