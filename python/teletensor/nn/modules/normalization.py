"""Normalisation layers."""

from __future__ import annotations

import warnings

from ... import _C, _default_group
from ..._integers import repeated
from ..._lazy import set_module
from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._sync_batch_norm import sync_batch_norm
from .module import Module

_shape_t = int | list[int] | _C.Size  # for annotations

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _BatchNorm(Module):
    """The common base of batch norms (Ioffe and Szegedy, "Batch normalization", 2015)."""

    _version = 2  # version 2 added num_batches_tracked
    dims: tuple[int, ...]

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, device=None, dtype=None, *, bias: bool = True,
    ):  # fmt: skip
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        make = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(_C.torch.empty(num_features, **make)) if affine else None)
        self.register_parameter("bias", Parameter(_C.torch.empty(num_features, **make)) if affine and bias else None)
        tracked = track_running_stats
        self.register_buffer("running_mean", _C.torch.empty(num_features, **make) if tracked else None)
        self.register_buffer("running_var", _C.torch.empty(num_features, **make) if tracked else None)
        count = _C.tensor(0, dtype=_C.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Resets the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the running statistics and the weights."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input) -> None:
        if input.dim() not in self.dims:
            raise ValueError(f"expected {' or '.join(f'{d}D' for d in self.dims)} input (got {input.dim()}D input)")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *lists) -> None:
        if self.track_running_stats and (local_metadata.get("version") or 0) < 2:
            count = self.num_batches_tracked
            state_dict.setdefault(
                f"{prefix}num_batches_tracked", _C.tensor(0, dtype=_C.int64) if count is None else count
            )
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *lists)

    def forward(self, input):
        self._check_input_dim(input)
        momentum = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # cumulative mean; reading the count waits for the engine
                momentum = 1.0 / float(self.num_batches_tracked)
        batch = self.training or self.running_mean is None
        update = self.training and self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if update or not batch else None, self.running_var if update or not batch else None,
            self.weight, self.bias, batch, 0.0 if momentum is None else momentum, self.eps,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch norm (Ioffe and Szegedy, "Batch normalization", 2015) over (N, C) or (N, C, L).

    The output is (input - mean) / sqrt(variance + eps) * weight + bias.

    In training, mean and biased variance of each channel are those of the batch, and running averages follow them; in
    evaluation they are the running averages.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the part of the batch in new running averages; None: averages over all batches.
        affine: whether there are a learned weight and bias per channel.
        track_running_stats: whether to keep running averages; False: evaluation uses those of the batch, too.
        device, dtype: of the parameters.

    Raises:
        ValueError: an input has another number of dimensions, or a batch in training has one element per channel.
        RuntimeError: an input has another number of channels.

    >>> norm = torch.nn.BatchNorm1d(2)
    >>> norm(torch.arange(8.0).reshape(4, 2)).mean().abs().item() < 1e-6, norm.num_batches_tracked.item()
    (True, 1)
    """

    dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm (Ioffe and Szegedy, "Batch normalization", 2015) over (N, C, H, W).

    The output is (input - mean) / sqrt(variance + eps) * weight + bias.

    In training, mean and biased variance of each channel are those of the batch, and running averages follow them; in
    evaluation they are the running averages.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the part of the batch in new running averages; None: averages over all batches.
        affine: whether there are a learned weight and bias per channel.
        track_running_stats: whether to keep running averages; False: evaluation uses those of the batch, too.
        device, dtype: of the parameters.

    Raises:
        ValueError: an input has another number of dimensions, or a batch in training has one element per channel.
        RuntimeError: an input has another number of channels.

    >>> norm = torch.nn.BatchNorm2d(2)
    >>> norm(torch.arange(8.0).reshape(2, 2, 2, 1)).mean().abs().item() < 1e-6, norm.num_batches_tracked.item()
    (True, 1)
    """

    dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm (Ioffe and Szegedy, "Batch normalization", 2015) over (N, C, D, H, W).

    The output is (input - mean) / sqrt(variance + eps) * weight + bias.

    In training, mean and biased variance of each channel are those of the batch, and running averages follow them; in
    evaluation they are the running averages.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the part of the batch in new running averages; None: averages over all batches.
        affine: whether there are a learned weight and bias per channel.
        track_running_stats: whether to keep running averages; False: evaluation uses those of the batch, too.
        device, dtype: of the parameters.

    Raises:
        ValueError: an input has another number of dimensions, or a batch in training has one element per channel.
        RuntimeError: an input has another number of channels.

    >>> norm = torch.nn.BatchNorm3d(2)
    >>> norm(torch.arange(8.0).reshape(2, 2, 2, 1, 1)).mean().abs().item() < 1e-6, norm.num_batches_tracked.item()
    (True, 1)
    """

    dims = (5,)


_NormBase = _BatchNorm


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all ranks of a process group.

    In training, all ranks of the group must run the forward and the backward pass. Without a process group, and in
    evaluation, the same as a batch norm.

    Args:
        process_group: by default the default group.
    """

    dims = (2, 3, 4, 5)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
        track_running_stats: bool = True, process_group=None, device=None, dtype=None, *, bias: bool = True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def forward(self, input):
        batch = self.training or self.running_mean is None
        group = self.process_group or (_default_group.find() if batch and self.training else None)
        if not batch or not self.training or group is None or group.size() == 1:
            return super().forward(input)
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.shape[1] == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")
        momentum = self.momentum
        if self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if momentum is None:  # cumulative mean; reading the count waits for the engine
                momentum = 1.0 / float(self.num_batches_tracked)
        return sync_batch_norm(
            input, self.weight, self.bias, self.running_mean if self.track_running_stats else None,
            self.running_var if self.track_running_stats else None, self.eps, 0.0 if momentum is None else momentum, group,
        )  # fmt: skip

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group=None) -> Module:
        """Replaces every batch norm of the module by a SyncBatchNorm that shares the weights and statistics."""
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, (_InstanceNorm, cls)):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            result._parameters.update(module._parameters)
            result._buffers.update(module._buffers)
            result.training = module.training
        for name, child in list(module.named_children()):
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_BatchNorm):
    """The common base of instance norms (Ulyanov et al., "Instance normalization", 2016)."""

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device=None, dtype=None, *, bias: bool = True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self.dims[0]

    def _handle_no_batch_input(self, input):
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)

    def _apply_instance_norm(self, input):
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats, self.momentum or 0.0, self.eps,
        )  # fmt: skip

    def forward(self, input):
        self._check_input_dim(input)
        if input.dim() == self._get_no_batch_dim():
            return self._handle_no_batch_input(input)
        return self._apply_instance_norm(input)

    def _check_input_dim(self, input) -> None:
        if input.dim() not in self.dims:
            raise ValueError(f"expected {' or '.join(f'{d}D' for d in self.dims)} input (got {input.dim()}D input)")
        channels = input.dim() + 1 - self.dims[-1]
        if input.shape[channels] == self.num_features:
            return
        if self.affine:
            raise ValueError(
                f"expected input's size at dim={channels} to match num_features ({self.num_features}), "
                f"but got: {input.shape[channels]}."
            )
        warnings.warn(
            f"input's size at dim={channels} does not match num_features. You can silence this warning by not passing in "
            "num_features, which is not used because affine=False",
            stacklevel=5,
        )


class InstanceNorm1d(_InstanceNorm):
    """Instance norm over (N, C, L) or (C, L)."""

    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance norm over (N, C, H, W) or (C, H, W): each channel of each sample is normalised with its own mean and variance.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the part of a batch in new running averages.
        affine: whether there are a learned weight and bias per channel.
        track_running_stats: whether evaluation uses running averages.
        device, dtype: of the parameters.

    Raises:
        ValueError: an input has another number of dimensions, one element per channel, or, with affine, other channels.

    >>> torch.nn.InstanceNorm2d(2)(torch.arange(8.0).reshape(1, 2, 2, 2))[0, 1].sum().abs().item() < 1e-5
    True
    """

    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance norm over (N, C, D, H, W) or (C, D, H, W)."""

    dims = (4, 5)


class LayerNorm(Module):
    """Layer norm (Ba et al., "Layer normalization", 2016) over the last dimensions.

    The output is (input - mean) / sqrt(variance + eps) * weight + bias.

    Args:
        normalized_shape: sizes of these dimensions, an int or several.
        eps: added to the biased variance.
        elementwise_affine: whether there are a learned weight and bias of this shape.
        bias: whether there is a bias.
        device, dtype: of the parameters.

    The input has shape (*, *normalized_shape), and so has the output.

    Raises:
        RuntimeError: the last dimensions of an input have other sizes.

    >>> torch.nn.LayerNorm(4)(torch.tensor([[1.0, 1.0, 3.0, 3.0]])).round().tolist()
    [[-1.0, -1.0, 1.0, 1.0]]
    """

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        shape = repeated(normalized_shape, 1)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        make = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(_C.torch.empty(shape, **make)) if elementwise_affine else None)
        affine = elementwise_affine and bias
        self.register_parameter("bias", Parameter(_C.torch.empty(shape, **make)) if affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """RMS norm (Zhang and Sennrich, "Root mean square layer normalization", 2019)."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        shape = repeated(normalized_shape, 1)
        self.normalized_shape, self.eps, self.elementwise_affine = shape, eps, elementwise_affine
        weight = Parameter(_C.torch.empty(*shape, device=device, dtype=dtype)) if elementwise_affine else None
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Group norm (Wu and He, "Group normalization", 2018).

    Channels are divided into groups, each with its own mean and variance per sample.

    Args:
        num_groups: must divide num_channels.
        num_channels: C of inputs (N, C, *).
        eps: added to the biased variance.
        affine: whether there are a learned weight and bias per channel.
        bias: whether there is a bias.
        device, dtype: of the parameters.

    Raises:
        ValueError: num_groups does not divide num_channels.
        RuntimeError: an input has another number of channels.

    >>> torch.nn.GroupNorm(2, 4)(torch.tensor([[1.0, 3.0, 5.0, 9.0]])).round().tolist()
    [[-1.0, 1.0, -1.0, 1.0]]
    """

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device=None, dtype=None, *,
        bias: bool = True,
    ):  # fmt: skip
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        make = {"device": device, "dtype": dtype}
        self.register_parameter("weight", Parameter(_C.torch.empty(num_channels, **make)) if affine else None)
        self.register_parameter("bias", Parameter(_C.torch.empty(num_channels, **make)) if affine and bias else None)
        self.reset_parameters()

    reset_parameters = LayerNorm.reset_parameters

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class LocalResponseNorm(Module):
    """Normalisation by the squares of neighbouring channels (Krizhevsky et al., 2012)."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """Local response norm of (N, C, H, W) over windows of 2 ceil(size / 2) - 1 channels, and channel 0 as in PyTorch; see
    docs/differences.md."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        half = int((self.size - 1) / 2 + 1)
        squares = input * input
        sums = squares.cumsum(1)
        ends = [min(c + half, input.shape[1]) - 1 for c in range(input.shape[1])]
        sums = sums[:, ends]
        if input.shape[1] > half + 1:  # channels that are not in the window any more; PyTorch's sums keep channel 0
            left = squares[:, 1 : input.shape[1] - half].cumsum(1)
            sums = _C.torch.cat([sums[:, : half + 1], sums[:, half + 1 :] - left], 1)
        return input * (sums * (self.alpha / self.size) + self.k) ** -self.beta

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


set_module("teletensor.nn.modules.batchnorm", BatchNorm1d, BatchNorm2d, BatchNorm3d, SyncBatchNorm)
set_module("teletensor.nn.modules.instancenorm", InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
