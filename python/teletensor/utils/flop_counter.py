"""torch.utils.flop_counter: counts the floating-point operations that the engine computes for a block of code."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from .. import _active_profile
from .. import ops as _torch_ops
from ..profiler._modules import RunningModules
from ..profiler._recording import Recorded, Recording

__all__ = ["FlopCounterMode", "register_flop_formula"]

Shape = Sequence[int]
_KERNEL = 1  # the kind of an event
_UNITS = ("", "K", "M", "B", "T")


def _product(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> tuple[str, int]:
    """A product of matrices; the last dimension of the first factor is summed over."""
    count = 2 * math.prod(outputs[0]) * inputs[0][-1]
    return "bmm" if len(inputs[0]) > 2 and len(inputs[1]) > 2 else "mm", count


def _linear(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> tuple[str, int]:
    return "addmm" if len(inputs) > 2 else "mm", 2 * math.prod(outputs[0]) * inputs[0][-1]


def _convolution(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> tuple[str, int]:
    return "convolution", 2 * math.prod(outputs[0]) * math.prod(inputs[1][1:])


def _convolution_input(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> tuple[str, int]:
    return "convolution", 2 * math.prod(inputs[0]) * math.prod(inputs[1][1:])


def _convolution_weight(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> tuple[str, int]:
    return "convolution_backward", 2 * math.prod(inputs[0]) * math.prod(outputs[0][1:])


def _attention(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> tuple[str, int]:
    (*batch, rows, width), columns, value_width = inputs[0], inputs[1][-2], inputs[2][-1]
    return "_scaled_dot_product_flash_attention_for_cpu", 2 * math.prod(batch) * rows * columns * (width + value_width)


def _attention_gradients(inputs: Sequence[Shape], outputs: Sequence[Shape]) -> tuple[str, int]:
    gradient, query, key, value = inputs[:4]
    (*batch, rows, width), columns, value_width = query, key[-2], value[-1]
    # The scores again, and the gradients of value, scores, query and key.
    count = 2 * math.prod(batch) * rows * columns * (3 * width + 2 * value_width)
    return "_scaled_dot_product_flash_attention_for_cpu_backward", count


# PyTorch's operator and the number of operations, from the sizes of a kernel's arguments and results.
_FORMULAS: dict[str, Callable[[Sequence[Shape], Sequence[Shape]], tuple[str, int]]] = {
    "matmul": _product, "linear": _linear, "convolution": _convolution, "convolution_input": _convolution_input,
    "convolution_weight": _convolution_weight, "attention_forward": _attention, "attention_backward": _attention_gradients,
}  # fmt: skip


@functools.cache
def _operator(name: str) -> Any:
    return getattr(_torch_ops.aten, name, None) or _torch_ops.OperatorName(f"aten.{name}")


class FlopCounterMode:
    """Counts the operations of products, convolutions and attention within a block, gradients included. A context manager;
    it waits at both ends.

    The counts are those of the engine's kernels, by PyTorch's operators: they are known when the block has ended. The
    gradients of a module are counted in "Global" only, because a backward pass is one call. Only one profile, or block, can
    exist at a time.

    Args:
        mods: has no effect, as in PyTorch.
        depth: how many levels of submodules get_table() shows.
        display: whether the table is printed at the end of the block.
        custom_mapping: must be empty: operators are counted in the engine.
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict | None = None) -> None:
        if custom_mapping:
            raise NotImplementedError("[FlopCounterMode] expected no custom_mapping: operators are counted in the engine")
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = {"Global": {}}
        self._recording: Recording | None = None

    def __enter__(self) -> FlopCounterMode:
        if _active_profile.active is not None or self._recording is not None:
            raise RuntimeError("[FlopCounterMode] expected no profile in progress")
        self.flop_counts = {"Global": {}}
        self._modules = RunningModules()
        self._modules.start()
        self._recording = _active_profile.active = Recording(True)
        return self

    def __exit__(self, *exception: object) -> None:
        self._modules.stop()
        recording, self._recording, _active_profile.active = self._recording, None, None
        self._count(recording.stop())
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, recorded: Recorded) -> None:
        counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        counts["Global"]
        for event in recorded.events[recorded.events["kind"] == _KERNEL]:
            formula = _FORMULAS.get(recorded.names.get(int(event["op"]), ""))
            if formula is None or not event["shapes"]:
                continue
            inputs, outputs = recorded.sizes(int(event["shapes"]))
            if len(inputs) < 2 or not outputs or not inputs[0]:
                continue
            name, number = formula(inputs, outputs)
            operator = _operator(name)
            for module in {"Global", *self._modules.at(recorded.issued(int(event["instruction"])))}:
                counts[module][operator] += number
        self.flop_counts = {module: dict(of_module) for module, of_module in counts.items()}

    def get_total_flops(self) -> int:
        """The number of operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The numbers by module and operator; "Global" has all of them."""
        return self.flop_counts

    def get_table(self, depth: int | None = None) -> str:
        """A table of the numbers, by module and operator."""
        depth = self.depth if depth is None else depth
        total, rows = self.get_total_flops(), []
        of_modules = [m for m in self.flop_counts if m != "Global" and m.count(".") < depth]
        shown = ["Global", *sorted(of_modules)] if total > 0 else []
        roots = [m for m in of_modules if "." not in m]
        if len(roots) == 1 and sum(self.flop_counts[roots[0]].values()) == total:
            shown.remove("Global")  # it says nothing else
        for module in shown:
            indent = " " * (module.count(".") + (module != "Global" and "Global" in shown))
            numbers = self.flop_counts[module]
            rows.append((indent + module, _short(sum(numbers.values()), total), f"{100 * sum(numbers.values()) / total:.2f}%"))
            rows += [(f"{indent} - {op}", _short(n, total), f"{100 * n / total:.2f}%") for op, n in numbers.items()]
        return _table(("Module", "FLOP", "% Total"), rows)


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    try:
        from tabulate import tabulate
    except ImportError:
        widths = [max(len(row[i]) for row in (header, *rows)) for i in range(3)]
        lines = [header, tuple("-" * width for width in widths), *rows]
        return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines)
    return tabulate(rows, headers=header, colalign=("left", "right", "right"))


def _short(number: int, total: int) -> str:
    """A number in the unit that suits the total."""
    unit = max(0, min(len(_UNITS) - 1, (len(str(total)) - 2) // 3))
    return f"{number / 1000**unit:.3f}{_UNITS[unit]}" if unit else str(number)


def register_flop_formula(targets: Any, get_raw: bool = False) -> Any:
    """Raises NotImplementedError: operators are counted in the engine."""
    raise NotImplementedError("[register_flop_formula] expected no formula: operators are counted in the engine")
