"""torch.export: programs of modules, as fx graphs of operators."""

from __future__ import annotations

from ._archive import load, save
from ._export import draft_export, export
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature, default_decompositions
from .graph_signature import ExportBackwardSignature, ExportGraphSignature

__all__ = [
    "AdditionalInputs", "Constraint", "Dim", "ExportBackwardSignature", "ExportGraphSignature", "ExportedProgram", "ModuleCallEntry",
    "ModuleCallSignature", "ShapesCollection", "default_decompositions", "dims", "draft_export", "export", "load", "save",
]  # fmt: skip
