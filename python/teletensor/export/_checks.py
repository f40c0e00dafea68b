"""InputCheck: whether arguments of an exported program's module are like those for which it was exported."""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Sequence
from fractions import Fraction
from types import CodeType
from typing import Any

from .._C import Tensor
from ..utils import _pytree as pytree


@dataclasses.dataclass
class ValueRange:
    """The range of a size: `lower` and `upper` are None if it is unbounded."""

    lower: int | None
    upper: int | None

    def __repr__(self) -> str:
        return f"VR[{'-int_oo' if self.lower is None else self.lower}, {'int_oo' if self.upper is None else self.upper}]"


class InputCheck:
    """A forward pre-hook that raises if arguments do not fit.

    Args:
        in_spec: the structure of (args, kwargs).
        leaves: for each leaf its name and, for a tensor, its sizes and dtype: a size is an int, or (symbol, factor, offset);
            for others the value.
        ranges: bounds by symbol.
        comparisons: of symbols, as text, that hold.
    """

    def __init__(
        self, in_spec: Any, leaves: list[tuple[str, Any]], ranges: dict[str, tuple[int, int | None]], comparisons: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.in_spec, self.leaves, self.ranges = in_spec, leaves, ranges
        self.comparisons: list[str] = []
        self.compare(comparisons)

    def compare(self, comparisons: Sequence[str]) -> None:
        """Adds comparisons. Raises ValueError for a text that is none."""
        for text in comparisons:
            _compiled(text, tuple(self.ranges))
            tree = ast.parse(text, mode="eval").body
            if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
                raise ValueError(f"[export] expected one comparison, got {text[:200]!r}")
        self.comparisons += comparisons

    def __call__(self, _module: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        order = self.in_spec.child(1).context or []
        if set(kwargs) == set(order):
            kwargs = {k: kwargs[k] for k in order}
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self.in_spec:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{self.in_spec}\n"
                f"but actually got inputs with tree spec of: \n{spec}.\n"
                "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing."
            )
        values: dict[str, tuple[int, str]] = {}
        for (name, expected), value in zip(self.leaves, leaves):
            if isinstance(expected, TensorInput):
                self._check_tensor(name, expected, value, values)
            elif value != expected and not (value != value and expected != expected):
                raise AssertionError(f"Guard failed: {name} == {expected!r}, got {value!r}")
        sizes = {name: n for name, (n, _) in values.items()}
        for text in self.comparisons:
            try:
                holds = evaluated(text, sizes)
            except ZeroDivisionError:
                holds = False
            if not holds:
                raise AssertionError(f"Guard failed: {text}, got {', '.join(f'{n} = {v}' for n, v in sizes.items() if n in text)}")

    def _check_tensor(self, name: str, expected: TensorInput, value: Any, values: dict[str, tuple[int, str]]) -> None:
        if not isinstance(value, Tensor):
            raise AssertionError(f"Guard failed: isinstance({name}, torch.Tensor), got {type(value).__name__}")
        if value.dim() != len(expected.sizes):
            raise AssertionError(f"Guard failed: {name}.dim() == {len(expected.sizes)}, got {value.dim()}")
        if value.dtype != expected.dtype:
            raise AssertionError(f"Guard failed: {name}.dtype == {expected.dtype}, got {value.dtype}")
        for dim, (size, actual) in enumerate(zip(expected.sizes, tuple(value.shape))):
            text = f"{name}.size()[{dim}]"
            if size is None:
                continue
            if isinstance(size, int):
                if size != actual:
                    raise AssertionError(f"Guard failed: {text} == {size}, got {actual}")
                continue
            symbol, factor, offset = size
            solved = Fraction(actual - offset, factor)
            if solved.denominator != 1:
                raise AssertionError(f"Guard failed: {text} == {factor}*{symbol} + {offset}, got {actual}")
            known, where = values.setdefault(symbol, (int(solved), text))
            if known != solved:
                rule = f"{text} == {factor}*{symbol} + {offset}"
                raise AssertionError(f"Guard failed: {rule} with {symbol} = {known} of {where}, got {actual}")
            low, high = self.ranges[symbol]
            if known < low or (high is not None and known > high):
                limits = f"{low} <= {symbol}" if high is None else f"{low} <= {symbol} <= {high}"
                raise AssertionError(f"Guard failed: {limits} for {symbol} of {text}, got {known}")


_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.USub, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Load)
_FUNCTIONS = {"sym_min": min, "sym_max": max}
_LONGEST = 4096  # a text of a comparison
_MOST_PRODUCTS = 64


def evaluated(text: str, sizes: dict[str, int]) -> Any:
    """The value of a comparison, or of an expression, for these sizes."""
    return eval(_compiled(text, tuple(sizes)), {"__builtins__": {}, **_FUNCTIONS}, sizes)  # noqa: S307 - of a few kinds of expressions


@functools.lru_cache(1024)
def _compiled(text: str, names: tuple[str, ...]) -> CodeType:
    """A comparison of sizes, such as "n + 3 <= 2*sym_min(m, 7)". Raises ValueError for other code."""
    tree = ast.parse(text, mode="eval") if isinstance(text, str) and len(text) <= _LONGEST else None
    nodes = list(ast.walk(tree)) if tree is not None else [None]
    if sum(isinstance(node, ast.Mult) for node in nodes) > _MOST_PRODUCTS:
        raise ValueError(f"[export] expected a comparison with at most {_MOST_PRODUCTS} products")
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        is_called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
        is_called = is_called and len(node.args) == 2 and not node.keywords
        is_known = isinstance(node, ast.Name) and (node.id in names or id(node) in called)
        is_number = isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 2**63
        kinds = (ast.Expression, ast.Compare, ast.BinOp, ast.UnaryOp, *_ARITHMETIC)
        if not (is_called or is_known or is_number or isinstance(node, kinds)):
            raise ValueError(f"[export] expected a comparison of {', '.join(names)}, got {str(text)[:200]!r}")
    return compile(tree, "<comparison>", "eval")


class TensorInput:
    """The sizes and dtype that a tensor must have: a size is an int, (symbol, factor, offset), or None for any."""

    def __init__(self, sizes: list[Any], dtype: Any) -> None:
        self.sizes, self.dtype = sizes, dtype
