"""The site's operator pages are complete, their links have targets, and their samples are programs."""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path

import pytest

from engine.codegen import reference, reference_pages
from engine.codegen.declaration import load
from engine.codegen.sample_code import sample_code

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = load(ROOT / "engine/ops")


@pytest.fixture(scope="module")
def pages():
    return reference_pages.pages(OPERATORS, reference.backends(OPERATORS, ROOT / "kernels"), ROOT / "engine/ops")


def test_every_operator_has_a_page_that_two_indices_link(pages):
    for op in OPERATORS:
        subject = Path(op.source).stem
        page = pages[f"{subject}/{op.name}.md"]
        assert page.startswith(f"# {op.name}\n") and f"{op.name}{op.entry['sig']}\n" in page
        assert f"({subject}/{op.name}.md)" in pages[f"{subject}.md"]
        assert f"({subject}/{op.name}.md)" in pages["index.md"]


def test_links_have_targets(pages):
    there = pages.keys() | {"../operators.md"}
    for path, text in pages.items():
        for target in re.findall(r"\]\(([^)]+)\)", re.sub(r"```.*?```", "", text, flags=re.S)):
            assert posixpath.normpath(posixpath.join(posixpath.dirname(path), target.partition("#")[0])) in there, (path, target)


def test_users_are_the_inverse_of_uses(pages):
    assert "| Uses | [`threshold_backward`](../activations/threshold_backward.md)" in pages["activations/relu.md"]
    assert re.search(r"\| Used by \|.*\[`relu`\]\(\.\./activations/relu\.md\)", pages["activations/threshold_backward.md"])


def test_tables_have_two_columns(pages):
    page = pages["comparison/bitwise_or.md"]
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert "input \\| other" in page and all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)


def test_samples_are_programs():
    for op in OPERATORS:
        ast.parse(sample_code(op))
    relu = next(op for op in OPERATORS if op.name == "relu")
    assert sample_code(relu) == "import teletensor as torch\n\ninput = torch.randn(3, 4)\n\nprint(torch.relu(input))\n"
