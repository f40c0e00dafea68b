"""Formats tensors for printing in PyTorch's notation."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

from . import _C

_EDGE, _THRESHOLD, _PRECISION, _WIDTH = 3, 1000, 4, 80
_options = {"precision": _PRECISION, "threshold": _THRESHOLD, "edgeitems": _EDGE, "linewidth": _WIDTH, "sci_mode": None}

_USUAL = {"precision": _PRECISION, "threshold": _THRESHOLD, "edgeitems": _EDGE, "linewidth": _WIDTH}
_PROFILES = {
    "default": _USUAL, "short": {**_USUAL, "precision": 2, "edgeitems": 2}, "full": {**_USUAL, "threshold": math.inf},
}  # fmt: skip


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None) -> None:
    """Sets the precision, the summary threshold, the items shown at each edge, and the line width of printed tensors."""
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"expected profile to be one of {sorted(_PROFILES)}, got {profile!r}")
        _options.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({k: v for k, v in given.items() if v is not None})
    _options["sci_mode"] = sci_mode


@contextlib.contextmanager
def printoptions(**kwargs) -> Iterator[None]:
    """set_printoptions(**kwargs) within a ``with`` block."""
    before = dict(_options)
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        _options.update(before)


class _ComplexFormatter:
    """Formats all real parts with one format, and all imaginary parts with another."""

    def __init__(self, values: list):
        self.real, self.imaginary = _Formatter([v.real for v in values], True), _Formatter([v.imag for v in values], True)
        self.width = self.real.width + self.imaginary.width + 1  # as PyTorch counts, without the sign

    def __call__(self, value: complex) -> str:
        imaginary = self.imaginary(value.imag).lstrip() + "j"
        return self.real(value.real) + ("" if imaginary[0] in "+-" else "+") + imaginary


class _Formatter:
    """Formats all values of a tensor with the same format."""

    def __init__(self, values: list, floating: bool):
        self.floating, self.integral, self.scientific = floating, False, False
        if floating:
            finite = [abs(v) for v in values if math.isfinite(v) and v != 0]
            self.integral = all(v == math.floor(v) for v in finite)
            if finite:
                low, high = min(finite), max(finite)
                limit = high / low > 1000 or high > 1e8
                self.scientific = limit if self.integral else limit or low < 1e-4
            if finite and _options["sci_mode"] is not None:
                self.scientific = _options["sci_mode"]
        counted = [v for v in values if math.isfinite(v) and v != 0] if floating else values  # as in PyTorch
        self.width = max((len(self.plain(v)) for v in counted), default=1)

    def plain(self, value) -> str:
        if not self.floating:
            return str(value)
        if not math.isfinite(value):
            return str(value)
        if self.scientific:
            return f"{value:.{_options['precision']}e}"
        return f"{value:.0f}." if self.integral else f"{value:.{_options['precision']}f}"

    def __call__(self, value) -> str:
        return self.plain(value).rjust(self.width)


def _edges(tensor: _C.Tensor) -> _C.Tensor:
    """Returns only the printed elements of a large tensor, so that no other elements are read from the engine."""
    edge = _options["edgeitems"]
    for d, size in enumerate(tensor.shape):
        if size > 2 * edge:
            tensor = _C.torch.cat([tensor.narrow(d, 0, edge), tensor.narrow(d, size - edge, edge)], d)
    return tensor


def _flatten(nested) -> list:
    return [v for item in nested for v in _flatten(item)] if isinstance(nested, list) else [nested]


def _body(nested, indent: int, formatter: _Formatter, summarize: bool, shape) -> str:
    if not shape:
        return formatter(nested)
    edge = _options["edgeitems"]
    cut = summarize and shape[0] > 2 * edge
    if len(shape) == 1:
        items = [formatter(v) for v in nested]
        if cut:
            items.insert(edge, " ...")
        per_line = max(1, (_options["linewidth"] - indent) // (formatter.width + 2))
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = [_body(item, indent + 1, formatter, summarize, shape[1:]) for item in nested]
    if cut:
        parts.insert(edge, "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


other_reprs: set[Callable] = set()  # methods of subclasses of Tensor that return the text of a tensor, after a heading


def _names(tensor: _C.Tensor) -> tuple[str, str]:
    """The text before and after the values, for parameters and users' subclasses."""
    kind = type(tensor)
    if kind.__name__ == "Parameter":
        return "tensor(", ")"
    if kind is _C.Tensor or kind.__module__.partition(".")[0] == "teletensor":  # as_torch changes Tensor's module
        return "tensor(", ")"
    if "_parameter_type" in tensor.__dict__ or any(base.__name__ == "Parameter" for base in kind.__mro__):
        return f"Parameter({kind.__name__}(", "))"
    return f"{kind.__name__}(", ")"


def read(tensor: _C.Tensor, *, summarize: bool) -> Any:
    """The printed elements as nested lists, or as a number: if `summarize`, those at the edges. Waits."""
    return (_edges(tensor.detach()) if summarize else tensor.detach()).tolist()


def is_summarized(tensor: _C.Tensor) -> bool:
    """Whether only the edges of a tensor are printed."""
    return tensor.numel() > _options["threshold"]


def formatter_of(tensor: _C.Tensor, values: list) -> _Formatter | _ComplexFormatter:
    """The format of a tensor's elements, of which `values` are printed."""
    return _ComplexFormatter(values) if tensor.dtype.is_complex else _Formatter(values, tensor.is_floating_point())


def contents(tensor: _C.Tensor, nested: Any) -> str:
    """The values that `read` returned, as in the text of the tensor."""
    formatter = formatter_of(tensor, _flatten(nested))
    return _body(nested, len(_names(tensor)[0]), formatter, is_summarized(tensor), list(tensor.shape))


def is_read(tensor: _C.Tensor) -> bool:
    """Whether printing a tensor reads values."""
    return not (tensor.device.type == "meta" or _C._is_wrapper(tensor) or tensor.numel() == 0)


def _tensor_str(self: _C.Tensor, indent: int) -> str:
    """The values in brackets; lines after the first are indented. Libraries use this name too."""
    summarize = is_summarized(self)
    nested = read(self, summarize=summarize)
    return _body(nested, indent, formatter_of(self, _flatten(nested)), summarize, list(self.shape))


def _add_suffixes(tensor_str: str, suffixes: list[str], indent: int, force_newline: bool) -> str:
    """Adds suffixes such as "dtype=torch.int8" and a parenthesis; a suffix that exceeds the line begins another."""
    length = len(tensor_str) - tensor_str.rfind("\n") + 1  # as PyTorch counts
    for suffix in suffixes:
        if force_newline or length + len(suffix) + 2 > _options["linewidth"]:
            tensor_str += ",\n" + " " * indent + suffix
            length, force_newline = indent + len(suffix), False
        else:
            tensor_str += ", " + suffix
            length += len(suffix) + 2
    return tensor_str + ")"


class _PrintOptions:
    """The options of set_printoptions as attributes, which libraries read."""

    def __getattr__(self, name: str):
        if name in _options:
            return _options[name]
        raise AttributeError(f"there is no print option {name!r}")


PRINT_OPTS = _PrintOptions()


def tensor_str(tensor: _C.Tensor, contents: str | None = None) -> str:
    """Formats a tensor as ``tensor([1., 2.])``, with dtype, device and gradient information if not the default.

    If ``contents`` is given, it replaces the values, which are then not read.
    """
    name, end = _names(tensor)
    indent = len(name)
    suffixes = []
    if tensor.device.type != "cpu":
        suffixes.append(f"device='{tensor.device}'")
    default = _C.default_dtype()
    inferred = (default, default.to_complex(), _C.int64, _C.bool)  # dtypes that the values show
    if contents is not None:
        body = contents
    elif tensor.device.type == "meta" or _C._is_wrapper(tensor):
        body, inferred = "...", (default,)
        suffixes.append(f"size={tuple(tensor.shape)}")
    elif tensor.numel() == 0:
        body, inferred = "[]", (default,)
        if tensor.dim() != 1:
            suffixes.append(f"size={tuple(tensor.shape)}")
    else:
        body = _tensor_str(tensor, indent)
    if tensor.dtype not in inferred:
        suffixes.append(f"dtype={tensor.dtype}")
    if tensor.grad_fn is not None:
        suffixes.append(f"grad_fn=<{tensor.grad_fn.name()}>")
    elif tensor.requires_grad:
        suffixes.append("requires_grad=True")
    return _add_suffixes(name + body, suffixes, indent, False)[:-1] + end


def _str_intern(inp: _C.Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor, under a private name of PyTorch's."""
    return tensor_str(inp, tensor_contents)
