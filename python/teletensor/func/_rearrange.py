"""rearrange: permutes, splits and joins the dimensions of a tensor, by a pattern as in einops."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from .. import _C
from .._C import Tensor

_TOKEN = re.compile(r"\s*(\.\.\.|[A-Za-z_]\w*|\d+|[()]|\S)")


def _parse(text: str) -> list[list[str] | None]:
    """The groups of names of one side: a name without parentheses is a group, "1" is an empty group, and "..." without
    parentheses is None.
    """
    groups: list[list[str] | None] = []
    inside: list[str] | None = None
    for token in _TOKEN.findall(text):
        if token == "(":
            if inside is not None:
                raise ValueError("brackets are not balanced: one inside another")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError("brackets are not balanced")
            groups.append(inside)
            inside = None
        elif token.isdigit() and token != "1":
            raise ValueError("rearrange only supports unnamed axes of size 1")
        elif not (token == "..." or token == "1" or token.isidentifier()):
            raise ValueError(f"Unknown character '{token}'")
        else:
            names = [] if token == "1" else [token]
            if inside is None:
                groups.append(None if token == "..." else names)
            else:
                inside += names
    if inside is not None:
        raise ValueError("brackets are not balanced")
    names = _names(groups)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
    return groups


def _names(groups: list[list[str] | None]) -> list[str]:
    return [name for group in groups for name in (["..."] if group is None else group)]


def _sides(pattern: str) -> tuple[list[list[str] | None], list[list[str] | None]]:
    if pattern.count("->") != 1:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = (_parse(side) for side in pattern.split("->"))
    names = [set(_names(side)) for side in (left, right)]
    if "..." in names[1] and "..." not in names[0]:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if any(group is not None and "..." in group for group in left):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    if names[0] != names[1]:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {names[0] ^ names[1]}")
    return left, right


def _sizes(groups: list[list[str]], shape: Sequence[int], lengths: dict[str, int]) -> dict[str, int]:
    """The size of each name of the left side."""
    sizes = dict(lengths)
    for group, size in zip(groups, shape):
        unknown = [name for name in group if name not in sizes]
        known = math.prod(sizes[name] for name in group if name in sizes)
        if len(unknown) > 1:
            raise ValueError(f"cannot infer the sizes of several dimensions at once: {unknown}")
        if unknown:
            if known == 0 or size % known:
                raise ValueError(f"inferred dimension does not evenly fit into larger dimension: {size} vs {group}")
            sizes[unknown[0]] = size // known
        elif known != size:
            raise ValueError(f"expected the dimensions {group} to have {known} elements, got {size}")
    return sizes


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """Permutes, splits and joins the dimensions of a tensor, or of several that are stacked first.

    Args:
        pattern: names of the dimensions before and after "->"; names in parentheses are one dimension, "..." any number.
        axes_lengths: sizes of the names whose size cannot be computed.
    """
    if not isinstance(tensor, Tensor):
        tensor = _C.torch.stack(list(tensor))
    left, right = _sides(pattern)
    hidden = tensor.dim() - sum(group is not None for group in left)
    has_ellipsis = None in left
    if hidden < 0 or (hidden > 0 and not has_ellipsis):
        raise ValueError(
            f"Number of dimensions in pattern ({len(left) - has_ellipsis}) must be equal to the number of dimensions in the tensor "
            f"({tensor.dim()})"
        )
    more = [f"...{i}" for i in range(hidden)]  # names for the dimensions of "..."
    before = [part for group in left for part in ([[name] for name in more] if group is None else [group])]
    after = []
    for group in right:
        if group is None:
            after += [[name] for name in more]
        else:
            after.append([part for name in group for part in (more if name == "..." else [name])])
    for name in axes_lengths:
        if not any(name in group for group in before):
            raise ValueError(f"Specified axis lengths that do not appear in the pattern: {name}")
    sizes = _sizes(before, tensor.shape, axes_lengths)
    names = [name for group in before for name in group]
    order = [names.index(name) for group in after for name in group]
    split = tensor.reshape([sizes[name] for name in names]).permute(order)
    return split.reshape([math.prod(sizes[name] for name in group) for group in after])
