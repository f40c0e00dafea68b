"""torch.export: programs of modules, as fx graphs of operators."""

from __future__ import annotations

from ..utils._pytree import register_dataclass as _register
from ._archive import load, save
from ._draft_export import draft_export
from ._export import export
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import CustomDecompTable, ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs", "Constraint", "CustomDecompTable", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram",
    "FlatArgsAdapter", "ModuleCallEntry", "ModuleCallSignature", "ShapesCollection", "UnflattenedModule", "default_decompositions",
    "dims", "draft_export", "export", "export_for_training", "load", "register_dataclass", "save", "unflatten",
]  # fmt: skip


def register_dataclass(cls: type, *, serialized_type_name: str | None = None) -> None:
    """Registers a dataclass, so that arguments and results of exported modules may contain its objects.

    Args:
        serialized_type_name: the class's name in files, without which programs with it cannot be saved.
    """
    _register(cls, serialized_type_name=serialized_type_name)


def export_for_training(mod, args: tuple, kwargs: dict | None = None, *, dynamic_shapes=None, strict: bool = False):
    """PyTorch's older name of export(), whose graphs are those for training: not yet decomposed.

    Args:
        mod, args, kwargs, dynamic_shapes, strict: as of export().
    """
    return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
