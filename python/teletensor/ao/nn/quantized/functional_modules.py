"""Operators as methods, so that their results can be observed and quantized."""

from __future__ import annotations

from typing import Any

from .... import _C, ops
from ...._C import Tensor
from ...._lazy import set_module
from ....nn import Identity, Module
from .utils import ScaledResult


class FXFloatFunctional(Module):
    """Operators as methods, for graphs, in which each operator is observed by itself."""

    def forward(self, x: Any) -> Any:
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def _observed(self, x: Tensor) -> Tensor:
        return x

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self._observed(_C.torch.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y. It is not observed."""
        return _C.torch.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self._observed(_C.torch.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y. It is not observed."""
        return _C.torch.mul(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """torch.cat."""
        return self._observed(_C.torch.cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)."""
        return self._observed(_C.torch.add(x, y).relu())

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self._observed(_C.torch.matmul(x, y))


class FloatFunctional(FXFloatFunctional):
    """Operators as methods, whose results an observer may see as ``activation_post_process``."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def _observed(self, x: Tensor) -> Tensor:
        return self.activation_post_process(x)


class QFunctional(ScaledResult):
    """Operators of quantized tensors as methods, whose results have this module's scale and zero point."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = Identity()

    def _get_name(self) -> str:
        return "QFunctional"

    def extra_repr(self) -> str:
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x: Any) -> Any:
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self.activation_post_process(ops.quantized.add(x, y, self.scale, self.zero_point))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y with the scale and a zero point that x's range determines."""
        return ops.quantized.add_scalar(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self.activation_post_process(ops.quantized.mul(x, y, self.scale, self.zero_point))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y with the scale and a zero point that x's range determines."""
        return ops.quantized.mul_scalar(x, y)

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """torch.cat."""
        return self.activation_post_process(ops.quantized.cat(x, dim, self.scale, self.zero_point))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)."""
        return self.activation_post_process(ops.quantized.add_relu(x, y, self.scale, self.zero_point))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return ops.quantized.matmul(x, y, self.scale, self.zero_point)

    @classmethod
    def from_float(cls, mod: FloatFunctional, use_precomputed_fake_quant: bool = False) -> QFunctional:
        """The quantized module of an observed FloatFunctional."""
        del use_precomputed_fake_quant
        if type(mod) is not FloatFunctional:
            raise AssertionError(f"QFunctional.from_float expects an instance of FloatFunctional, got {type(mod).__name__}")
        made = cls()
        made._take_scale(mod.activation_post_process)
        return made


set_module("teletensor.ao.nn.quantized.modules.functional_modules", FloatFunctional, FXFloatFunctional, QFunctional)
