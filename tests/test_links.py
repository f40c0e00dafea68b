"""Checks links, anchors and paths in the repository's Markdown, and that the site's navigation has every page."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
# Pages that deploy/docs/hooks.py copies to the site or generates.
ADDED = {"changelog.md", "contributing.md", "examples.md", "reference/index.md"}

FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
# A file of the repository that a page names in code, such as `server/README.md`; and a page that a source names.
PATH = re.compile(
    r"(?:autograd|base|benchmarks|client|deploy|distributed|docs|engine|examples|kernels|proto|python|server|tests)"
    r"/[\w/.-]*\w\.(?:md|py|cc|cu|h|proto|sh|ya?ml|txt)"
)
DOCUMENT = re.compile(r"(?<![\w/.<-])docs/[\w/-]+\.md")


def _tree(pattern: str) -> list[Path]:
    """Files of the repository's folders: those that have a README."""
    return [p for folder in sorted(ROOT.glob("*/README.md")) for p in sorted(folder.parent.rglob(pattern))]


PAGES = sorted(ROOT.glob("*.md")) + _tree("*.md")


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site's `slugify` name them."""
    seen: Counter[str] = Counter()
    found = set()
    for title in re.findall(r"^#{1,6} +(.+?) *$", FENCE.sub("", text), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def broken_links(page: Path) -> list[str]:
    """The page's links within the repository that have no target."""
    found = []
    for target in LINK.findall(CODE.sub("``", FENCE.sub("", page.read_text()))):
        if re.match(r"[a-z][a-z+]*:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            found.append(f"{target}: no such file")
        elif anchor and (file.is_dir() or anchor not in anchors(file.read_text())):
            found.append(f"{target}: no such heading")
    return found


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_have_targets(page):
    assert "\n".join(broken_links(page)) == ""


def test_broken_links_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# A `b`: c\n\n## A b c\n```\n# not a heading\n```\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[1](other.md#a-b-c-1) [2](#here) [3](none.md) [4](https://example.org) [5](other.md#not-a-heading)\n"
        "`[6](none.md)`\n```\n[7](none.md)\n```\n# Here\n"
    )
    assert broken_links(page) == ["none.md: no such file", "other.md#not-a-heading: no such heading"]


def test_files_that_pages_name_exist():
    missing = [
        f"{_name(page)}: {path}"
        for page in PAGES
        for code in CODE.findall(FENCE.sub("", page.read_text()))
        if (path := code.strip("`").split(" ")[0]) and PATH.fullmatch(path)
        if not (ROOT / path).exists() and not (page.parent / path).exists()
    ]
    assert "\n".join(missing) == ""


def test_documents_that_sources_name_exist():
    own_trees = (ROOT / "tests/generator", Path(__file__))  # tests with files of their own
    sources = [p for suffix in ("py", "h", "cc", "cu", "yaml", "sh") for p in _tree(f"*.{suffix}")]
    missing = [
        f"{_name(file)}: {path}"
        for file in [*sources, ROOT / "Makefile"]
        if not any(file.is_relative_to(tree) for tree in own_trees)
        for path in DOCUMENT.findall(file.read_text(errors="replace"))
        if not (ROOT / path).exists()
    ]
    assert "\n".join(missing) == ""


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags name Python functions, without calling them."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def _leaves(nav) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    entries = nav if isinstance(nav, list) else nav.values()
    return [path for entry in entries for path in _leaves(entry)]


def test_navigation_has_every_page_once():
    """mkdocs.yml lists the pages of docs/, and those that hooks.py adds."""
    config = yaml.load((ROOT / "deploy/docs/mkdocs.yml").read_text(), _Loader)  # noqa: S506 - a SafeLoader
    pages = {str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert sorted(_leaves(config["nav"])) == sorted(pages | ADDED)


def section(page: str, anchor: str) -> str:
    """The part of a page from a heading to the next one of its level or above."""
    parts = re.split(r"^(#{1,6} .*)$", page, flags=re.M)
    for i in range(1, len(parts), 2):
        if anchor in anchors(parts[i]):
            level = parts[i].index(" ")
            end = next((j for j in range(i + 2, len(parts), 2) if parts[j].index(" ") <= level), len(parts))
            return "".join(parts[i:end])
    raise AssertionError(f"expected a heading #{anchor}")


def test_figures_of_the_index_are_those_of_the_benchmarks():
    """Each number that docs/measured.md gives as measured occurs in the section that its row links."""
    rows = re.findall(r"^\|[^|]+\|([^|]+)\|[^|]+\|[^|]*\]\(([\w.-]+)#([\w-]+)\) \|$", (ROOT / "docs/measured.md").read_text(), re.M)
    assert len(rows) > 20
    for figures, page, anchor in rows:
        source = section((ROOT / "docs" / page).read_text(), anchor)
        for number in re.findall(r"\d+\.\d+|\d{3,}", figures):
            assert re.search(rf"(?<![\d.,]){number}(?![\d]|\.\d)", source), f"{number} is not in {page}#{anchor}"
