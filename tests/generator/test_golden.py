"""The generator's exact output for four small declarations.

To update golden/, run `python -m tests.generator.test_golden` and review the difference before committing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.codegen import (
    api,
    client_api,
    composites,
    gradients,
    kernels,
    python_bindings,
    python_tables,
    reference,
    schema,
    stubs,
)
from engine.codegen.declaration import load

FOLDER = Path(__file__).resolve().parent
GOLDEN = FOLDER / "golden"


def emitted() -> dict[str, str]:
    """Maps each golden file to the text generated from the declarations of ops/."""
    probes = load(FOLDER / "ops")
    return {
        "op_ids.h": schema.emit_ids(probes),
        "op_rules.cc": schema.emit_rules(probes),
        "op_table.cc": schema.emit_table(probes),
        "autocast_table.cc": schema.emit_autocast(probes),
        "ops.h": api.emit_header(probes),
        "ops.cc": api.emit_source(probes),
        "client_ops.cc": client_api.emit_source(probes),
        "register_composites.cc": composites.emit_composites(probes, []),
        "gradients.cc": gradients.emit_gradients(probes, [FOLDER / "formulas_of_probes.h"]),
        "operator_tables.cc": python_bindings.emit(probes),
        "kernels.h": kernels.emit_declarations(probes, "cpu"),
        "register_kernels.cc": kernels.emit_registration(probes, "cpu", "kCPU", {"find_extremes"}),
        "_declarations.py": python_tables.emit(probes),
        **{f"_C/{name}": text for name, text in stubs.emit(probes, "class Tensor:\n").items()},
        "operators.md": reference.emit(probes, {"cpu": {"scale", "scale_rows", "first_rows"}, "other": set()}),
    }


@pytest.mark.parametrize("name", sorted(emitted()))
def test_output_is_golden(name):
    assert emitted()[name] == (GOLDEN / f"{name}.golden").read_text()


def test_no_unused_golden_files():
    found = {str(path.relative_to(GOLDEN)) for path in GOLDEN.rglob("*.golden")}
    assert found == {f"{name}.golden" for name in emitted()}


if __name__ == "__main__":
    for name, text in emitted().items():
        (GOLDEN / f"{name}.golden").write_text(text)
