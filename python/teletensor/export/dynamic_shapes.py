"""Dim: sizes that may differ between calls of an exported program, and their assignment to arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn

from .._C import Tensor
from ..fx.experimental._sizes import Symbol
from ..nn import Module
from ..utils import _pytree as pytree

__all__ = ["AdditionalInputs", "Constraint", "Dim", "dims", "refine_dynamic_shapes_from_suggested_fixes"]

Constraint = object  # a type in annotations


class _DimHint:
    """Dim.AUTO, Dim.DYNAMIC or Dim.STATIC, perhaps with a range."""

    def __init__(self, kind: str, min: int | None = None, max: int | None = None) -> None:  # noqa: A002 - PyTorch's names
        self.kind, self.min, self.max = kind, min, max

    def __call__(self, min: int | None = None, max: int | None = None) -> _DimHint:  # noqa: A002
        """The hint with a range of sizes."""
        if self.kind == "STATIC":
            raise AssertionError("expected no range for Dim.STATIC")
        return _DimHint(self.kind, min, max)

    def __repr__(self) -> str:
        return f"DimHint({self.kind})"


class Dim:
    """A size with a name that may have any value of a range.

    Args:
        name: an identifier. Dimensions with the same name have the same size.
        min, max: the range, by default all sizes.

    ``2 * dim + 1`` and the like describe sizes that depend on another one. Dim.AUTO lets export decide whether the size is
    constant, Dim.DYNAMIC requires that it is not, and Dim.STATIC (or None, or a number) makes it constant.
    """

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:  # noqa: A002 - PyTorch's names
        low, high = 0 if min is None else min, max
        if high is not None and not high > low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        if re.fullmatch(r"(u|zuf)\d+", name):
            raise ValueError(f"[Dim] expected a name other than u0, u1, ..., which are numbers that depend on values, got {name!r}")
        self.__name__, self.min, self.max = name, low, high
        self.root, self.factor, self.offset = self, 1, 0

    def _derived(self, factor: int, offset: int) -> Dim:
        made = object.__new__(Dim)
        made.root, made.factor, made.offset = self.root, self.factor * factor, self.offset * factor + offset
        scaled = self.root.__name__ if made.factor == 1 else f"{made.factor}*{self.root.__name__}"
        made.__name__ = scaled + (f" + {made.offset}" if made.offset > 0 else f" - {-made.offset}" if made.offset < 0 else "")
        made.min = self.root.min * made.factor + made.offset
        made.max = None if self.root.max is None else self.root.max * made.factor + made.offset
        return made

    def __add__(self, other: Any) -> Dim:
        if type(other) is not int:
            self._refuse(f"Attempted to add {other} to {self.__name__}, where an integer was expected.")
        return self._derived(1, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Dim:
        if type(other) is not int:
            self._refuse(f"Attempted to subtract {other} from {self.__name__}, where an integer was expected.")
        return self._derived(1, -other)

    def __rsub__(self, _other: Any) -> NoReturn:
        self._refuse(f"Attempted to negate {self.__name__}.")

    def __mul__(self, other: Any) -> Dim:
        if type(other) is not int or other <= 0:
            self._refuse(f"Attempted to multiply {other} with {self.__name__}, where a positive integer was expected.")
        return self._derived(other, 0)

    __rmul__ = __mul__

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        raise NotImplementedError(f"{what} (Only increasing linear operations with integer coefficients are supported.)")

    def __repr__(self) -> str:
        if self.root is not self:
            return self.__name__
        low = "" if self.min in (0, 2) else f", min={self.min}"
        high = "" if self.max is None else f", max={self.max}"
        return f"Dim('{self.__name__}'{low}{high})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:  # noqa: A002 - PyTorch's names
    """Several Dims with the same range."""
    return tuple(Dim(name, min=min, max=max) for name in names)


class ShapesCollection:
    """Assigns sizes to tensors among the arguments, by the tensor: ``shapes[x] = {0: Dim("batch")}``."""

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Any, Any]] = {}

    def __setitem__(self, t: Any, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor type {type(t)}")
        self._shapes[id(t)] = (t, shape)

    def __getitem__(self, t: Any) -> Any:
        return self._shapes[id(t)][1] if id(t) in self._shapes else None

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> dict[str, Any]:
        """The sizes in the structure of the arguments, by the names of forward's parameters."""
        found = pytree.tree_map(lambda t: self[t] if isinstance(t, Tensor) else None, combined_args(m, args, kwargs or {}))
        return found


class AdditionalInputs:
    """Infers dynamic sizes from further example arguments: sizes that differ among them are dynamic."""

    def __init__(self) -> None:
        self._examples: list[tuple[tuple, dict]] = []

    def add(self, args: tuple, kwargs: dict[str, Any] | None = None) -> None:
        """Adds example arguments."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        self._examples.append((args, dict(kwargs or {})))

    def dynamic_shapes(self, m: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> dict[str, Any]:
        """The sizes for the arguments: Dim.DYNAMIC where the examples differ."""
        rows = [combined_args(m, a, k) for a, k in [(args, kwargs or {}), *self._examples]]

        def sizes(first: Any, *rest: Any) -> Any:
            if not isinstance(first, Tensor):
                return None
            return tuple(Dim.DYNAMIC if any(r.shape[i] != n for r in rest) else None for i, n in enumerate(first.shape))

        return pytree.tree_map(sizes, rows[0], *rows[1:])

    def verify(self, ep: Any) -> None:
        """Calls the program with all examples."""
        for args, kwargs in self._examples:
            ep.module()(*args, **kwargs)


def refine_dynamic_shapes_from_suggested_fixes(msg: str, dynamic_shapes: Any) -> Any:
    """The sizes with the declarations that the message of a UserError of export() suggests.

    Args:
        msg: the message.
        dynamic_shapes: what was passed to export(); Dims in it are found by their names.
    """
    from ._fixes import parsed_fixes

    fixes = parsed_fixes(msg)
    made: dict[str, Any] = {}

    def changed(size: Any) -> Any:
        if not isinstance(size, Dim) or size.root.__name__ not in fixes:
            return size
        root, rule = size.root, fixes[size.root.__name__]
        if isinstance(rule, int):
            return size.factor * rule + size.offset
        name = rule if isinstance(rule, str) else root.__name__
        if name not in made:
            limits = fixes.get(name) if isinstance(fixes.get(name), dict) else {}
            made[name] = Dim(name, min=limits.get("min", root.min), max=limits.get("max", root.max))
        return made[name] if size is root else size.factor * made[name] + size.offset

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: walk(v) for k, v in value.items()}
        return type(value)(walk(v) for v in value) if type(value) in (list, tuple) else changed(value)

    if isinstance(dynamic_shapes, ShapesCollection):
        found = ShapesCollection()
        found._shapes = {k: (t, walk(shape)) for k, (t, shape) in dynamic_shapes._shapes.items()}
        return found
    return walk(dynamic_shapes)


def combined_args(module: Any, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names of forward's parameters."""
    signature = inspect.signature(module.forward if isinstance(module, Module) else module)
    return dict(signature.bind(*args, **kwargs).arguments)


def _specs_of_leaves(specs: Any, value: Any, path: str, found: list[tuple[Any, str]]) -> None:
    """Appends for each leaf of a value its sizes' specification and its name in messages."""
    leaves, spec = pytree.tree_flatten(value)
    if spec.is_leaf():
        found.append((specs, path))
        return
    children, keys = _children(value)
    if specs is None or isinstance(specs, _DimHint):
        below: list[Any] = [specs] * len(children)
    elif isinstance(specs, dict) and isinstance(value, dict):
        if set(specs) - set(value):
            raise _shape_error(f"`dynamic_shapes` has unknown keys {sorted(set(specs) - set(value))} at {path}")
        below = [specs.get(k) for k in keys]
    elif (type(specs) is type(value) or isinstance(specs, (list, tuple))) and len(_children(specs)[0]) == len(children):
        below = _children(specs)[0]
    else:
        raise _shape_error(
            f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs{path}` has {len(children)} elements, "
            f"but `dynamic_shapes` has {specs!r}"
        )
    for s, child, key in zip(below, children, keys):
        _specs_of_leaves(s, child, f"{path}[{key!r}]", found)


def _children(value: Any) -> tuple[list[Any], list[Any]]:
    if isinstance(value, dict):
        return [value[k] for k in value], list(value)
    if isinstance(value, (list, tuple)):
        return list(value), list(range(len(value)))
    from ..utils._pytree import tree_flatten

    _, spec = tree_flatten(value)
    flat = tree_flatten(value, is_leaf=lambda x: x is not value)[0]
    return flat, list(range(spec.num_children))


def _shape_error(what: str) -> Exception:
    from ._errors import UserError

    return UserError(what)


def symbols_of(dynamic_shapes: Any, module: Any, args: tuple, kwargs: dict[str, Any]) -> list[Symbol]:
    """The symbols that an assignment of sizes declares. Raises UserError if it does not fit the arguments."""
    if dynamic_shapes is None or (isinstance(dynamic_shapes, (dict, list, tuple)) and not dynamic_shapes):
        return []
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(module, args, kwargs)
    combined = combined_args(module, args, kwargs)
    if isinstance(dynamic_shapes, (list, tuple)):
        if len(dynamic_shapes) != len(combined):
            raise _shape_error(f"expected `dynamic_shapes` for {len(combined)} arguments, got {len(dynamic_shapes)}")
        dynamic_shapes = dict(zip(combined, dynamic_shapes))
    if set(dynamic_shapes) - set(combined):
        raise _shape_error(
            f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {list(combined)} of `inputs`, but "
            f"here they are {list(dynamic_shapes)}."
        )
    found: list[tuple[Any, str]] = []
    for name, value in combined.items():
        _specs_of_leaves(dynamic_shapes.get(name), value, f"['{name}']", found)
    leaves = pytree.tree_leaves(list(combined.values()))
    symbols: dict[Any, Symbol] = {}
    for i, (leaf, (spec, path)) in enumerate(zip(leaves, found)):
        if spec is None or not isinstance(leaf, Tensor):
            if spec is not None and not isinstance(spec, _DimHint):
                raise _shape_error(f"`dynamic_shapes` at inputs{path}: expected None for a value that is no tensor, got {spec!r}")
            continue
        for dim, size in _per_dimension(spec, leaf, path).items():
            _add(symbols, i, dim, size, leaf.shape[dim], path)
    return list(symbols.values())


def _per_dimension(spec: Any, leaf: Tensor, path: str) -> dict[int, Any]:
    if isinstance(spec, _DimHint):
        return dict.fromkeys(range(leaf.dim()), spec)
    if isinstance(spec, dict):
        if any(not -leaf.dim() <= d < leaf.dim() for d in spec):
            raise _shape_error(f"`dynamic_shapes` at inputs{path} has dimensions {list(spec)}, but the tensor has {leaf.dim()}")
        return {d % leaf.dim(): s for d, s in spec.items()}
    if isinstance(spec, (list, tuple)) and len(spec) == leaf.dim():
        return dict(enumerate(spec))
    raise _shape_error(f"expected a dict or a tuple of {leaf.dim()} sizes in `dynamic_shapes` at inputs{path}, got {spec!r}")


def _add(symbols: dict[Any, Symbol], leaf: int, dim: int, size: Any, hint: int, path: str) -> None:
    if size is None or (isinstance(size, _DimHint) and size.kind == "STATIC"):
        return
    if type(size) is int:
        if size != hint:
            raise _shape_error(f"Static shape constraint of {size} does not match input size of {hint}, for inputs{path}.shape[{dim}]")
        return
    if isinstance(size, _DimHint):
        symbol = Symbol(f"s{len(symbols)}", hint, size.min or 0, size.max, size.kind)
        symbol.places.append((leaf, dim, 1, 0))
        symbols[leaf, dim] = symbol
    elif isinstance(size, Dim):
        root, solved = size.root, Fraction(hint - size.offset, size.factor)
        if solved.denominator != 1:
            raise _shape_error(f"Constraints violated ({root.__name__})! inputs{path}.shape[{dim}] = {hint} is not {size.__name__}")
        symbol = symbols.setdefault(root.__name__, Symbol(root.__name__, int(solved), root.min, root.max, "named"))
        if symbol.hint != solved:
            raise _shape_error(
                f"Constraints violated ({root.__name__})! The values of {size.__name__} = {hint} and {root.__name__} = {symbol.hint} are "
                f"not consistent: inputs{path}.shape[{dim}]"
            )
        symbol.places.append((leaf, dim, size.factor, size.offset))
    else:
        raise _shape_error(f"expected a Dim, an int or None in `dynamic_shapes` at inputs{path}[{dim}], got {size!r}")
    low, high = symbol.low, symbol.high
    if not low <= symbol.hint or (high is not None and symbol.hint > high):
        raise _shape_error(
            f"Constraints violated ({symbol.name})! Expected input at inputs{path}.shape[{dim}] to be in the range "
            f"[{low}, {'inf' if high is None else high}], but got {hint}"
        )


Check = Callable[[dict[str, int]], bool]
