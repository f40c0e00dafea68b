"""torch.export: programs of modules. Importable; not implemented yet."""

from __future__ import annotations

from .._not_implemented import not_implemented

Constraint = object  # a type in annotations

not_implemented(
    globals(), "programs are not exported yet; torch.fx traces modules and torch.save stores state dicts",
    "default_decompositions dims draft_export export load register_dataclass save unflatten",
    "AdditionalInputs CustomDecompTable Dim ExportBackwardSignature ExportGraphSignature ExportedProgram FlatArgsAdapter "
    "ModuleCallEntry ModuleCallSignature ShapesCollection UnflattenedModule",
)  # fmt: skip
