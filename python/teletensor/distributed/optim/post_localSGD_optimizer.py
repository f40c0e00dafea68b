"""PostLocalSGDOptimizer: an optimizer that averages the ranks' parameters after its steps."""

from __future__ import annotations

import warnings
from typing import Any

from ...optim import Optimizer
from ..algorithms.model_averaging.averagers import ModelAverager

__all__ = ["PostLocalSGDOptimizer"]


class PostLocalSGDOptimizer(Optimizer):
    """Runs an optimizer's step on this rank, and then an averager, which averages the parameters in some of the steps.

    Source: T. Lin et al., "Don't Use Large Mini-batches, Use Local SGD", ICLR 2020.
    """

    def __init__(self, optim: Optimizer, averager: ModelAverager):
        self.optim, self.averager = optim, averager
        self.param_groups = optim.param_groups

    @property
    def state(self) -> Any:
        """The optimizer's state."""
        return self.optim.state

    def __repr__(self) -> str:
        return repr(self.optim)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state dict, and the averager's step as ``step``."""
        return {**self.optim.state_dict(), "step": self.averager.step}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the optimizer and the averager's step, which becomes 0 with a warning if the dict does not have it."""
        self.optim.load_state_dict({key: value for key, value in state_dict.items() if key != "step"})
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.", stacklevel=2
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self) -> None:
        """Performs a step of the optimizer, and averages the parameters if the averager's period has passed."""
        self.optim.step()
        self.averager.average_parameters(params=self.param_groups)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters to the optimizer."""
        self.optim.add_param_group(param_group)
