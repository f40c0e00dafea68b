"""`python -m engine.codegen --ops engine/ops --kernels kernels --out build/generated`: writes changed files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import (
    aliases,
    api,
    body_code,
    client_api,
    client_tensor,
    composites,
    gradients,
    kernels,
    pointwise,
    python_bindings,
    python_tables,
    reference,
    schema,
    stubs,
)
from .declaration import load
from .signature import DeclarationError


def outputs(operators, kernels_folder: Path) -> dict[str, str]:
    """Maps paths in the generated tree to file contents."""
    files = {
        "engine/schema/op_ids.h": schema.emit_ids(operators),
        "engine/program/may_return_views.h": aliases.emit(operators),
        "engine/schema/op_rules.cc": schema.emit_rules(operators),
        "engine/schema/op_table.cc": schema.emit_table(operators),
        "engine/schema/autocast_table.cc": schema.emit_autocast(operators),
        "engine/dispatch/ops.h": api.emit_header(operators),
        "engine/dispatch/ops.cc": api.emit_source(operators),
        "engine/composites/register_composites.cc": composites.emit_composites(operators, sorted(Path("engine/composites").glob("*.h"))),
        "autograd/gradients.cc": gradients.emit_gradients(operators, sorted(Path("autograd/formulas").glob("formulas*.h"))),
        "teletensor/ops.h": client_api.emit_header(operators),
        "teletensor/ops.cc": client_api.emit_source(operators),
        "python/operator_tables.cc": python_bindings.emit(operators),
        "package/_declarations.py": python_tables.emit(operators),
        "kernels/cpu/kernels.h": kernels.emit_declarations(operators, "cpu"),
        "kernels/cpu/register_kernels.cc": kernels.emit_registration(
            operators, "cpu", "kCPU", kernels.defined_kernels(kernels_folder, "cpu")
        ),
        "kernels/cpu/compiled_bodies.cc": body_code.emit(operators),
        "kernels/cuda/kernels.h": kernels.emit_declarations(operators, "cuda"),
        "kernels/cuda/register_kernels.cc": kernels.emit_registration(
            operators, "cuda", "kCUDA", kernels.defined_kernels(kernels_folder, "cuda")
        ),
        "docs/operators.md": reference.emit(operators, reference.backends(operators, kernels_folder)),
    }
    files |= client_tensor.outputs(operators)
    return files | pointwise.outputs(operators, kernels_folder) | stubs.outputs(operators, Path("python/bindings"))


SOURCES = (".cc", ".cu", ".h")


def write(out: Path, files: dict[str, str]) -> int:
    """Writes the files whose text changed, so that builds stay incremental. Removes generated sources that are no
    longer emitted, which builds would otherwise pick up. Returns the number of changed files."""
    changed = 0
    for folder in {(out / name).parent for name in files}:
        for old in folder.glob("*.*"):
            if old.suffix in SOURCES and str(old.relative_to(out)) not in files:
                old.unlink()
    for name, text in files.items():
        path = out / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed += 1
    return changed


def main() -> int:
    parser = argparse.ArgumentParser(prog="engine.codegen", description=__doc__)
    parser.add_argument("--ops", type=Path, required=True, help="folder of the operator declarations")
    parser.add_argument("--kernels", type=Path, required=True, help="folder of the backends' kernels")
    parser.add_argument("--out", type=Path, required=True, help="root of the generated tree")
    args = parser.parse_args()
    try:
        operators = load(args.ops)
        files = outputs(operators, args.kernels)
    except DeclarationError as e:
        print(f"generate: {e}", file=sys.stderr)
        return 1
    changed = write(args.out, files)
    print(f"generate: {len(operators)} operators, {changed} of {len(files)} files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
