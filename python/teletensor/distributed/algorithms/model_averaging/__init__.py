"""Averages of the ranks' parameters, for training in which gradients are not averaged in every step."""

from .averagers import ModelAverager, PeriodicModelAverager
from .hierarchical_model_averager import HierarchicalModelAverager

__all__ = ["HierarchicalModelAverager", "ModelAverager", "PeriodicModelAverager"]
