"""torch.onnx.verification: compares a model's results in onnxruntime with those of the program."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from .. import _C
from .._C import Tensor
from .._functions import tensor
from .._grad_mode import no_grad
from ..utils import _pytree as pytree

__all__ = ["VerificationInfo", "verify_onnx_program"]


@dataclasses.dataclass
class VerificationInfo:
    """The differences of one value.

    Attributes:
        name: of the output.
        max_abs_diff, max_rel_diff: the largest difference, and the largest one relative to the expected value.
        abs_diff_hist, rel_diff_hist: numbers of elements by difference, and the bounds of the bins.
        expected_dtype, actual_dtype: of the program's and of onnxruntime's result.
    """

    name: str
    max_abs_diff: float
    max_rel_diff: float
    abs_diff_hist: tuple[Tensor, Tensor]
    rel_diff_hist: tuple[Tensor, Tensor]
    expected_dtype: Any
    actual_dtype: Any

    @classmethod
    def from_tensors(cls, name: str, expected: Any, actual: Any) -> VerificationInfo:
        """Compares two tensors."""
        expected, actual = (t if isinstance(t, Tensor) else tensor(t) for t in (expected, actual))
        a, b = expected.detach().to(_C.float64), actual.detach().to(_C.float64)
        both = (a == b) | (a.isnan() & b.isnan())
        distance = _C.torch.where(both, _C.torch.zeros_like(a), (a - b).abs())
        relative = distance / a.abs().clamp(min=1e-7)
        return cls(
            name, _largest(distance), _largest(relative), _histogram(distance), _histogram(relative), expected.dtype, actual.dtype,
        )  # fmt: skip

    def asdict(self) -> dict[str, Any]:
        """The values as a dict of lists, numbers and strings."""
        found = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for key in ("abs_diff_hist", "rel_diff_hist"):
            found[key] = [t.tolist() for t in found[key]]
        found["expected_dtype"], found["actual_dtype"] = str(self.expected_dtype), str(self.actual_dtype)
        return found


def _largest(x: Tensor) -> float:
    if x.numel() == 0:
        return 0.0
    value = float(x.max())
    return math.inf if math.isnan(value) else value


def _histogram(x: Tensor) -> tuple[Tensor, Tensor]:
    bounds = tensor([0.0, *(10.0**e for e in range(-6, 2)), 1e6], dtype=_C.float64)
    values = x.reshape(-1)
    counts = [
        int(((values >= low) & (values < high)).sum()) for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist())
    ]
    return tensor(counts, dtype=_C.float32), bounds.to(_C.float32)


def verify_onnx_program(
    onnx_program: Any, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None, compare_intermediates: bool = False,
) -> list[VerificationInfo]:  # fmt: skip
    """Compares the results of a model in onnxruntime with those of the program it was made from.

    Args:
        args, kwargs: arguments; those of the export if None.
        compare_intermediates: raises NotImplementedError.

    Raises:
        ValueError: there are no arguments.
    """
    if compare_intermediates:
        raise NotImplementedError(
            "[verify_onnx_program] compare_intermediates; ONNXProgram.compute_values() returns values by name"
        )
    program = onnx_program.exported_program
    if program is None:
        raise ValueError("[verify_onnx_program] expected a program with an exported_program")
    if args is None:
        if program.example_inputs is None:
            raise ValueError("[verify_onnx_program] expected args, or a program with example_inputs")
        args, kwargs = program.example_inputs
    with no_grad():
        expected = [v for v in pytree.tree_leaves(program.module()(*args, **(kwargs or {}))) if v is not None]
    actual = onnx_program(*args, **(kwargs or {}))
    names = [o.name for o in onnx_program._structure().graph.output]
    return [VerificationInfo.from_tensors(n, e, a) for n, e, a in zip(names, expected, actual, strict=True)]
