"""torch.utils._pytree during capture: containers that the executor follows are flattened and rebuilt without their Python code."""

from __future__ import annotations

from typing import Any

from ..fx import _pytree as fx_pytree
from ..utils import _pytree as pytree
from ._source import CHECK_IS
from ._values import Break, Constant, DictValue, ObjectValue, SequenceValue, TensorValue, Value, kind
from ._wrap import entries_of_results, is_namedtuple


class _Leaf:
    """Stands for a leaf."""

    def __init__(self, value: Value) -> None:
        self.value = value


def _object(ex: Any, value: Value) -> Any:
    """The tree as an object, with _Leaf for leaves."""
    value = ex.real(value)
    if isinstance(value, SequenceValue) and (value.cls in (list, tuple) or is_namedtuple(value.cls)):
        items = [_object(ex, item) for item in value.items]
        return value.cls(*items) if is_namedtuple(value.cls) else value.cls(items)
    if isinstance(value, DictValue):
        if not all(isinstance(k, Constant) for k, _ in value.items.values()) or value.default_factory is not None:
            raise Break("a pytree with other keys than constants")
        return value.cls((k.value, _object(ex, v)) for k, v in value.items.values())
    is_node = isinstance(value, Constant) and value.value is not None and not pytree.tree_is_leaf(value.value)
    if is_node or not isinstance(value, (Constant, TensorValue)) and value.cls in pytree.SUPPORTED_NODES:
        raise Break(f"a {value.cls.__name__} as a pytree")
    return _Leaf(value)


def _value(obj: Any) -> Value:
    if isinstance(obj, _Leaf):
        return obj.value
    if isinstance(obj, (list, tuple)) and (type(obj) in (list, tuple) or is_namedtuple(type(obj))):
        return SequenceValue([_value(item) for item in obj], type(obj))
    if isinstance(obj, dict):
        return DictValue(entries_of_results({k: _value(v) for k, v in obj.items()}), type(obj))
    raise Break(f"a {kind(obj)} as a pytree")


def _no_options(ex: Any, args: list[Value], kwargs: dict[str, Value], count: int) -> None:
    if len(args) != count or any(name != "is_leaf" or not _is_none(ex, value) for name, value in kwargs.items()):
        raise Break("pytree functions with options")


def _is_none(ex: Any, value: Value) -> bool:
    value = ex.real(value)
    return isinstance(value, Constant) and value.value is None


def _spec(ex: Any, value: Value) -> pytree.TreeSpec | None:
    """The TreeSpec, which is that of the function or an existing object; None for another value."""
    value = ex.real(value)
    if isinstance(value, Constant):
        return value.value if isinstance(value.value, pytree.TreeSpec) else None
    if not isinstance(value, ObjectValue) or not isinstance(value.original, pytree.TreeSpec) or value.attributes:
        return None
    ex.guards.check(CHECK_IS, value.source, value.original)
    return value.original


def flatten(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """tree_flatten()"""
    _no_options(ex, args, kwargs, 1)
    leaves, spec = pytree.tree_flatten(_object(ex, args[0]))
    return SequenceValue([SequenceValue([leaf.value for leaf in leaves], list), Constant(spec)], tuple)


def leaves(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """tree_leaves()"""
    _no_options(ex, args, kwargs, 1)
    return SequenceValue([leaf.value for leaf in pytree.tree_leaves(_object(ex, args[0]))], list)


def structure(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """tree_structure()"""
    _no_options(ex, args, kwargs, 1)
    return Constant(pytree.tree_structure(_object(ex, args[0])))


def unflatten(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """tree_unflatten()"""
    _no_options(ex, args, kwargs, 2)
    values, spec = args[0], _spec(ex, args[1])
    if spec is None:
        values, spec = args[1], _spec(ex, args[0])
    if spec is None:
        raise Break("tree_unflatten() without a TreeSpec")
    return _value(pytree.tree_unflatten([_Leaf(v) for v in ex.elements(values)], spec))


def map_trees(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """tree_map()"""
    _no_options(ex, args, kwargs, max(len(args), 2))
    trees = [_object(ex, tree) for tree in args[1:]]
    return _value(pytree.tree_map(lambda *found: _Leaf(ex.call(args[0], [leaf.value for leaf in found], {})), *trees))


def flatten_by_structure(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """fx's tree_flatten_spec(), which generated code of graphs calls"""
    _no_options(ex, args, kwargs, 2)
    spec = _spec(ex, args[1])
    if spec is None:
        raise Break("tree_flatten_spec() without a TreeSpec")
    return SequenceValue([leaf.value for leaf in fx_pytree.tree_flatten_spec(_object(ex, args[0]), spec)], list)


FUNCTIONS = {
    pytree.tree_flatten: flatten, pytree.tree_leaves: leaves, pytree.tree_structure: structure, pytree.tree_unflatten: unflatten,
    pytree.tree_map: map_trees, fx_pytree.tree_flatten_spec: flatten_by_structure,
}  # fmt: skip
