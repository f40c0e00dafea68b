"""The common part of layers for training that include a batch norm."""

from __future__ import annotations

from typing import Any

from ..... import nn
from ....._C import Tensor
from .....nn import init

_OLD_NAMES = {
    "bn.weight": "gamma", "bn.bias": "beta", "bn.running_mean": "running_mean", "bn.running_var": "running_var",
    "bn.num_batches_tracked": "num_batches_tracked",
}  # fmt: skip


def per_channel(values: Tensor, weight: Tensor, axis: int) -> Tensor:
    """Values of channels with the shape that broadcasts over a dimension of the weight (0) or of the result (1)."""
    shape = [1] * weight.dim()
    shape[axis] = -1
    return values.reshape(shape)


class WithBatchNorm(nn.Module):
    """A layer whose batch norm is folded into the weight before the weight is rounded: a mix-in before the layer's class."""

    def _add_batch_norm(self, bn: nn.Module, freeze_bn: bool, qconfig: Any) -> None:
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.freeze_bn = freeze_bn if self.training else True
        self.bn = bn
        self.weight_fake_quant = qconfig.weight()
        self.reset_bn_parameters()
        if self.training and not freeze_bn:
            self.update_bn_stats()
        else:
            self.freeze_bn_stats()

    def reset_running_stats(self) -> None:
        """Discards the batch norm's averages."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self) -> None:
        """Initialises the batch norm."""
        self.bn.reset_running_stats()
        init.uniform_(self.bn.weight)
        init.zeros_(self.bn.bias)

    def update_bn_stats(self) -> nn.Module:
        """The batch norm uses and averages the statistics of batches."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self) -> nn.Module:
        """The batch norm uses its averages."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode: bool = True) -> nn.Module:
        """Sets the mode. A frozen batch norm stays in evaluation mode."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _scale(self) -> Tensor:
        """The batch norm's factor for each channel."""
        return self.bn.weight / (self.bn.running_var + self.bn.eps).sqrt()

    def _normalized(self, result: Tensor, scale: Tensor) -> Tensor:
        """The batch norm of the result of the layer with the scaled weight."""
        original = result / per_channel(scale, self.weight, 1)
        if self.bias is not None:
            original = original + per_channel(self.bias, self.weight, 1)
        return self.bn(original)

    def _take(self, layer: nn.Module, bn: nn.Module) -> None:
        """Shares the parameters of a layer and a batch norm."""
        self.weight, self.bias = layer.weight, layer.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(self.bn, name, getattr(bn, name))

    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, *args: Any) -> None:
        if local_metadata.get("version") in (None, 1):
            for new, old in _OLD_NAMES.items():
                if prefix + old in state_dict:
                    state_dict[prefix + new] = state_dict.pop(prefix + old)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)
