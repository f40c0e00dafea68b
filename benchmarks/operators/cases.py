"""The cases to measure: pointwise operators from their declarations, all others from cases.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

SIZES = ("small", "cache", "large")
# Sizes of pointwise operators: 64 elements, 64 thousand (256 KB of float32), 4 million (16 MB).
_POINTWISE = {"small": [8, 8], "cache": [256, 256], "large": [2048, 2048]}


@dataclass(frozen=True)
class Case:
    """One operator at one shape. `call` is a Python expression of `torch`, `F`, `reduce` and the inputs' names."""

    name: str
    family: str
    size: str
    dtype: str
    call: str
    inputs: dict  # name -> [sizes], or {size: ..., low, high, int, dtype}

    @property
    def key(self) -> str:
        return f"{self.name} {self.dtype} {self.size}"


def from_table() -> list[Case]:
    """Returns the rows of cases.yaml, at each of their shapes and dtypes."""
    table = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text())
    cases = []
    for family, entry in table.items():
        for name, call in entry["calls"].items():
            for dtype in entry["dtypes"]:
                for size in SIZES:
                    inputs = {k: _scaled(v, entry["sizes"][size]) for k, v in entry["inputs"].items()}
                    cases.append(Case(name, family, size, dtype, call, inputs))
    return cases


def _scaled(given, sizes: dict):
    """Returns an input's sizes with letters replaced by the numbers of the size class."""
    shape = [sizes.get(n, n) if isinstance(n, str) else n for n in (given["size"] if isinstance(given, dict) else given)]
    if not isinstance(given, dict):
        return shape
    limits = [sizes.get(n, n) if isinstance(n, str) else n for n in given["int"]] if "int" in given else None
    return {**given, "size": shape, **({"int": limits} if limits else {})}


def from_declarations() -> list[Case]:
    """Returns cases of every pointwise operator that Python exposes, with values in the range of its first sample."""
    from engine.codegen.declaration import load

    cases = []
    for op in load(Path(__file__).resolve().parents[2] / "engine/ops"):
        if not op.is_pointwise or op.is_inplace_only or op.is_random or not op.python or "overload_of" in op.entry:
            continue
        for dtype in _dtypes(op):
            for size in SIZES:
                inputs, arguments = _arguments(op, size)
                if inputs:
                    cases.append(Case(op.name, "pointwise", size, dtype, f"{_path(op)}({', '.join(arguments)})", inputs))
    return cases


def _path(op) -> str:
    if "torch" in op.python:
        return f"torch.{op.name}"
    place = op.python[0]
    if place in ("special", "linalg", "fft"):
        return f"torch.{place}.{op.name.removeprefix(place + '_')}"
    return f"F.{op.name}" if place == "F" else f"torch.Tensor.{op.name}"


def _dtypes(op) -> list[str]:
    """Returns the two dtypes to measure.

    These are int64 and int32 for integer-only operators; otherwise float32 and bfloat16, or float64 if the operator does
    not support bfloat16.
    """
    rule = str(op.entry.get("dtype", ""))
    if rule.startswith(("integral", "shiftable")):
        return ["int64", "int32"]
    taken = op.entry.get("dtypes", ["bfloat16"])
    return ["float32", "bfloat16" if "bfloat16" in taken else "float64"]


def _arguments(op, size: str) -> tuple[dict, list[str]]:
    """Returns (inputs by name, the call's arguments)."""
    first = next(iter(op.entry["samples"]), {})
    if isinstance(first, list):
        first = {}
    sample = first if isinstance(first, dict) and "size" not in first and "values" not in first else {op.params[0].name: first}
    inputs, arguments = {}, []
    for p in op.params:
        given = sample.get(p.name)
        if p.is_tensor and isinstance(given, (int, float)) and arguments:
            arguments.append(repr(given) if not p.keyword_only else f"{p.name}={given!r}")
        elif p.is_tensor and not (given is None and p.optional):
            limits = {k: given[k] for k in ("low", "high", "int", "dtype") if isinstance(given, dict) and k in given}
            zero_dim = isinstance(given, list) and not given or isinstance(given, dict) and given.get("size", [1]) == []
            inputs[p.name] = {"size": [] if zero_dim and arguments else _POINTWISE[size], **limits}
            arguments.append(p.name if not p.keyword_only else f"{p.name}={p.name}")
        elif given is not None and not p.is_tensor:
            arguments.append(repr(given) if not p.keyword_only else f"{p.name}={given!r}")
        elif not p.keyword_only and not p.has_default and not p.optional:
            return {}, []
        elif not p.keyword_only:
            break
    return inputs, arguments


def all_cases() -> list[Case]:
    """Returns all cases, grouped by family."""
    return from_declarations() + from_table()
