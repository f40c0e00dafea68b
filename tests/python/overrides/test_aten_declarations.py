"""The declarations of PyTorch's operators (aten_schemas.txt) contain the operators of engine/ops, with their parameters."""

from __future__ import annotations

from pathlib import Path

from engine.codegen.declaration import load
from engine.codegen.python_tables import aten_name
from teletensor._library import aten, dispatch

# Public operators that PyTorch composes of others, so that it has none of the name.
COMPOSED = {
    "adaptive_max_pool2d_with_indices", "affine_grid", "grid_sample", "logsigmoid", "softsign",
    "tanhshrink",
}  # fmt: skip
# Operators with the parameters of several overloads of PyTorch, of which a call gives those of one.
OTHER_PARAMETERS = {"cumulative_trapezoid", "tensor_split", "trapezoid"}


def public_operators():
    return [op for op in load(Path(__file__).resolve().parents[3] / "engine/ops") if op.python]


def overloads(op) -> list:
    packets = [aten.packet(name) for name in (aten_name(op), f"{aten_name(op)}_")]
    return [getattr(packet, name) for packet in packets if packet is not None for name in packet.overloads()]


def test_operators_have_pytorchs_names():
    assert {op.name for op in public_operators() if not overloads(op)} == COMPOSED


def test_parameters_are_those_of_an_overload():
    found = set()
    for op in public_operators():
        own = {name for name, _, _ in dispatch._parameters(op.name)}
        known = [{dispatch._name(a) for a in overload._schema.arguments} for overload in overloads(op)]
        if known and not any(own <= names for names in known):
            found.add(op.name)
    assert found == OTHER_PARAMETERS
