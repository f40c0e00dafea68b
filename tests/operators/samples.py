"""The declared samples of operators as NumPy values, and calls with them."""

from __future__ import annotations

import functools
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from engine.codegen.declaration import Operator, load  # noqa: E402
from engine.codegen.reference import takes_device  # noqa: E402, F401

# Operators that the CPU alone has: torch.linalg.ldl_* copy a GPU's tensors to it, and back; passes write
# fused_convolution and fused_linear for the CPU only. There grid_sample, pad_edges and max_pool2d are composed of other operators.
CPU_ONLY = {
    "fused_convolution", "fused_linear", "grid_sample_values", "grid_tap_index", "grid_tap_weight", "ldl_factored", "ldl_solved",
    "max_pool_values", "pad_edges_backward", "pad_edges_forward",
}  # fmt: skip
OPERATORS = load(ROOT / "engine/ops")
NUMPY_DTYPES = {"bfloat16": "float32"}


@functools.cache
def _namespace() -> dict:
    """The namespace of references. SciPy is imported on first use, since GPU tests run without it."""
    import scipy.special

    from tests.operators import references, sparse_references

    return {"np": np, "sp": scipy, "ref": references, "sparse": sparse_references}


def _array(spec, rng: np.random.Generator) -> np.ndarray:
    """A tensor declaration as an array: sizes, or a map (docs/operators.md)."""
    if isinstance(spec, list):
        return np.asarray(rng.standard_normal(spec))
    if "values" in spec:
        array = np.asarray(spec["values"])
        natural = "float64" if array.dtype == np.float64 or not array.size else array.dtype
        return array.astype(spec.get("dtype", natural))
    size = spec["size"]
    if "int" in spec:
        low, high = spec["int"]
        return np.asarray(rng.integers(low, high, size)).astype(spec.get("dtype", "float64"))
    if "low" in spec:
        return np.asarray(rng.uniform(spec["low"], spec["high"], size)).astype(spec.get("dtype", "float64"))
    drawn = np.asarray(rng.standard_normal(size))
    if spec.get("dtype", "").startswith("complex"):
        drawn = np.asarray(drawn + 1j * rng.standard_normal(size))
    return drawn.astype(spec.get("dtype", "float64"))


def _is_tensor_spec(param, value) -> bool:
    return param.is_tensor and isinstance(value, (list, dict))


@dataclass
class Sample:
    """One call of an operator: values by parameter; tensors are arrays."""

    operator: Operator
    index: int
    values: dict

    def __str__(self) -> str:
        return f"{self.operator.name}-{self.index}"

    @property
    def floating(self) -> list[str]:
        """The tensor parameters with floating-point elements."""
        return [k for k, v in self.values.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f"]

    @property
    def complex(self) -> list[str]:
        """The tensor parameters with complex elements."""
        return [k for k, v in self.values.items() if isinstance(v, np.ndarray) and v.dtype.kind == "c"]

    def reference(self) -> object:
        """The value of `ref`; None if there is no reference."""
        ref = self.operator.entry["ref"]
        if ref.startswith("none:"):
            return None
        names = {p.name: p.default for p in self.operator.params} | self.values
        return eval(ref, {**_namespace(), **names})  # noqa: S307 - our own declarations


def _spec_values(operator: Operator, spec) -> dict:
    tensors = [p for p in operator.params if p.is_tensor]
    params = {p.name: p for p in operator.params}
    if not isinstance(spec, dict) or not set(spec) <= set(params):
        if not tensors:
            return dict(spec)
        spec = {tensors[0].name: spec}  # the short form
    return spec


def materialise(operator: Operator, index: int, spec) -> Sample:
    """A declared sample with random values, the same in every run."""
    rng = np.random.default_rng(zlib.crc32(f"{operator.name}:{index}".encode()))
    params = {p.name: p for p in operator.params}
    values = {}
    for name, value in _spec_values(operator, spec).items():
        param = params[name]
        if _is_tensor_spec(param, value):
            values[name] = _array(value, rng)
        elif param.is_tensor_list:
            values[name] = [None if v is None else _array(v, rng) for v in value]
        else:
            values[name] = value
    return Sample(operator, index, values)


SAMPLES = [materialise(op, i, s) for op in OPERATORS for i, s in enumerate(op.entry["samples"] or [])]


def tensor(torch, array: np.ndarray, dtype=None, requires_grad: bool = False, device: str = "cpu"):
    """The array as a tensor, optionally converted to another dtype."""
    t = torch.tensor(np.ascontiguousarray(array).reshape(array.shape), device=device)
    if dtype is not None:
        t = t.to(dtype)
    return t.requires_grad_() if requires_grad else t


def arguments(torch, sample: Sample, convert, device: str = "cpu") -> dict:
    """Keyword arguments of a call: `convert(name, array)` makes the tensors; `device` is for creation operators."""
    result = {}
    params = sample.operator.params
    if device != "cpu" and not any(p.is_tensor for p in params) and any(p.type == "Device" for p in params):
        result["device"] = device
    for param in sample.operator.params:
        if param.name not in sample.values:
            continue
        value = sample.values[param.name]
        if isinstance(value, np.ndarray):
            value = convert(param.name, value)
        elif param.is_tensor_list:
            value = [None if v is None else convert(param.name, v) for v in value]
        elif param.type == "DType" and isinstance(value, str):
            value = getattr(torch, value)
        result[param.name] = value
    return result


def call(torch, sample: Sample, kwargs: dict) -> list:
    """Calls the operator; returns its results as a list."""
    from teletensor import _C

    order = [kwargs[p.name] for p in sample.operator.params if p.name in kwargs and not p.keyword_only]
    positional = 0
    for p in sample.operator.params:  # leading parameters are passed by position
        if p.name not in kwargs or p.keyword_only:
            break
        positional += 1
    names = [p.name for p in sample.operator.params][positional:]
    rest = {n: kwargs[n] for n in names if n in kwargs}
    result = getattr(_C.ops, sample.operator.name)(*order[:positional], **rest)
    if result is None:
        return []
    return list(result) if isinstance(result, (tuple, list)) else [result]


def as_list(reference) -> list:
    """A reference's value as a list of arrays."""
    return [np.asarray(r) for r in reference] if isinstance(reference, (tuple, list)) else [np.asarray(reference)]


def values(t) -> np.ndarray:
    """A tensor's values; dtypes that NumPy lacks as float32."""
    t = t.detach()
    return (t.float() if repr(t.dtype) in ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2") else t).numpy(force=True)
