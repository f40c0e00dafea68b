"""Writes docs/onnx-operators.md: the operators that models may have, with the versions of operator sets.

python -m tests.conformance.onnx.operators
"""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs/onnx-operators.md"
TITLES = {
    "": "ai.onnx",
    "ai.onnx.ml": "ai.onnx.ml",
    "ai.onnx.preview": "ai.onnx.preview",
    "ai.onnx.preview.training": "ai.onnx.preview.training",
}


def _how(domain: str, name: str, schema) -> str:
    from teletensor.onnx.importer.ops import find
    from teletensor.onnx.importer.ops.client import CLIENT

    if domain == "" and name == "Constant":
        return "a constant"
    if find(domain, name, schema.since_version) is not None:
        own = find(domain, name, schema.since_version).__module__.rpartition(".")[2]
        return f"`{own}`" + (", client" if domain == "" and name in CLIENT else "")
    if schema.has_function or schema.has_context_dependent_function:
        return "the function of its schema"
    return "**no**"


def page() -> str:
    """The page's text."""
    from onnx import defs

    lines = [
        "# Operators of ONNX",
        "",
        "Made by `python -m tests.conformance.onnx.operators`. Implementation: a file of "
        "`python/teletensor/onnx/importer/ops/`; *client*: also computed in the client, where models derive sizes with it. Versions "
        "are those of the schema, which are all accepted; *deprecated* ones too.",
    ]
    for domain, title in TITLES.items():
        lines += ["", f"## {title}", "", "| operator | versions | implementation |", "|---|---|---|"]
        history: dict[str, list] = {}
        for schema in defs.get_all_schemas_with_history():
            if schema.domain == domain:
                history.setdefault(schema.name, []).append(schema)
        for name, schemas in sorted(history.items()):
            schemas.sort(key=lambda s: s.since_version)
            usable = [s for s in schemas if not s.deprecated]
            lines.append(
                f"| {name} | {', '.join(str(s.since_version) for s in schemas)} | {_how(domain, name, usable[-1])} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
