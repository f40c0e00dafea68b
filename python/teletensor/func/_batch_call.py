"""A call of an operator with tensors that vmap maps over, and the table of the rules that compute one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._C import Tensor
from .._library.engine_operators import Operator


class NoRule(Exception):
    """The call has no rule, although its operator may have one."""


class Unmapped:
    """Results that are equal for all entries."""

    def __init__(self, results: list[Tensor]):
        self.results = results


class Call:
    """A call with mapped arguments: `values` have the function's view of them, one entry's sizes."""

    def __init__(self, op: Operator, arguments: Sequence[Any], level: Any):
        self.op, self.level, self.size = op, level, level.size
        self.args = dict(zip(op.names, arguments, strict=True))

    def __getitem__(self, name: str) -> Any:
        return self.args[name]

    def is_mapped(self, name: str) -> bool:
        return self.level.has(self.args[name])

    def value(self, tensor: Any) -> Any:
        """A mapped tensor's values, whose first dimension is the batch; other arguments as they are."""
        return tensor._value if self.level.has(tensor) else tensor

    def expanded(self, tensor: Tensor, ndim: int = 0) -> Tensor:
        """The values for all entries, of at least `ndim` dimensions besides the batch."""
        value = self.level.expanded(tensor)
        return value.reshape(self.size, *[1] * (ndim - tensor.dim()), *tensor.shape) if tensor.dim() < ndim else value

    def aligned(self, tensor: Tensor, ndim: int) -> Tensor:
        """The values, as an operand that is broadcast with others of `ndim` dimensions besides the batch."""
        return self.expanded(tensor, ndim) if self.level.has(tensor) else tensor

    def run(self, **changed: Any) -> Any:
        """Calls the operator with the values of its arguments, of which some are changed."""
        arguments = [changed[n] if n in changed else self._values(v) for n, v in self.args.items()]
        results = self.op.call(arguments)
        return results[0] if self.op.num_outputs == 1 else results

    def _values(self, argument: Any) -> Any:
        return [self.value(v) for v in argument] if isinstance(argument, list) else self.value(argument)

    def result_sizes(self) -> list:
        sizes = self.op.result_sizes(list(self.args.values()))
        if sizes is None:
            raise NoRule
        return sizes

    def tensors(self) -> list[Tensor]:
        return [v for v in self.args.values() if isinstance(v, Tensor)]

    def only_maps(self, *names: str) -> None:
        """NoRule if other arguments than these are mapped."""
        for name, value in self.args.items():
            values = value if isinstance(value, list) else [value]
            if name not in names and any(map(self.level.has, values)):
                raise NoRule


Rule = Callable[[Call], Any]
RULES: dict[str, Rule] = {}


def rule(names: str) -> Callable[[Rule], Rule]:
    """Declares the rule of the operators with these names."""
    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names.split(), function))
        return function

    return register


def behind_batch(dim: int, ndim: int) -> int:
    """A dimension of one entry as a dimension of the values."""
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count + 1
