"""Adaptive softmax (Grave et al., "Efficient softmax approximation for GPUs", 2017)."""

from __future__ import annotations

from collections import namedtuple

from ... import _C
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Computes frequent classes in a head, and rarer classes in clusters with increasingly small projections.

    Every cluster is computed for every row, so that no size depends on data and calls do not wait for the engine.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs or cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
                "is between 1 and n_classes-1"
            )
        self.in_features, self.n_classes, self.cutoffs = in_features, n_classes, [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        make = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **make)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, **make), Linear(hidden, size, bias=False, **make)))

    def log_prob(self, input):
        """The log probabilities of all classes."""
        head = F.log_softmax(self.head(input), 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), 1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return _C.torch.cat(parts, 1)

    def forward(self, input, target):
        """Returns (log likelihood of each row's target, mean loss)."""
        rows, classes = (input, target) if input.dim() == 2 else (input.unsqueeze(0), target.unsqueeze(0))
        output = self.log_prob(rows).gather(1, classes.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return _ASMoutput(output if input.dim() == 2 else output.squeeze(0), loss)

    def predict(self, input):
        """The most likely class of each row."""
        return self.log_prob(input).argmax(1)
