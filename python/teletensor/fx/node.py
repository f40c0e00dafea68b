"""Node: one operation of a graph, with its arguments and the nodes that use its result."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable

from .._C import Tensor, device, dtype
from .._ops.assertions import _assert, _check, _check_index, _check_value
from ._mutation import _mutates
from ._names import _qualified_name as _get_qualified_name
from ._names import _type_repr, typename
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "map_arg", "map_aggregate", "has_side_effect"]

Target = Any  # a callable for call_function, otherwise a name
Argument = Any  # a Node, a constant, or a container of both

base_types = (str, int, float, bool, complex, dtype, Tensor, device)
_SCALARS = frozenset((str, int, float, bool, type(None), dtype, Tensor, device))
_legal_ops = dict.fromkeys(["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"])

_side_effectful_functions: set[Callable] = {operator.setitem, _assert, _check, _check_index, _check_value}
# Functions that draw random numbers: removing a call would change the numbers of the calls after it.
_RANDOM = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like normal bernoulli poisson multinomial binomial "
    "manual_seed seed set_rng_state".split()
)

# Operators that raise an error if a condition does not hold.
_CHECKS = frozenset("_assert_async _assert_scalar _assert_tensor_metadata sym_constrain_range sym_constrain_range_for_size".split())


def has_side_effect(fn: Callable) -> Callable:
    """Registers a function whose calls eliminate_dead_code() keeps; returns it."""
    _side_effectful_functions.add(fn)
    return fn


def _function_is_impure(target: Callable, impure_random: bool) -> bool:
    """Whether calls of a function have an effect besides their result."""
    if target in _side_effectful_functions:
        return True
    name = getattr(target, "__name__", "").partition(".")[0]  # without an overload's
    module = getattr(target, "__module__", None) or ""
    ours = module.startswith(("teletensor", "torch", "_operator"))
    return ours and (_mutates(name) or name in _CHECKS or impure_random and name in _RANDOM)


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument in a printed graph. Containers longer than max_list_len are cut."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, (list, tuple)):
        items = ", ".join(_format_arg(a) for i, a in enumerate(arg) if i < max_list_len)
        cut = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{items}{cut}]"
        return f"({items}{',' if len(arg) == 1 else ''}{cut})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


class Node:
    """One operation of a Graph.

    `op` determines the meaning of `target`, `args` and `kwargs`:

    - ``placeholder``: an input; `target` is the parameter's name, `args` its default value or ().
    - ``get_attr``: a parameter, buffer or submodule; `target` is its qualified name.
    - ``call_function``: `target` is the function.
    - ``call_method``: `target` is the method's name, `args[0]` the object.
    - ``call_module``: `target` is the submodule's qualified name.
    - ``output``: the graph's result, `args[0]`.

    Attributes:
        graph: the graph that owns the node.
        name: the unique name of the result.
        users: the nodes that use the result, as the keys of a dict, in order of first use.
        type: the annotation of the result, or None.
        meta: data that passes attach; copied with the node.
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Target, args: tuple, kwargs: dict, return_type: Any = None
    ) -> None:
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {typename(target)} "
                    "but a Callable is expected"
                )
        elif op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {typename(target)} but a str is expected"
            )
        self.graph, self._name, self._op, self._target, self.type = graph, name, op, target, return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._repr_fn: Callable[[Node], str] | None = None
        self._prev = self._next = self
        self._sort_key = 0
        self._erased = False
        self._detached: tuple[Node, Node] | None = None  # the neighbours of an erased node
        self._args: tuple = ()
        self._kwargs: dict = immutable_dict()
        self._update_args_kwargs(args, kwargs)

    # -- what the node computes

    @property
    def name(self) -> str:
        """The unique name of the node's result."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        for hook in self._hooks("_replace_hooks"):
            for user in self.users:
                hook(old=self, new=value, user=user)
        self._name = value

    @property
    def op(self) -> str:
        """The node's opcode."""
        return self._op

    @op.setter
    def op(self, value: str) -> None:
        self._reindex("_op", value)

    @property
    def target(self) -> Target:
        """The function, or the name of the method, module, attribute or parameter."""
        return self._target

    @target.setter
    def target(self, value: Target) -> None:
        self._reindex("_target", value)

    def _reindex(self, field: str, value: Any) -> None:
        """Sets a field by which the graph indexes its nodes."""
        table = self.graph._find_nodes_lookup_table
        known = self in table
        if known:
            table.remove(self)
        setattr(self, field, value)
        if known:
            table.insert(self)

    def _hooks(self, registry: str) -> list:
        return getattr(self.graph._owning_module, registry, None) or []

    def _rename(self, candidate: str) -> None:
        """Sets the name to the candidate, with a number if another node of the graph has it."""
        if candidate != self.name:
            namespace = self.graph._graph_namespace
            self.name = namespace.create_name(candidate, None)
            namespace._rename_object(self, self.name)

    # -- arguments

    @property
    def args(self) -> tuple:
        """The positional arguments. Assigning them updates `users` of the nodes in them."""
        return self._args

    @args.setter
    def args(self, args: tuple) -> None:
        self._update_args_kwargs(args, self._kwargs)

    @property
    def kwargs(self) -> dict:
        """The keyword arguments. Assigning them updates `users` of the nodes in them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict) -> None:
        self._update_args_kwargs(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in the arguments, each once, in order."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args: tuple, kwargs: dict) -> None:
        inputs: dict[Node, None] = {}

        def visit(arg: Any) -> Any:
            if isinstance(arg, Node):
                inputs.setdefault(arg)
            return arg

        args, kwargs = map_aggregate(tuple(args), visit), map_aggregate(dict(kwargs), visit)
        for node in self._input_nodes:
            if node not in inputs:
                node.users.pop(self, None)
        for node in inputs:
            node.users.setdefault(self)
        self._args, self._kwargs, self._input_nodes = args, kwargs, inputs

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replaces one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Inserts a positional argument before position idx."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Sets one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Replaces a node in the arguments by another."""
        for hook in self._hooks("_replace_hooks"):
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def _replace_input_with(self, old: Node, new: Argument) -> None:
        def replace(node: Node) -> Argument:
            return new if node is old else node

        self._update_args_kwargs(map_arg(self._args, replace), map_arg(self._kwargs, replace))

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Replaces this node in the arguments of all its users.

        Args:
            replace_with: the node to use instead.
            delete_user_cb: returns for each user whether to change it; None changes all.
            propagate_meta: copies `meta` to the new node, which must have none.

        Returns:
            The users that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            for hook in self._hooks("_replace_hooks"):
                hook(old=self, new=replace_with.name, user=user)
            user._replace_input_with(self, replace_with)
        return changed

    # -- position in the graph

    @property
    def next(self) -> Node:
        """The node after this one; the graph's root after the last."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; the graph's root before the first."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Moves a node of the same graph, or inserts a new one, before this node."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        self.graph._number(x)

    _prepend = prepend

    def append(self, x: Node) -> None:
        """Moves a node of the same graph, or inserts a new one, after this node."""
        if x is not self:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        before, after = self._prev, self._next
        before._next, after._prev = after, before
        self._prev = self._next = self

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __le__(self, other: Node) -> bool:
        return self._sort_key <= other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __ge__(self, other: Node) -> bool:
        return self._sort_key >= other._sort_key

    # -- text

    @property
    def stack_trace(self) -> str | None:
        """The source lines that created the node, innermost last, if the tracer recorded them."""
        return self.meta.get("stack_trace", None)

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self._name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        """A target in a printed graph: builtins.getattr, operator.add, torch.relu, or the name itself."""
        if isinstance(target, str):
            return target
        module, name = getattr(target, "__module__", None), getattr(target, "__name__", None)
        if name is not None and module == "builtins":
            return f"builtins.{name}"
        if name is not None and module == "_operator":
            return f"operator.{name}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """A line that describes the node.

        Args:
            placeholder_names: if it is a list with elements, a placeholder adds its text to it and None is returned.
            maybe_return_typename: a list of one element, which the output node replaces by its annotation.
            include_tensor_metadata: prints dtype, sizes, strides and device of the tensor in `meta`.
        """
        uses = f"[num_users={len(self.users)}] = {self.op}"
        named = f"{_type_repr(self.type)} " if self.type else ""
        if self.op == "placeholder":
            if placeholder_names:
                placeholder_names.append(self.target + (f"{self.target}: {_type_repr(self.type)}" if self.type else ""))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {named}{uses}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {named}{uses}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        if include_tensor_metadata:
            value = self.meta.get("val", self.meta.get("tensor_meta", self.meta.get("example_value")))
            if isinstance(value, Tensor):
                from ._tensor_text import describe

                named = f'Tensor "{describe(value, stride=True, device=True)}"'
        return (
            f"%{self.name} : {named}{uses}[target={self._pretty_print_target(self.target)}]("
            f"args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )

    # -- analysis

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node must be kept although nothing uses its result.

        Inputs and outputs, in-place operations, calls with `out`, registered functions and modules with `_is_impure`; with
        `impure_random` also functions that draw random numbers.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "get_attr":
            return False
        if self.kwargs.get("out") is not None or self.kwargs.get("inplace") is True:
            return True
        if self.op == "call_function":
            return _function_is_impure(self.target, impure_random)
        if self.op == "call_method":
            return _mutates(self.target)
        if self.graph.owning_module is None:
            raise AssertionError("self.graph.owning_module not set for purity check")
        module = self.graph.owning_module.get_submodule(self.target)
        return getattr(module, "_is_impure", False) or getattr(module, "inplace", False) is True

    def normalized_arguments(
        self, root: Any, arg_types: tuple | None = None, kwarg_types: dict | None = None, normalize_to_only_use_kwargs: bool = False
    ) -> Any:
        """The arguments matched to the target's signature, with its defaults; None if it is unknown.

        Args:
            root: the module that has the submodules.
            arg_types, kwarg_types: the arguments' types, which select between overloads.
            normalize_to_only_use_kwargs: gives all arguments by keyword.

        Returns:
            An ArgsKwargsPair.
        """
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Applies a function to each element of nested tuples, lists, dicts, slices and ranges; lists and dicts become immutable."""
    if type(a) in _SCALARS:
        return fn(a)
    if isinstance(a, tuple):
        items = [map_aggregate(v, fn) for v in a]
        return type(a)(*items) if hasattr(a, "_fields") else _same_tuple(a, items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(v, fn) for v in a])
    if isinstance(a, dict):
        return immutable_dict([(k, map_aggregate(v, fn)) for k, v in a.items()])
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def _same_tuple(a: tuple, items: list) -> tuple:
    """A tuple of the items; `a` itself if they are the same, which keeps the type of sizes and named results."""
    return a if all(old is new for old, new in zip(a, items)) else tuple(items)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Applies a function to each Node in nested tuples, lists, dicts and slices."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda value: fn(value) if isinstance(value, Node) else value)
