"""ExportableModule: a module with its own example arguments, names and dynamic sizes for an export."""

from __future__ import annotations

import abc
from typing import Any

from .._lazy import set_module
from ..nn import Module
from . import _state


class ExportableModule(Module, abc.ABC):
    """A module that torch.onnx.export(module) exports without further arguments.

    A subclass defines forward and example_arguments; the other methods have defaults.
    """

    @abc.abstractmethod
    def example_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any] | None]:
        """Arguments of forward: positional ones, and keyword arguments or None."""
        raise NotImplementedError

    def dynamic_shapes(self) -> Any:
        """The dynamic sizes, as in torch.onnx.export; None: all sizes are constant."""
        return None

    def input_names(self) -> Any:
        """Names of the model's inputs; None: those of forward's parameters."""
        return None

    def output_names(self) -> Any:
        """Names of the model's outputs; None: those of the graph's values."""
        return None

    def to_onnx(self, **kwargs: Any) -> Any:
        """torch.onnx.export(self, **kwargs)."""
        assert _state.export is not None  # torch.onnx loads the function with this class
        return _state.export(self, **kwargs)


set_module("teletensor.onnx", ExportableModule)
