"""Provides the names of torch.distributions.one_hot_categorical."""

from .categorical import OneHotCategorical, OneHotCategoricalStraightThrough

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]
