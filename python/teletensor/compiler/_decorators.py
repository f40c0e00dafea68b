"""Decorators of torch.compiler, under the name of the package that offers them."""

from __future__ import annotations

from .._dynamo.decorators import allow_in_graph, assume_constant_result, disable, nonstrict_trace, substitute_in_graph

__all__ = ["allow_in_graph", "assume_constant_result", "disable", "nonstrict_trace", "substitute_in_graph"]
