"""torch.utils.flop_counter: counts the floating-point operations that the engine computes for a block of code."""

from __future__ import annotations

import functools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from .. import _active_profile
from .. import ops as _torch_ops
from .._C import Tensor
from .._library.aten import AtenPacket
from .._library.operators import OpOverloadPacket
from ..profiler._modules import RunningModules, computes_gradients
from ..profiler._recording import Recorded, Recording
from ._python_dispatch import TorchDispatchMode

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


# Products whose formula a program may replace, by the name of PyTorch's operator: it receives the sizes of two or, with
# an addend, three arguments.
_REPLACEABLE = ("mm", "bmm", "addmm")
_registered: dict[Any, Callable] = {}  # formulas of register_flop_formula(), by operator: (*args, out_val, **kwargs) -> number


def _of_sizes(formula: Callable) -> Callable:
    """A formula of tensors, from one that receives their sizes, as PyTorch's do."""

    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = _sizes((args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def _sizes(value: Any) -> Any:
    """The value with the sizes of its tensors instead of them."""
    if isinstance(value, Tensor):
        return value.shape
    if isinstance(value, (list, tuple)):
        return type(value)(map(_sizes, value))
    return {k: _sizes(v) for k, v in value.items()} if isinstance(value, dict) else value


def _is_custom(operator: Any) -> bool:
    return isinstance(operator, OpOverloadPacket) and not isinstance(operator, AtenPacket)


def _packet(target: Any) -> Any:
    """The operator of a target, whose formula can be replaced.

    Raises:
        NotImplementedError: a function that is no operator, or an operator of the engine whose kernels are other ones.
    """
    target = getattr(target, "_opoverload", target)  # of torch.library.custom_op
    target = getattr(target, "overloadpacket", target)
    name = str(target)
    if not _is_custom(target) and name not in [f"aten.{n}" for n in _REPLACEABLE]:
        raise NotImplementedError(
            f"[FlopCounterMode] expected a custom operator, or one of aten.{', aten.'.join(_REPLACEABLE)}, got {name}: other operators "
            "are counted in the engine, by its own kernels"
        )
    return target


class _CustomCalls(TorchDispatchMode):
    """Passes the calls of custom operators to a function: (operator, start, end, args, kwargs, result). All are run."""

    runs_backward = True  # the engine counts the operators of a backward pass

    def __init__(self, note: Callable) -> None:
        super().__init__()
        self._note = note

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        start = time.perf_counter_ns()
        result = func(*args, **(kwargs or {}))
        packet = getattr(func, "overloadpacket", None)
        if _is_custom(packet):
            self._note(packet, start, time.perf_counter_ns(), args, kwargs or {}, result)
        return result


class FlopCounterMode:
    """Counts the operations of products, convolutions and attention within a block, gradients included. A context manager;
    it waits at both ends.

    The counts are those of the engine's kernels, by PyTorch's operators: they are known when the block has ended. In a
    backward pass, a module runs from the gradients of its results to those of its arguments, as in PyTorch. Custom operators
    with a formula count by it, and the kernels that they call do not. Only one profile, or block, can exist at a time.

    Args:
        mods: has no effect, as in PyTorch.
        depth: how many levels of submodules get_table() shows.
        display: whether the table is printed at the end of the block.
        custom_mapping: formulas by operator: custom operators, and mm, bmm and addmm of ``torch.ops.aten``. A formula receives
            the call's arguments, with sizes instead of tensors, and ``out_shape``. See register_flop_formula().
    """

    def __init__(self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict | None = None) -> None:
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = {"Global": {}}
        self._recording: Recording | None = None
        given = {_packet(op): formula for op, formula in (custom_mapping or {}).items()}
        if any(getattr(f, "_get_raw", False) for op, f in given.items() if not _is_custom(op)):
            raise NotImplementedError("[FlopCounterMode] the formula of an operator of the engine receives sizes, not tensors")
        self._given = {op: f if getattr(f, "_get_raw", False) else _of_sizes(f) for op, f in given.items()}

    def __enter__(self) -> FlopCounterMode:
        if _active_profile.active is not None or self._recording is not None:
            raise RuntimeError("[FlopCounterMode] expected no profile in progress")
        self.flop_counts = {"Global": {}}
        self._modules = RunningModules(gradients=True)
        self._modules.start()
        self._formulas = {**_registered, **self._given}
        self._custom: list[tuple[int, int, Any, int]] = []  # start, end, operator, number of a call
        self._calls = None
        if any(map(_is_custom, self._formulas)):
            self._calls = _CustomCalls(self._note)
            self._calls.__enter__()
        self._recording = _active_profile.active = Recording(True)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._calls is not None:
            self._calls.__exit__(*exception)
        self._modules.stop()
        recording, self._recording, _active_profile.active = self._recording, None, None
        self._count(recording.stop())
        if self.display:
            print(self.get_table(self.depth))

    def _note(self, op: Any, start: int, end: int, args: tuple, kwargs: dict, result: Any) -> None:
        formula = self._formulas.get(op)
        if formula is not None:
            self._custom.append((start, end, op, formula(*args, **kwargs, out_val=result)))

    def _count(self, recorded: Recorded) -> None:
        counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        counts["Global"]

        def add(operator: Any, number: int, moment: int) -> None:
            for module in {"Global", *self._modules.at(moment)}:
                counts[module][operator] += number

        for start, _, operator, number in self._custom:
            add(operator, number, start)
        for event in recorded.events[recorded.events["kind"] == _KERNEL]:
            formula = _FORMULAS.get(recorded.names.get(int(event["op"]), ""))
            if formula is None or not event["shapes"]:
                continue
            inputs, outputs = recorded.sizes(int(event["shapes"]))
            if len(inputs) < 2 or not outputs or not inputs[0] or len(inputs[1]) == 1:
                continue  # PyTorch counts no products with a vector on the right (mv, dot)
            issued = recorded.issued(int(event["instruction"]))
            if any(start <= issued <= end for start, end, _, _ in self._custom):
                continue
            name, number = formula(inputs, outputs)
            if name.startswith("convolution"):  # the gradients of a convolution are convolutions, too
                name = "convolution_backward" if computes_gradients(recorded, int(event["instruction"])) else "convolution"
            operator = _operator(name)
            if operator in self._formulas:
                number = _replaced(self._formulas[operator], name, inputs, outputs)
            add(operator, number, issued)
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


def _replaced(formula: Callable, name: str, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> int:
    """The number of operations of a product by a program's formula, from the sizes of the kernel's arguments."""
    first, second = tuple(inputs[0]), tuple(inputs[1])
    if name == "bmm":
        batch = math.prod(outputs[0][:-2])
        first, second = (batch, *first[-2:]), (batch, *second[-2:])
    else:  # the engine multiplies batches by one matrix, and by the transposed weights of linear layers
        first = (math.prod(first[:-1]), first[-1])
        second = second if second[0] == first[1] else second[::-1]
    addend = [tuple(inputs[2])] if name == "addmm" else []
    return formula(*addend, first, second, out_val=(*first[:-1], second[-1]))


def register_flop_formula(targets: Any, get_raw: bool = False) -> Any:
    """Decorates a function that returns the number of operations of a call of an operator, or of several.

    Args:
        targets: custom operators, or mm, bmm and addmm of ``torch.ops.aten``.
        get_raw: whether the function receives the call's tensors and ``out_val``, instead of their sizes and ``out_shape``.
    """

    def register(formula: Callable) -> Callable:
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            op = _packet(target)
            if get_raw and not _is_custom(op):
                raise NotImplementedError("[register_flop_formula] the formula of an operator of the engine receives sizes, not tensors")
            if op in _registered:
                raise RuntimeError(f"duplicate registrations for {op}")
            _registered[op] = formula if get_raw else _of_sizes(formula)
        if get_raw:
            formula._get_raw = True
        return formula

    return register
