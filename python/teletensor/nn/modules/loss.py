"""Losses: a table of functions and the arguments that their modules keep."""

from __future__ import annotations

from .. import functional as F
from .module import Module

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
    "GaussianNLLLoss": (F.gaussian_nll_loss, {"full": False, "eps": 1e-6}),
}
__all__ = list(_TABLE)

# What PyTorch takes by position before `size_average`.
_LEADING = ("weight", "margin", "log_input", "full")


def _make(name: str, function, kept: dict) -> type:
    leading = [k for k in kept if k in _LEADING]
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
    return type(name, (Module,), members)


globals().update({name: _make(name, *row) for name, row in _TABLE.items()})
