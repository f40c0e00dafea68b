"""torch.ao.nn.quantized: FloatFunctional works; modules with quantized weights are not implemented yet."""

from __future__ import annotations

from typing import Any

from ... import _C
from ..._C import Tensor
from ..._not_implemented import not_implemented
from ...nn import Identity, Module


class FloatFunctional(Module):
    """Operators as methods, whose results an observer may see as ``activation_post_process``."""

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x: Any) -> Any:
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y."""
        return self.activation_post_process(_C.torch.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """x + y. It is not observed."""
        return x + y

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """x * y."""
        return self.activation_post_process(_C.torch.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """x * y. It is not observed."""
        return x * y

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """torch.cat."""
        return self.activation_post_process(_C.torch.cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """relu(x + y)."""
        return self.activation_post_process((x + y).relu())

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """x @ y."""
        return self.activation_post_process(_C.torch.matmul(x, y))


not_implemented(
    globals(), "there are no quantized dtypes yet; observers and FakeQuantize modules simulate a quantization",
    classes="BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d DeQuantize Dropout ELU "
    "Embedding EmbeddingBag FXFloatFunctional GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm "
    "LeakyReLU Linear LSTM MaxPool2d MultiheadAttention PReLU QFunctional Quantize ReLU6 Sigmoid Softmax",
)  # fmt: skip
