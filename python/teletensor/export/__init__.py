"""torch.export: programs of modules, as fx graphs of operators."""

from __future__ import annotations

from ..utils._pytree import register_dataclass as _register
import sys

from .._lazy import keep_functions, lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_archive": "load save",
    "_draft_export": "draft_export",
    "_export": "export",
    "dynamic_shapes": "AdditionalInputs Constraint Dim ShapesCollection dims",
    "exported_program": (
        "CustomDecompTable ExportedProgram ModuleCallEntry ModuleCallSignature "
        "default_decompositions"
    ),
    "graph_signature": "ExportBackwardSignature ExportGraphSignature",
    "unflatten": "FlatArgsAdapter UnflattenedModule unflatten",
}
__getattr__, __dir__ = lazy_attributes(globals(), ("dynamic_shapes", "exported_program", "graph_signature"), _NAMES)
keep_functions(sys.modules[__name__], "unflatten")

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
    from ._export import export

    return export(mod, args, kwargs, dynamic_shapes=dynamic_shapes, strict=strict)
