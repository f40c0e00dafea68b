"""The modules of a program, with the signatures of their calls that are known."""

from __future__ import annotations

from typing import Any

from .._C import Tensor
from ..fx.experimental._sizes import RecordedSize, value_of
from ..fx.node import Node
from ..nn import Module
from ._preserved import Call
from .exported_program import ModuleCallEntry, ModuleCallSignature
from .graph_signature import ConstantArgument, SymIntArgument, TensorArgument


def entries(module: Module, root: ModuleCallSignature, calls: list[Call]) -> list[ModuleCallEntry]:
    """The modules of a program with the signatures of the recorded calls; further calls have names with @1, @2 and so on."""
    known = {call.name: _signature(call) for call in calls}
    found = [ModuleCallEntry("", root), *(ModuleCallEntry(n, known.pop(n, None)) for n, _ in module.named_modules() if n)]
    return [*found, *(ModuleCallEntry(n, s) for n, s in known.items())]


def _signature(call: Call) -> ModuleCallSignature:
    return ModuleCallSignature([_argument(v) for v in call.inputs], [_argument(v) for v in call.outputs], call.in_spec, call.out_spec)


def _argument(value: Any) -> Any:
    if isinstance(value, Node):
        if value.graph is None or value._erased:
            raise NotImplementedError(f"[export] a signature with {value}, which is within a region of the graph")
        return TensorArgument(value.name) if isinstance(value.meta.get("val"), Tensor) else SymIntArgument(value.name)
    if isinstance(value, RecordedSize):
        raise NotImplementedError("[export] a dynamic size as an argument or a result of a module whose signature is preserved")
    return ConstantArgument("", value_of(value))
