"""Rule: how an operator may be divided among ranks, and the choice of placements for a call.

A rule gives each dimension of the tensors a label. Dimensions with the same label have the same entries: dividing one of
them divides all of them, and the ranks compute their parts of the result alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Hashable, Sequence

from .placement_types import Partial, Placement, Replicate, Shard

Labels = tuple[Hashable | None, ...]  # None: the dimension is not divided


@dataclasses.dataclass
class Rule:
    """How an operator may be divided.

    Attributes:
        inputs: labels of the dimensions of each tensor argument.
        outputs: labels of the dimensions of each result.
        summed: labels that no result has: if they are divided, the results are Partial.
        reduce_op: the reduction of these results.
        even: by label, a number that the number of parts must divide.
        addends: numbers of tensor arguments that are added to a sum, and so must be added on one rank only.
        linear: whether Partial arguments give Partial results: "" never, "all" if all tensors are Partial, "one" if one of
            them is and the others are replicated, "first" if it is the first one.
        arguments: changes the arguments of a local call, given the sizes of the local results.
        run: replaces the local call if a label of `summed` is divided: (arguments, member's offset of that label) -> results.
        nonempty: whether each rank must have an entry of a divided dimension.
        copies_values: False if only the sizes of the tensors matter.
    """

    inputs: list[Labels]
    outputs: list[Labels]
    summed: frozenset = frozenset()
    reduce_op: str = "sum"
    even: dict = dataclasses.field(default_factory=dict)
    addends: frozenset[int] = frozenset()
    linear: str = ""
    arguments: Callable | None = None
    run: Callable | None = None
    nonempty: bool = False
    copies_values: bool = True


@dataclasses.dataclass
class Plan:
    """The placements of a call: of each tensor argument and of each result."""

    inputs: list[tuple[Placement, ...]]
    outputs: list[tuple[Placement, ...]]
    divided: list[Hashable | None]  # the label that is divided along each dimension of the mesh
    keeps_partial: list[bool]  # whether Partial arguments stay Partial along each dimension of the mesh


def _allowed(rule: Rule, label, labels: set) -> bool:
    """Whether the ranks can divide a label: each result has it, or is Partial."""
    return label in labels and (label in rule.summed or all(label in out for out in rule.outputs))


def _divides(rule: Rule, label, extent: int, parts: int) -> bool:
    """Whether a label of this size can have this number of parts."""
    if rule.nonempty and -(-extent // parts) * (parts - 1) >= extent:
        return False
    return rule.even.get(label, 0) % parts == 0


def _is_linear(rule: Rule, partial: Sequence[bool], replicated: Sequence[bool]) -> bool:
    if rule.linear == "all":
        return all(partial)
    if rule.linear == "first":
        return partial[0] and all(replicated[1:])
    return rule.linear == "one" and sum(partial) == 1 and all(p or r for p, r in zip(partial, replicated, strict=True))


def make_plan(
    rule: Rule,
    placements: Sequence[tuple[Placement, ...]],
    sizes: Sequence[Sequence[int]],
    mesh_shape: Sequence[int],
    result: Sequence[Placement] | None = None,
) -> Plan | None:
    """Chooses the placements that move the fewest bytes. Returns None if the results cannot be placed as `result`."""
    extents = {}  # size by label
    for labels, size in zip(rule.inputs, sizes, strict=True):
        for label, n in zip(labels, size, strict=True):
            if label is not None:
                extents[label] = n
    labels, parts = set(extents), dict.fromkeys(extents, 1)
    inputs: list[list[Placement]] = [[] for _ in placements]
    outputs: list[list[Placement]] = [[] for _ in rule.outputs]
    divided, keeps_partial = [], []
    for m, ranks in enumerate(mesh_shape):
        own = [p[m] for p in placements]
        label, wanted = None, None if result is None else result[m]
        costs: dict[Hashable, int] = {}
        for p, names, size in zip(own, rule.inputs, sizes, strict=True):
            if isinstance(p, Shard) and names[p.dim] is not None:
                costs[names[p.dim]] = costs.get(names[p.dim], 0) + math.prod(size)
        if isinstance(wanted, Shard):
            costs = {rule.outputs[0][wanted.dim]: 1}
        elif isinstance(wanted, Replicate):
            costs = {}
        for candidate in sorted(costs, key=costs.get, reverse=True):
            if _allowed(rule, candidate, labels) and _divides(rule, candidate, extents[candidate], parts[candidate] * ranks):
                label = candidate
                break
        if wanted is not None and (isinstance(wanted, Partial) or (isinstance(wanted, Shard) and label is None)):
            partial = [isinstance(p, Partial) for p in own]
            if not (isinstance(wanted, Partial) and _is_linear(rule, partial, [isinstance(p, Replicate) for p in own])):
                return None
        if label is not None:
            parts[label] *= ranks
            for i, names in enumerate(rule.inputs):
                if label in names:
                    inputs[i].append(Shard(names.index(label)))
                elif i in rule.addends and label in rule.summed:
                    inputs[i].append(Partial())
                else:
                    inputs[i].append(Replicate())
            for i, names in enumerate(rule.outputs):
                outputs[i].append(Shard(names.index(label)) if label in names else Partial(rule.reduce_op))
            keeps_partial.append(False)
        else:
            partial = [p.is_partial("sum") or p.is_partial("avg") for p in own]
            kinds = {p.reduce_op for p in own if isinstance(p, Partial)}
            keep = (
                len(kinds) == 1
                and not isinstance(wanted, Replicate)
                and _is_linear(rule, partial, [isinstance(p, Replicate) for p in own])
            )
            for i, p in enumerate(own):
                inputs[i].append(p if keep else Replicate())
            for placed in outputs:
                placed.append(Partial(kinds.copy().pop()) if keep else Replicate())
            keeps_partial.append(keep)
        divided.append(label)
    return Plan([tuple(p) for p in inputs], [tuple(p) for p in outputs], divided, keeps_partial)
