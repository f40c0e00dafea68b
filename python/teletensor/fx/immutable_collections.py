"""immutable_list and immutable_dict: the containers in a node's arguments, whose users the graph counts."""

from __future__ import annotations

from typing import Any, NoReturn

from ..utils import _pytree as pytree

__all__ = ["immutable_list", "immutable_dict"]

_HELP = """If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _no_mutation(self: Any, *_args: Any, **_kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_HELP}")


class immutable_list(list):  # noqa: N801 - PyTorch's name
    """A list that can be hashed and not changed."""

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self),)


class immutable_dict(dict):  # noqa: N801 - PyTorch's name
    """A dict that can be hashed and not changed."""

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self.items()),)


for _name in (
    "__delitem__", "__iadd__", "__imul__", "__setitem__", "append", "clear", "extend", "insert", "pop", "remove", "reverse",
    "sort",
):  # fmt: skip
    setattr(immutable_list, _name, _no_mutation)
for _name in ("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(immutable_dict, _name, _no_mutation)

pytree.register_pytree_node(
    immutable_list,
    lambda values: (list(values), None),
    lambda values, _context: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda values: ([(pytree.SequenceKey(i), v) for i, v in enumerate(values)], None),
)
pytree.register_pytree_node(
    immutable_dict,
    lambda values: (list(values.values()), list(values)),
    lambda values, context: immutable_dict(zip(context, values)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda values: ([(pytree.MappingKey(k), v) for k, v in values.items()], list(values)),
)
