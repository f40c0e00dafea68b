"""The recordings of one function with different values of its unbacked symbols (_unbacked.py).

One recording becomes the graph. The others must have the same operators and constants: what they do not have in common depends on values in
a way that is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._C import Tensor
from ..node import Node
from ._merge import StructureError, check_constants, same_tensor
from ._numbers import Number
from ._unbacked import RANGES, NotRecordedError, PlanChangedError, Values, not_recorded_error
from ._unbacked_checks import NotPermittedError, RetryError
from .symbolic_shapes import GuardOnDataDependentSymNode

_MOST_TRIES = 60  # recordings for one set of values
_MOST_PLANS = 60
_SMALL = {"size": (1, 0), "int": (1, 0, -1, -3)}  # the graph checks that numbers are larger if the function needs it
_LARGE = (3, 33, 4099)
_SEEDS = 4


class Plan:
    """What the recordings of one function have in common.

    Args:
        static: whether the sizes of the arguments are constants.

    Attributes:
        kinds: of each symbol: "size", "int", "float" or "bool".
        bounds: of each symbol, inclusive; None is unbounded. torch._check() narrows them.
        equal: symbols that must have the value of another one, or of a number, with ("u", j) or the number.
        least: lower bounds of symbols that the graph checks, because it does not serve smaller values.
        mode: the index of RANGES.
    """

    def __init__(self, static: bool) -> None:
        self.static = static
        self.kinds: list[str] = []
        self.bounds: list[list[Any]] = []
        self.equal: dict[int, Any] = {}
        self.least: dict[int, int] = {}
        self.mode = 0
        self.tries_numbers = False  # as values of symbols that have none
        self.recording_values: Values | None = None  # of the last recording that was begun

    def name(self, k: int) -> str:
        """The name of a symbol, as PyTorch's."""
        return f"zuf{k}" if self.kinds[k] == "float" else f"u{k}"

    def ranges(self, values: Values | None = None) -> dict[str, tuple[Any, Any]]:
        """The bounds by symbol, with those that the operators of a recording have."""
        found = {}
        for k, (low, high) in enumerate(self.bounds):
            if values is not None and self.kinds[k] == "float":
                found[self.name(k)] = (None, None)
                continue
            least = self.least.get(k)
            if values is not None and (most := values.highs[k]) is not None:
                high = most if high is None else min(high, most)
            found[f"u{k}"] = (low if least is None else least if low is None else max(low, least), high)
        return found

    # ---- Recordings

    def recorded(self, record: Callable[[Values], Any], seed: int = 0, fixed: dict[int, Any] | None = None) -> tuple[Any, Values]:
        """A recording with values of the symbols that satisfy what the function checks.

        Args:
            record: records the function.
            seed: of the values.
            fixed: values by symbol.
        """
        chosen = dict(fixed or {})
        for _ in range(_MOST_TRIES):
            values = self.recording_values = Values(self, seed, chosen, self.static)
            try:
                try:
                    made = record(values)
                except GuardOnDataDependentSymNode:
                    raise
                except Exception:
                    values.check_reads()
                    if values.error is not None:
                        raise values.error from None
                    raise
                values.finish()
                return made, values
            except RetryError as e:
                chosen |= e.values
                if fixed is not None and any(chosen[k] != v for k, v in fixed.items()):
                    raise NotPermittedError(f"the function's checks do not permit {fixed}") from None
        raise NotPermittedError("found no numbers that satisfy all torch._check() of the function")

    def run(self, attempt: Callable[[], Any]) -> Any:
        """The result of an attempt, which is repeated while the plan changes."""
        for _ in range(_MOST_PLANS):
            try:
                return attempt()
            except PlanChangedError:
                continue
        raise NotRecordedError("found no numbers that depend on values for which the function can be recorded")

    def first(self, record: Callable[[Values], Any], seed: int = 0) -> tuple[Any, Values]:
        """A recording. If the function fails, values are chosen in another way.

        Raises:
            PlanChangedError: recordings before it are void.
        """
        self.recording_values = None
        try:
            return self.recorded(record, seed)
        except (GuardOnDataDependentSymNode, NotImplementedError):
            raise
        except Exception as e:  # noqa: BLE001 - whatever the function raises for these values
            values = self.recording_values
            if values is None or not values.values:
                raise
            self._change(record, values, e)
        raise PlanChangedError

    @staticmethod
    def _failed(values: Values, error: Exception) -> Exception:
        found = ", ".join(f"{values.plan.name(k)} = {v}" for k, v in enumerate(values.values))
        return NotRecordedError(
            f"Could not record the function for numbers that depend on values of tensors, for example {found}: {type(error).__name__}: "
            f"{error}\ntorch._check() can state which numbers and sizes are possible"
        )

    def _change(self, record: Callable[[Values], Any], values: Values, error: Exception) -> None:
        """Chooses values in another way after an error. Raises NotRecordedError if there is none."""
        if self._unified(record, values, error, False):
            return
        self.mode += 1
        if self.mode == len(RANGES):
            self.mode = 0
            if self.tries_numbers or not self._unified(record, values, error, True):
                raise self._failed(values, error) from error
            self.tries_numbers = True

    def _unified(self, record: Callable[[Values], Any], failed: Values, error: Exception, numbers: bool) -> bool:
        """Whether a call that failed succeeds if a symbol is equal to another size of its arguments. The graph checks that then."""
        for k, other in failed.candidates(error):
            if k in self.equal or isinstance(other, tuple) is numbers:
                continue
            self.equal[k] = other
            try:
                self.recorded(record, failed.seed)
                return True
            except GuardOnDataDependentSymNode:
                pass
            except Exception:  # noqa: BLE001 - whatever the function raises for these values
                if self.recording_values is not None and self.recording_values.progress() > failed.progress():
                    return True
            del self.equal[k]
        return False

    def check(self, record: Callable[[Values], Any]) -> None:
        """Raises an error unless recordings with other values have the same operators and constants.

        Raises:
            PlanChangedError: the graph checks that a symbol is larger, because the recordings with small values differ.
            GuardOnDataDependentSymNode: others differ.
        """
        first, values = self.first(record)
        wanted = structure(first)
        for seed in range(1, 1 + _SEEDS):
            for attempt in range(4):
                try:
                    self._compare(first, wanted, self.recorded(record, seed + 1000 * attempt)[0])
                    break
                except GuardOnDataDependentSymNode:
                    raise
                except Exception:  # noqa: BLE001, S112 - whatever the function raises for these values
                    continue
        for k, kind in enumerate(self.kinds[: len(values.values)]):
            if k in self.equal or kind not in _SMALL:
                continue
            for n in _LARGE:
                self._compare_at(record, first, wanted, k, n, values)
            for small in _SMALL[kind]:
                if k not in self.least and not self._compare_at(record, first, wanted, k, small, values):
                    self.least[k] = small + 1
                    raise PlanChangedError

    def _compare_at(self, record: Callable[[Values], Any], first: Any, wanted: list, k: int, n: int, values: Values) -> bool:
        """Whether the recording with a value of one symbol is like the first; True if the value is not possible."""
        low, high = self.ranges()[f"u{k}"]
        if (low is not None and n < low) or any(most is not None and n > most for most in (high, values.highs[k])):
            return True
        try:
            other = self.recorded(record, 0, {k: n})[0]
        except NotPermittedError:
            return True
        except GuardOnDataDependentSymNode:
            raise
        except Exception:  # noqa: BLE001 - whatever the function raises for these values
            return n >= 2
        try:
            self._compare(first, wanted, other)
        except GuardOnDataDependentSymNode:
            if n >= 2:
                raise
            return False
        return True

    @staticmethod
    def _compare(first: Any, wanted: list, other: Any) -> None:
        for a, b in zip(wanted, structure(other)):
            if a != b:
                raise not_recorded_error(f"{a} is {b} for other values")
        if len(wanted) != len(structure(other)):
            raise not_recorded_error("other operators are called for other values")
        try:
            check_constants([first, other])
            for a, b in zip(*(_attributes(c) for c in (first, other))):
                if not same_tensor(a, b):
                    raise StructureError("a constant tensor has other values")
        except StructureError as e:
            raise not_recorded_error(e) from e


def _attributes(captured: Any) -> list[Tensor]:
    """The constant tensors of a recording that are attributes of its module."""
    found = [getattr(captured.recording.root, n.target, None) for n in captured.recording.graph.nodes if n.op == "get_attr"]
    return [v for v in found if isinstance(v, Tensor)]


def structure(captured: Any) -> list:
    """What two recordings must have in common: operators with their arguments, numbers of dimensions, and results."""
    found: list[Any] = []
    numbers: dict[Node, int] = {}

    def plain(value: Any) -> Any:
        if isinstance(value, Node):
            return "node", numbers[value]
        if isinstance(value, (list, tuple)):
            return tuple(map(plain, value))
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        if isinstance(value, slice):
            return "slice", plain(value.start), plain(value.stop), plain(value.step)
        return "number" if type(value) is Number else repr(value)

    for i, node in enumerate(captured.recording.graph.nodes):
        numbers[node] = i
    for node in captured.recording.graph.nodes:
        if node.op == "output":
            continue
        val = node.meta.get("val")
        dims = val.dim() if isinstance(val, Tensor) else len(val) if isinstance(val, (list, tuple)) else None
        target = str(node.target) if node.op == "call_function" else ""
        part = getattr(captured.recording.root, node.target, None) if node.op == "get_attr" else None
        if part is not None and not isinstance(part, Tensor):
            target = [(n.op, str(n.target), str(n.args), str(n.kwargs)) for n in part.graph.nodes if n.op != "get_attr"]
        found.append((node.op, target, plain(node.args), plain(node.kwargs), dims))
    return [*found, ("results", plain(captured.outputs), str(captured.out_spec))]
