"""Emits the operator reference for a site: a page per operator, a page per declaration file, and an index."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from .declaration import Operator
from .reference import notes_of, python_calls, rows, title_of
from .sample_code import sample_code

_NAMES = re.compile(r"[a-z_][a-z0-9_]*(?=\()")
_SENTENCE_END = re.compile(r"(?<=[.;])\s")


def _subject(op: Operator) -> str:
    """The name of the operator's declaration file, which is the folder of its page."""
    return Path(op.source).stem


def _used(op: Operator, by_name: dict[str, Operator]) -> list[Operator]:
    """The operators that the composite or the gradient formulas call."""
    formulas = [str(op.entry["composite"])] if op.is_composite else list(map(str, op.gradients.values()))
    names = dict.fromkeys(name for formula in formulas for name in _NAMES.findall(formula))
    return [by_name[name] for name in names if name in by_name and name != op.name]


def _links(operators: list[Operator]) -> str:
    return ", ".join(f"[`{op.name}`](../{_subject(op)}/{op.name}.md)" for op in operators)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(op: Operator, have: dict[str, set[str]], uses: list[Operator], users: list[Operator]) -> str:
    table = rows(op, have)
    if uses:
        table.append(("Uses", _links(uses)))
    if users:
        table.append(("Used by", _links(users)))
    code = sample_code(op)
    sample = f"\n## Sample\n\n```python\n{code}```\n" if code else ""
    properties = "".join(f"| {label} | {_cell(text)} |\n" for label, text in table)
    return (
        f"# {op.name}\n\n[Operators](../index.md) / [{title_of(_subject(op))}](../{_subject(op)}.md)\n\n"
        f"```text\n{op.name}{op.entry['sig']}\n```\n\n"
        f"{' '.join([op.doc, *notes_of(op)])}\n\n"
        f"| property | value |\n|---|---|\n{properties}{sample}\n"
        f"Declared in `engine/ops/{op.source}`. "
        "[Declaring an operator](../../operators.md#common-rules) explains rules and formulas.\n"
    )


def _summary(op: Operator) -> str:
    return _cell(_SENTENCE_END.split(op.doc, 1)[0].rstrip(";"))


def _description(ops_folder: Path, source: str) -> str:
    """The first sentence of a declaration file's comment."""
    with (ops_folder / source).open() as file:
        comment = file.readline().removeprefix("#").strip()
    return comment.split(". ")[0].rstrip(".") + "."


def _subject_page(subject: str, description: str, operators: list[Operator]) -> str:
    lines = []
    for op in operators:
        calls = python_calls(op)
        name = f"`{calls[0]}`" if calls else "internal"
        lines.append(f"| [`{op.name}`]({subject}/{op.name}.md) | {name} | {_summary(op)} |\n")
    return f"# {title_of(subject)}\n\n{description}\n\n| operator | Python | result |\n|---|---|---|\n{''.join(lines)}"


def pages(operators: list[Operator], have: dict[str, set[str]], ops_folder: Path) -> dict[str, str]:
    """Maps `index.md`, `SUBJECT.md` and `SUBJECT/OPERATOR.md` to Markdown. `have` is the result of
    reference.backends(). The pages link to `../operators.md`, the description of the declarations."""
    by_name = {op.name: op for op in operators}
    uses = {op.name: _used(op, by_name) for op in operators}
    users: dict[str, list[Operator]] = {op.name: [] for op in operators}
    for op in operators:
        for used in uses[op.name]:
            users[used.name].append(op)
    found, lines = {}, []
    for source, group in groupby(sorted(operators, key=lambda op: (op.source, op.id)), lambda op: op.source):
        members, subject = list(group), Path(source).stem
        description = _description(ops_folder, source)
        found[f"{subject}.md"] = _subject_page(subject, description, members)
        for op in members:
            found[f"{subject}/{op.name}.md"] = _page(op, have, uses[op.name], users[op.name])
        names = ", ".join(f"[`{op.name}`]({subject}/{op.name}.md)" for op in members)
        lines.append(f"## [{title_of(subject)}]({subject}.md)\n\n{description}\n\n{names}\n")
    found["index.md"] = (
        f"# Operators\n\n{len(operators)} operators, generated from the declarations in `engine/ops`; "
        "[their language](../operators.md) explains rules and formulas.\n\n" + "\n".join(lines)
    )
    return found
