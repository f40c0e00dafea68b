"""Padding layers: a table of modes and dimensions."""

from __future__ import annotations

from ..._integers import repeated
from .. import functional as F
from .module import Module

_TABLE = {
    f"{kind}Pad{n}d": (mode, n)
    for kind, mode in (
        ("Constant", "constant"), ("Zero", "constant"), ("Reflection", "reflect"), ("Replication", "replicate"),
        ("Circular", "circular"),
    )
    for n in (1, 2, 3)
}  # fmt: skip
__all__ = list(_TABLE)


class _Pad(Module):
    mode: str
    ndim: int

    def __init__(self, padding):
        super().__init__()
        self.padding = repeated(padding, 2 * self.ndim)

    def forward(self, input):
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ReflectionPadNd(_Pad):
    pass


class _ReplicationPadNd(_Pad):
    pass


class _CircularPadNd(_Pad):
    def _check_input_dim(self, input) -> None:
        if input.dim() not in (self.ndim + 1, self.ndim + 2):
            raise ValueError(f"expected {self.ndim + 1}D or {self.ndim + 2}D input (got {input.dim()}D input)")

    def forward(self, input):
        self._check_input_dim(input)
        return super().forward(input)


class _ConstantPadNd(_Pad):
    def __init__(self, padding, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad:
    """The methods of padding with zeros, which is constant padding."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


for _name, (_mode, _n) in _TABLE.items():
    _zero = _name.startswith("Zero")
    _bases = (_ZeroPad, globals()[f"ConstantPad{_n}d"]) if _zero else (globals()[f"_{_name[:-2]}Nd"],)
    _members = {"mode": _mode, "ndim": _n, "__doc__": f"Pads the last {_n} dimensions ({_mode}).", "__module__": __name__}
    globals()[_name] = type(_name, _bases, _members)
