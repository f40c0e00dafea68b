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
    """Scores frequent classes in a head, and rarer classes in clusters with increasingly small projections.

    Every cluster is computed for every row, so that no size depends on data and calls do not wait for the engine.
    """

    def __init__(self, in_features, n_classes, cutoffs, div_value=4.0, head_bias=False, device=None, dtype=None):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        is_sorted = cutoffs == sorted(set(cutoffs)) and all(int(c) == c for c in cutoffs)
        if not is_sorted or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
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

    def reset_parameters(self) -> None:
        """Draws new values for all weights."""
        for layer in (self.head, *(layer for cluster in self.tail for layer in cluster)):
            layer.reset_parameters()

    def _get_full_log_prob(self, input, head_output):
        head = F.log_softmax(head_output, 1)
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            parts.append(F.log_softmax(cluster(input), 1) + head[:, self.shortlist_size + i].unsqueeze(1))
        return _C.torch.cat(parts, 1)

    def log_prob(self, input):
        """The log probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def forward(self, input_, target_):
        """Returns (log likelihood of each row's target, mean loss)."""
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, but found inputs with size {input_.size()}"
            )
        if target_.dim() == 1 and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        rows, classes = (input_, target_) if input_.dim() == 2 else (input_.unsqueeze(0), target_.unsqueeze(0))
        output = self.log_prob(rows).gather(1, classes.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return _ASMoutput(output if input_.dim() == 2 else output.squeeze(0), loss)

    def predict(self, input):
        """The most likely class of each row."""
        return self.log_prob(input).argmax(1)
