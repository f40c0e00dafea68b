"""Graphs for many sizes: the sizes of a function's arguments are symbols while it is recorded (_sizes.py).

As in PyTorch, sizes of 0 and 1 in the example are constants, and equal sizes of the example are one symbol. A symbol of which the function
needs the number is a constant too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from ..._C import Tensor
from ...utils import _pytree as pytree
from ..graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from ..graph_module import GraphModule
from ..node import Node
from ._composites import COMPOSITES
from ._expanded import expanded_graph
from ._merge import Captured, Family, Point, captured_of, resized, sizes_at
from ._recording import DynamicSizesError, Recording
from ._sizes import SizeLog, Symbol, is_expression, require_arguments, symbol_of, symbols_in
from ._unbacked import Values
from ._unbacked_plan import Plan
from .symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv


def symbols_of_example(leaves: list[Any], dynamic_ints: bool = True) -> list[Symbol]:
    """The symbols of the leaves of arguments: one for equal sizes of at least 2, and one for each int of at least 2."""
    found: dict[Any, Symbol] = {}
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            for dim, size in enumerate(tuple(leaf.shape)):
                if size >= 2:
                    symbol = found.setdefault(int(size), Symbol(f"s{len(found)}", int(size), 2, None, "DYNAMIC"))
                    symbol.places.append((i, dim, 1, 0))
        elif dynamic_ints and type(leaf) is int and leaf >= 2:
            symbol = found["input", i] = Symbol(f"s{len(found)}", leaf, 2, None, "DYNAMIC")
            symbol.places.append((i, -1, 1, 0))
    return list(found.values())


def numbers_of(log: SizeLog, symbols: list[Symbol]) -> dict[int, dict[int, int]]:
    """By position of a leaf: the numbers of sizes that are symbols, by dimension; -1 is the value of an int."""
    found: dict[int, dict[int, int]] = {}
    for symbol in symbols:
        for leaf, dim, factor, offset in symbol.places:
            found.setdefault(leaf, {})[dim] = log.number_at(symbol.name, factor, offset)
    return found


def kept_symbols(log: SizeLog, symbols: list[Symbol]) -> list[Symbol]:
    """The symbols of which no guard requires a number, or that they are equal to others."""
    found = []
    for symbol in symbols:
        number = log.facts.simplified(log.symbols[symbol.name])
        if is_expression(number) and symbol_of(log.facts, number) == symbol_of(log.facts, log.symbols[symbol.name]):
            found.append(symbol)
    return found


def symbolic_graph(
    recording: Callable[[SizeLog], Recording], call: Callable[[Recording, tuple], Any], args: tuple, names: list[str],
    dynamic: bool = True,
) -> GraphModule:  # fmt: skip
    """The graph of a function for many sizes of its arguments, and for all values of their elements.

    Args:
        recording: makes a recording with a log.
        call: calls the function with recorded arguments, and returns its result.
        names: of the placeholders, for each leaf of the arguments.
        dynamic: whether sizes of the arguments may differ.
    """
    what = recording, call, args, names, dynamic
    if dynamic:
        try:
            return _symbolic_graph(what, None)
        except (GuardOnDataDependentSymNode, DynamicSizesError):  # numbers may depend on values
            pass
    plan = Plan(not dynamic)
    return plan.run(lambda: _symbolic_graph(what, plan))


def _symbolic_graph(what: tuple, plan: Plan | None) -> GraphModule:
    """symbolic_graph().

    Args:
        plan: of numbers that depend on values; None if the function uses none.
    """
    recording, call, args, names, dynamic = what
    leaves, spec = pytree.tree_flatten(args)
    symbols = symbols_of_example(leaves) if dynamic else []

    def record(values: Values | None) -> Captured:
        log = SizeLog(values, symbols)
        numbers = numbers_of(log, symbols)
        made = Captured()
        made.recording, made.constants = recording(log), {}
        given: list[Any] = []
        for i, (name, leaf) in enumerate(zip(names, leaves)):
            if isinstance(leaf, Tensor):
                given.append(made.recording.placeholder(name, leaf, numbers.get(i)))
            elif i in numbers:
                given.append(made.recording.symbolic_number(name, leaf, numbers[i][-1]))
            else:
                given.append(made.recording.number(name, leaf))
        result, made.out_spec = pytree.tree_flatten(call(made.recording, pytree.tree_unflatten(given, spec)))
        made.recording.check_refused()
        made.outputs = [made.recording.own(v)._node if isinstance(v, Tensor) else made.recording.argument(v) for v in result]
        return made

    if plan is None:
        made = record(None)
    else:
        plan.check(record)
        made, _ = plan.first(record)
    log = made.recording.log
    made.recording.size_nodes.describe()
    shown = {s.name: s.hint for s in kept_symbols(log, symbols)}
    if plan is not None:
        values = made.recording.unbacked
        values.describe()
        shown |= {plan.name(k): v for k, v in enumerate(values.values)}
    made.recording.graph.output(pytree.tree_unflatten(made.outputs, made.out_spec))
    guards = [*(g.text for g in log.guards), *_equal_sizes(made.recording.graph, symbols)]
    return _module(made.recording.root, made.recording.graph, args, shown, guards)


def symbolic_expansion(f: Callable, args: tuple, table: dict) -> GraphModule:
    """The graph of a function that computes gradients, for many sizes of its arguments."""
    leaves, spec = pytree.tree_flatten(args)
    all_symbols = symbols_of_example(leaves, False)
    found = noted(f, leaves, spec, all_symbols)
    free = fitted_symbols(found, all_symbols)

    def record(symbols: list[Symbol], point: Point) -> Captured:
        given = resized(leaves, sizes_at(leaves, symbols, point))
        return captured_of(expanded_graph(f, pytree.tree_unflatten(given, spec), table))

    made, symbols = Family(record, free).run()
    graph = made.recording.graph
    graph.output(pytree.tree_unflatten(made.outputs, made.out_spec))
    kept = {s.name for s in symbols}
    guards = [g.text for g in found.log.guards] if found is not None else []
    guards += _constants(graph, [s for s in all_symbols if s.name not in kept])
    guards += [*_equal_sizes(graph, symbols), *_limits(graph, symbols)]
    return _module(made.recording.root, graph, args, {s.name: s.hint for s in symbols}, guards)


def fitted_symbols(found: Recording | None, symbols: list[Symbol]) -> list[Symbol]:
    """The symbols of which graphs for a few sizes determine all numbers: sums of products, and quotients by small constants.

    Args:
        found: the recording of the function; None if it cannot be recorded.
    """
    if found is None:
        return []
    log, names = found.log, set()
    for number in _numbers(found):
        if not _is_fitted(log, number):
            of = set(symbols_in(log.facts, number))
            names |= {log.names[i] for i in of} if of.isdisjoint(log.defined.keys() | log.unknown) else set(log.names)
    return [s for s in kept_symbols(log, symbols) if s.name not in names]


_LARGEST_DIVISOR = 64  # that fitted() tries


def _numbers(found: Recording) -> list[int]:
    """The expressions that a recording has computed."""
    sizes = (n for layout in found.size_nodes.layouts.values() for n in layout.sizes)
    return [n for n in dict.fromkeys((*sizes, *found.log.sizes)) if is_expression(n)]


def _require_minima(log: SizeLog, number: int) -> None:
    """Makes guards that minima in an expression are the operand that they are in the example."""
    for _, factors in log.facts.parts(number):
        for sign, _, operands in factors:
            for operand in operands:
                _require_minima(log, operand)
            if sign == "min":
                least = min(operands, key=log.facts.example)
                for other in operands:
                    log.facts.decide("<=", least, other)
    log.note_guards()


def _is_fitted(log: SizeLog, number: int) -> bool:
    """Whether fitted() finds an expression, where minima are the operands that they are in the example."""
    for _, factors in log.facts.parts(number):
        for sign, symbol, operands in factors:
            if sign == "symbol" and (symbol in log.defined or symbol in log.unknown):
                return False
            if sign == "//":
                is_small = len(factors) == 1 and not is_expression(operands[1]) and operands[1] <= _LARGEST_DIVISOR
                if not (is_small and all(f[0] == "symbol" for _, numerator in log.facts.parts(operands[0]) for f in numerator)):
                    return False
            if sign in ("min", "max") and not all(_is_fitted(log, o) for o in operands):
                return False
    return True


def comparisons(f: Callable, args: tuple) -> tuple | None:
    """What a function does for arguments of these sizes: what it requires of sizes, and the operators that it calls.

    Args:
        f: is called with recorded arguments, and computes no values.

    Returns None if the function cannot be recorded without values.
    """
    leaves, spec = pytree.tree_flatten(args)
    found = noted(f, leaves, spec, symbols_of_example(leaves, False))
    return found and (*(g.text for g in found.log.guards), *((n.op, str(n.target)) for n in found.graph.nodes))


def noted(f: Callable, leaves: list[Any], spec: Any, symbols: list[Symbol]) -> Recording | None:
    """A recording of a function that notes what it decides by sizes. None if the function cannot be recorded without values."""
    recording = Recording(True, COMPOSITES, SizeLog(symbols=symbols))
    numbers = numbers_of(recording.log, symbols)
    recording.notes_sizes_only = True
    given = [recording.placeholder(f"arg{i}_1", x, numbers.get(i)) if isinstance(x, Tensor) else x for i, x in enumerate(leaves)]
    try:
        with recording:
            results = pytree.tree_leaves(f(*pytree.tree_unflatten(given, spec)))
    except Exception:  # noqa: BLE001 - whatever the function raises
        return None
    for number in results:  # numbers of the results are constants of graphs
        require_arguments(recording.log, [number] if not isinstance(number, Tensor) else [])
    for number in _numbers(recording):
        _require_minima(recording.log, number)
    return recording


def _constants(graph: Graph, dropped: list[Symbol]) -> list[str]:
    """What a graph relies on for symbols that became constants, as text."""
    names = [n.name for n in graph.nodes if n.op == "placeholder"]
    places = [(names[leaf], dim, s.hint) for s in dropped for leaf, dim, _, _ in s.places]
    return [f"{name} == {hint}" if dim < 0 else f"{name}.size()[{dim}] == {hint}" for name, dim, hint in places]


def _equal_sizes(graph: Graph, symbols: list[Symbol]) -> list[str]:
    """What a graph relies on for sizes that are one symbol, as text."""
    names = [n.name for n in graph.nodes if n.op == "placeholder"]
    found = []
    for symbol in symbols:
        first, *others = [f"{names[leaf]}.size()[{dim}]" for leaf, dim, _, _ in symbol.places if dim >= 0] or [""]
        found += [f"{first} == {other}" for other in others]
    return found


def _limits(graph: Graph, symbols: list[Symbol]) -> list[str]:
    """The largest sizes for which a graph is known to be right, as text."""
    names = [n.name for n in graph.nodes if n.op == "placeholder"]
    places = [(names[leaf], dim, s.high) for s in symbols if s.high is not None for leaf, dim, _, _ in s.places[:1]]
    return [f"{name} <= {high}" if dim < 0 else f"{name}.size()[{dim}] <= {high}" for name, dim, high in places]


def _module(root: Any, graph: Graph, args: tuple, sizes: dict[str, int], guards: list[str]) -> GraphModule:
    remove_unused_items(graph)
    set_arguments(graph, args)
    module = GraphModule(root, graph)
    module.shape_env = ShapeEnv(sizes, list(dict.fromkeys(guards)))
    return module


def remove_unused_items(graph: Graph, kept: Collection[Node] = ()) -> None:
    """Removes items of several results, sizes and reads of attributes that no node uses, except those of `kept`."""
    for node in reversed(list(graph.nodes)):
        removable = node.op == "get_attr" or getattr(node.target, "__name__", "") == "getitem" or is_size(node)
        if removable and not node.users and node not in kept:
            graph.erase_node(node)


def is_size(node: Node) -> bool:
    """Whether a node computes a number from sizes, or from values of tensors."""
    return node.op == "call_function" and isinstance(node.meta.get("val"), (int, float)) and "symbolic_value" in node.meta


def set_arguments(graph: Graph, args: tuple) -> None:
    """Gives a graph the structure of its arguments, if one of them is a container."""
    if any(isinstance(a, (list, tuple, dict)) for a in args):
        _, spec = pytree.tree_flatten((args, {}))
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo([f"arg{i}" for i in range(len(args))], spec, None)))
