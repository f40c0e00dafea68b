"""Losses: a table of functions and the arguments that their modules store."""

from __future__ import annotations

import inspect
import math
import warnings

from .. import functional as F
from .._reduction import resolve_reduction
from ._table import bound_arguments, functional_forward
from .distance import PairwiseDistance
from .linear import Linear
from .linear_cross_entropy_options import LinearCrossEntropyOptions
from .module import Module


class _Loss(Module):
    """The common base of losses: stores the reduction."""

    reduction: str

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__()
        self.reduction = resolve_reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """A loss with one weight per class."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


_OLD = {"size_average": None, "reduce": None, "reduction": "mean"}
_MARGIN = {"margin": 0.0, **_OLD}

# Maps module names to (function, arguments of the constructor in PyTorch's order).
_TABLE = {
    "L1Loss": ("l1_loss", _OLD),
    "MSELoss": ("mse_loss", _OLD),
    "SmoothL1Loss": ("smooth_l1_loss", {**_OLD, "beta": 1.0}),
    "HuberLoss": ("huber_loss", {"reduction": "mean", "delta": 1.0}),
    "KLDivLoss": ("kl_div", {**_OLD, "log_target": False}),
    "BCELoss": ("binary_cross_entropy", {"weight": None, **_OLD}),
    "BCEWithLogitsLoss": ("binary_cross_entropy_with_logits", {"weight": None, **_OLD, "pos_weight": None}),
    "NLLLoss": (
        "nll_loss", {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean"},
    ),
    "CrossEntropyLoss": ("cross_entropy", {
        "weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "mean",
        "label_smoothing": 0.0,
    }),
    "MarginRankingLoss": ("margin_ranking_loss", _MARGIN),
    "HingeEmbeddingLoss": ("hinge_embedding_loss", {"margin": 1.0, **_OLD}),
    "CosineEmbeddingLoss": ("cosine_embedding_loss", _MARGIN),
    "TripletMarginLoss": ("triplet_margin_loss", {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False, **_OLD}),
    "SoftMarginLoss": ("soft_margin_loss", _OLD),
    "PoissonNLLLoss": ("poisson_nll_loss", {
        "log_input": True, "full": False, "size_average": None, "eps": 1e-8, "reduce": None, "reduction": "mean",
    }),
    "MultiMarginLoss": ("multi_margin_loss", {"p": 1, "margin": 1.0, "weight": None, **_OLD}),
    "MultiLabelMarginLoss": ("multilabel_margin_loss", _OLD),
    "MultiLabelSoftMarginLoss": ("multilabel_soft_margin_loss", {"weight": None, **_OLD}),
    "GaussianNLLLoss": ("gaussian_nll_loss", {"full": False, "eps": 1e-6, "reduction": "mean"}),
}  # fmt: skip
__all__ = [  # noqa: F822 - imported at their first use
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PoissonNLLLoss",
    "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]  # fmt: skip

_BY_KEYWORD = ("GaussianNLLLoss",)

# The arguments of forward, if they are not (input, target).
_ARGUMENTS = {
    "MarginRankingLoss": ("input1", "input2", "target"), "CosineEmbeddingLoss": ("input1", "input2", "target"),
    "TripletMarginLoss": ("anchor", "positive", "negative"), "GaussianNLLLoss": ("input", "target", "var"),
    "PoissonNLLLoss": ("log_input", "target"),
}  # fmt: skip


_DOCS = {
    "MSELoss": """(input - target)^2.

Args:
    reduction: "none": the losses of all elements; "mean" or "sum" over them.
    size_average, reduce: PyTorch's older names of reduction.

Input and target have any shape, and should have the same.

>>> torch.nn.MSELoss()(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 1.0])).item()
2.0
""",
    "L1Loss": """|input - target|.

Args:
    reduction: "none": the losses of all elements; "mean" or "sum" over them.
    size_average, reduce: PyTorch's older names of reduction.

Input and target have any shape, and should have the same.

>>> torch.nn.L1Loss(reduction="sum")(torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])).item()
3.0
""",
    "CrossEntropyLoss": """The negative logarithm of the target class's probability, by softmax of logits.

Args:
    weight: (C,) a factor per class; "mean" divides by the sum of the targets' factors.
    ignore_index: a target that does not contribute.
    reduction: "none": the losses of all targets; "mean" or "sum" over them.
    label_smoothing: from 0 to 1, the part of each target that is divided among all classes.
    size_average, reduce: PyTorch's older names of reduction.

The input has shape (N, C), (C) or (N, C, *). The target has class indices of shape (N), () or (N, *), or probabilities of the
input's shape and of a floating-point dtype.

Raises:
    ValueError: the batches of input and target differ.
    RuntimeError: other sizes do not fit, or label_smoothing is not from 0 to 1.
    IndexError: a target is not a class. It is raised when the program next waits.

>>> torch.nn.CrossEntropyLoss()(torch.zeros(2, 4), torch.tensor([0, 3])).exp().round().item()
4.0
""",
    "BCEWithLogitsLoss": """The binary cross entropy of probabilities sigmoid(input): -(y log p + (1 - y) log(1 - p)).

Args:
    weight: a factor per element, which broadcasts.
    pos_weight: a factor of the first term, which broadcasts.
    reduction: "none": the losses of all elements; "mean" or "sum" over them.
    size_average, reduce: PyTorch's older names of reduction.

Input and target have the same shape; targets are from 0 to 1.

Raises:
    ValueError: the shapes differ.

>>> torch.nn.BCEWithLogitsLoss()(torch.tensor([100.0, -100.0]), torch.tensor([1.0, 0.0])).item() < 1e-6
True
""",
}


def _make(name: str, function: str, parameters: dict) -> type:
    signature, bind = bound_arguments(name, parameters, keywords_only=name in _BY_KEYWORD)
    kept = [p for p in parameters if p not in _OLD]

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        values = bind(args, kwargs)
        self.reduction = resolve_reduction(values.get("size_average"), values.get("reduce"), values["reduction"])
        if name == "MultiMarginLoss":
            _check_multi_margin(values["p"], values["weight"])
        if name == "TripletMarginLoss" and values["margin"] <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {values['margin']} instead")
        if name == "HuberLoss" and (isinstance(values["delta"], bool) or not isinstance(values["delta"], (int, float))):
            raise TypeError(f"delta must be a float or int, got: {type(values['delta'])}")
        for key in kept:
            if key in ("weight", "pos_weight"):
                self.register_buffer(key, values[key])
            else:
                setattr(self, key, values[key])

    __init__.__signature__ = signature.replace(
        parameters=[inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *signature.parameters.values()]
    )
    options = {key: f"self.{key}" for key in ("reduction", *kept)}
    forward = functional_forward(_ARGUMENTS.get(name, ("input", "target")), function, options, __name__)
    members = {"__init__": __init__, "forward": forward, "__module__": __name__}
    members["__doc__"] = _DOCS.get(name, f"The module of functional.{function}.")
    return type(name, (_WeightedLoss if "weight" in kept else _Loss,), members)


def _check_multi_margin(p, weight) -> None:
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")


globals().update({name: _make(name, *row) for name, row in _TABLE.items()})


class NLLLoss2d(globals()["NLLLoss"]):
    """The old name of NLLLoss."""

    def __init__(self, *args, **kwargs):
        warnings.warn(
            "NLLLoss2d has been deprecated. Please use NLLLoss instead as a drop-in replacement and see "
            "https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
            FutureWarning, stacklevel=2,
        )  # fmt: skip
        super().__init__(*args, **kwargs)


class CTCLoss(_Loss):
    """Connectionist temporal classification (Graves et al. 2006)."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class TripletMarginWithDistanceLoss(_Loss):
    """The triplet loss with a user-defined distance."""

    def __init__(self, *, distance_function=None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead")
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of a linear layer's outputs: (N, in_features) and targets (N, *out_features).

    Args:
        out_features: further dimensions of the outputs, for a loss with several targets per row.
        ignore_index: a target that does not contribute; None is -100.
        options: computes the logits for parts of the batch, to save memory; None computes all at once.
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False, device=None,
        dtype=None, reduction: str = "mean", weight=None, ignore_index: int | None = None, label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ):  # fmt: skip
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes, self.out_features, self.options = num_classes, out_features, options
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype)

    def forward(self, input, target):
        sizes, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*sizes, self.linear.in_features), target,
            linear_bias=None if bias is None else bias.reshape(sizes), weight=self.weight, reduction=self.reduction,
            ignore_index=self.ignore_index, label_smoothing=self.label_smoothing, options=self.options,
        )  # fmt: skip

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )
