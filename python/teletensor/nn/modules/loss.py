"""Losses: a table of functions and the arguments that their modules keep."""

from __future__ import annotations

from .. import functional as F
from .module import Module


class _Loss(Module):
    """What losses share: a reduction."""

    reduction: str

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__()
        self.reduction = F._legacy_reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    """A loss with a weight for each class."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


_COMMON = {"size_average": None, "reduce": None, "reduction": "mean"}

# module -> (function, arguments it keeps)
_TABLE = {
    "L1Loss": (F.l1_loss, {}),
    "MSELoss": (F.mse_loss, {}),
    "SmoothL1Loss": (F.smooth_l1_loss, {"beta": 1.0}),
    "HuberLoss": (F.huber_loss, {"delta": 1.0}),
    "KLDivLoss": (F.kl_div, {"log_target": False}),
    "BCELoss": (F.binary_cross_entropy, {"weight": None}),
    "BCEWithLogitsLoss": (F.binary_cross_entropy_with_logits, {"weight": None, "pos_weight": None}),
    "NLLLoss": (F.nll_loss, {"weight": None, "ignore_index": -100}),
    "CrossEntropyLoss": (F.cross_entropy, {"weight": None, "ignore_index": -100, "label_smoothing": 0.0}),
    "MarginRankingLoss": (F.margin_ranking_loss, {"margin": 0.0}),
    "HingeEmbeddingLoss": (F.hinge_embedding_loss, {"margin": 1.0}),
    "CosineEmbeddingLoss": (F.cosine_embedding_loss, {"margin": 0.0}),
    "TripletMarginLoss": (F.triplet_margin_loss, {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False}),
    "SoftMarginLoss": (F.soft_margin_loss, {}),
    "PoissonNLLLoss": (F.poisson_nll_loss, {"log_input": True, "full": False, "eps": 1e-8}),
    "MultiMarginLoss": (F.multi_margin_loss, {"p": 1, "margin": 1.0, "weight": None}),
    "MultiLabelMarginLoss": (F.multilabel_margin_loss, {}),
    "MultiLabelSoftMarginLoss": (F.multilabel_soft_margin_loss, {"weight": None}),
    "GaussianNLLLoss": (F.gaussian_nll_loss, {"full": False, "eps": 1e-6}),
}
__all__ = [*_TABLE, "CTCLoss", "NLLLoss2d", "TripletMarginWithDistanceLoss"]

# What PyTorch takes by position before `size_average`.
_LEADING = ("p", "weight", "margin", "log_input", "full")


def _make(name: str, function, kept: dict) -> type:
    leading = list(kept) if "swap" in kept else [k for k in kept if k in _LEADING]
    order = [*leading, "size_average", *[k for k in kept if k not in leading], "reduce", "reduction"]

    def __init__(self, *args, **kwargs):
        Module.__init__(self)
        values = {**_COMMON, **kept, **dict(zip(order, args)), **kwargs}
        unknown = [k for k in values if k not in kept and k not in _COMMON]
        if unknown:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument {unknown[0]!r}")
        self.reduction = F._legacy_reduction(values["size_average"], values["reduce"], values["reduction"])
        for key in kept:
            if key in ("weight", "pos_weight"):
                self.register_buffer(key, values[key])
            else:
                setattr(self, key, values[key])

    def forward(self, *tensors):
        return function(*tensors, reduction=self.reduction, **{key: getattr(self, key) for key in kept})

    members = {"__init__": __init__, "forward": forward, "__module__": __name__}
    members["__doc__"] = f"The module of functional.{getattr(function, '__name__', name)}."
    return type(name, (_WeightedLoss if "weight" in kept else _Loss,), members)


globals().update({name: _make(name, *row) for name, row in _TABLE.items()})
NLLLoss2d = globals()["NLLLoss"]  # its old name


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
    """The triplet loss with a distance of one's own."""

    def __init__(self, *, distance_function=None, margin: float = 1.0, swap: bool = False, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        self.distance_function, self.margin, self.swap = distance_function, margin, swap

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )  # fmt: skip
