"""fp32_precision of torch.backends and its parts: the precision in which products of float32 may be computed.

"ieee", "tf32" and "bf16" are set; "none" leaves it to the part above: a kind of operator to its library, a library to
torch.backends. GPUs compute matrix products and convolutions in TF32 if that is the result; CPUs always use full precision.
"""

from __future__ import annotations

from .. import _connection
from .._functions import get_float32_matmul_precision, set_float32_matmul_precision

_OF_MATMUL = {"highest": "ieee", "high": "tf32", "medium": "bf16"}

_set: dict[str, str] = {}  # what the program set, by part
_seen = {"matmul": "highest", "convolution": True}  # the engine's settings when this module last read or wrote them


def _read_matmul_precision() -> None:
    """Takes over what set_float32_matmul_precision() or allow_tf32 of matrix products set."""
    if (found := get_float32_matmul_precision()) != _seen["matmul"]:
        _seen["matmul"] = found
        _set["cuda.matmul"] = "ieee" if found == "highest" else "tf32"
        _set["mkldnn.matmul"] = _OF_MATMUL[found]


def precision(part: str) -> str:
    """The precision of a part: "", "cuda", "cuda.matmul", "cuda.conv", "cuda.rnn", or the same of "mkldnn"."""
    _read_matmul_precision()
    library = part.partition(".")[0]
    for key in (part, library, ""):
        if (found := _set.get(key, "none")) != "none":
            return "none" if found == "bf16" and library == "cuda" else found
    return "tf32" if part in ("cuda.conv", "cuda.rnn") and part not in _set else "none"


def set_precision(part: str, value: str) -> None:
    """Sets the precision of a part.

    Raises:
        RuntimeError: the value has another name, or CUDA's libraries do not have it.
        NotImplementedError: recurrent layers, which are computed by matrix products, would have to be more precise than these.
    """
    if value not in ("none", "ieee", "tf32", "bf16"):
        raise RuntimeError(f"Unknown precision: {value}")
    if value == "bf16" and part.startswith("cuda"):
        raise RuntimeError("backend 'cuda' does not support precision 'bf16'")
    _read_matmul_precision()
    before = dict(_set)
    _set[part] = value
    if precision("cuda.rnn") == "ieee" and precision("cuda.matmul") == "tf32":
        _set.clear()
        _set.update(before)
        raise NotImplementedError("[fp32_precision] recurrent layers have the precision of matrix products: set cuda.matmul, too")
    _configure()


def allows_convolutions_in_tf32() -> bool:
    return precision("cuda.conv") == "tf32"


def allow_convolutions_in_tf32(allowed: bool) -> None:
    """torch.backends.cudnn.allow_tf32."""
    _set["cuda.conv"] = _set["cuda.rnn"] = "tf32" if allowed else "none"
    _configure()


def _configure() -> None:
    """Passes the settings to the engine."""
    matmul = precision("cuda.matmul") == "tf32"
    if matmul != (_seen["matmul"] != "highest"):
        set_float32_matmul_precision("high" if matmul else "highest")
        _seen["matmul"] = get_float32_matmul_precision()
    convolution = allows_convolutions_in_tf32()
    if convolution != _seen["convolution"]:
        _connection.configure_sessions("set_convolution_tf32", convolution)
        _seen["convolution"] = convolution


class Part:
    """The object torch.backends.<library>.<kind>."""

    def __init__(self, part: str):
        self._part = part

    @property
    def fp32_precision(self) -> str:
        """The precision of float32: "ieee", "tf32", "bf16", or "none" if nothing was set for it or above it."""
        return precision(self._part)

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        set_precision(self._part, value)


def of_module(part: str, doc: str) -> property:
    """The property fp32_precision of a module."""
    return property(lambda _: precision(part), lambda _, value: set_precision(part, value), doc=doc)
