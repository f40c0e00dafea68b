"""Short descriptions of tensors in printed graphs: f32[2, 3][3, 1]cpu."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

from .._C import dtype

# PyTorch's abbreviations.
_ABBREVIATIONS = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2", "complex32": "c32", "complex64": "c64", "complex128": "c128", "int8": "i8", "int16": "i16",
    "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8",
}  # fmt: skip
_CODES = {"red": "\033[31m", "blue": "\033[34m", "dim": "\033[2m", "dim_blue": "\033[2m\033[34m", "dim_green": "\033[2m\033[32m"}


def abbreviation(kind: dtype) -> str:
    """The abbreviation of a dtype; its name if it has none."""
    name = str(kind).rpartition(".")[2]
    return _ABBREVIATIONS.get(name, name)


def paint(color: str, enabled: bool) -> Callable[[str], str]:
    """A function that adds the terminal codes of a color, or returns the text unchanged."""
    return (lambda text: f"{_CODES[color]}{text}\033[0m") if enabled else (lambda text: text)


def shape_text(sizes: Iterable[Any]) -> str:
    """[2, 3]"""
    return f"[{', '.join(str(size) for size in sizes)}]"


def describe(tensor: Any, stride: bool = False, device: bool = False, colored: bool = False) -> str:
    """dtype and sizes of a tensor or its metadata; strides and device on request."""
    text = paint("red", colored)(abbreviation(tensor.dtype)) + paint("blue", colored)(shape_text(tensor.shape))
    if stride:
        text += paint("dim_blue", colored)(shape_text(tensor.stride()))
    if device:
        text += paint("dim_green", colored)(str(tensor.device))
    return text
