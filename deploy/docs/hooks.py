"""MkDocs hooks of the site: pages that are not in docs/, and links to files that are not on the site.

MkDocs calls the functions `on_*`. Added pages are those of operators, generated from engine/ops, and copies of some files
of the repository. A link to a file that is not on the site becomes its text with the file's path.
"""

from __future__ import annotations

import functools
import posixpath
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from engine.codegen import reference, reference_pages  # noqa: E402
from engine.codegen.declaration import load  # noqa: E402

# Files of the repository that are pages of the site.
COPIES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "examples/README.md": "examples.md"}
ASSETS = ("site.css", "iframe-worker.js")

_FENCE = re.compile(r"^(```.*?^```)", re.M | re.S)
_LINK_OR_CODE = re.compile(r"`[^`\n]*`|(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


@functools.cache
def _operator_pages() -> dict[str, str]:
    operators = load(ROOT / "engine/ops")
    return reference_pages.pages(operators, reference.backends(operators, ROOT / "kernels"), ROOT / "engine/ops")


def on_config(config):
    """Adds the operators' subjects to the navigation."""
    reference_section = next(entry["Reference"] for entry in config.nav if "Reference" in entry)
    operators = next(entry["Operators"] for entry in reference_section if "Operators" in entry)
    operators += [f"reference/{path}" for path in sorted(_operator_pages()) if "/" not in path and path != "index.md"]
    return config


def on_files(files, config):
    """Adds the generated pages, the copies and the assets."""
    for path, text in _operator_pages().items():
        files.append(File.generated(config, f"reference/{path}", content=text))
    for source, path in COPIES.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text()))
    for name in ASSETS:
        files.append(File.generated(config, f"assets/{name}", content=(Path(__file__).parent / name).read_text()))
    return files


def _relinked(match: re.Match, page: str, origin: str, files) -> str:
    """A link with the target's path on the site. `page` and `origin` are the page's paths there and in the repository."""
    text, target = match[1], match[2]
    if target is None:  # code
        return match[0]
    if re.match(r"[a-z]+:", target) or target.startswith("#"):
        return match[0]
    path, _, anchor = target.partition("#")
    source = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
    there = COPIES.get(source, source.removeprefix("docs/") if source.startswith("docs/") else None)
    if there is None or (origin != f"docs/{page}" and files.get_file_from_path(there) is None):
        return text if f"`{source}`" == text or text in source else f"{text} (`{source}`)"
    relative = posixpath.relpath(there, posixpath.dirname(page) or ".")
    return f"[{text}]({relative}{'#' + anchor if anchor else ''})"


def on_page_markdown(markdown, page, config, files):
    """Replaces links of pages of the repository; those of generated pages are correct."""
    here = page.file.src_uri
    if here.startswith("reference/"):
        return markdown
    origin = next((source for source, path in COPIES.items() if path == here), f"docs/{here}")
    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK_OR_CODE.sub(lambda m: _relinked(m, here, origin, files), part) for part in parts[::2]]
    return "".join(parts)
