"""Directory: a tree of the names of files."""

from __future__ import annotations

from collections.abc import Iterator

from .._lazy import set_module

__all__ = ["Directory"]


class Directory:
    """A file, or a folder with its ``children`` by name; printed as a tree, folders first."""

    def __init__(self, name: str, is_dir: bool):
        self.name, self.is_dir = name, is_dir
        self.children: dict[str, Directory] = {}

    def _add_file(self, file_path: str) -> None:
        """Adds a file, and the folders in its path."""
        folder = self
        *folders, file = file_path.split("/")
        for name in folders:
            folder = folder.children.setdefault(name, Directory(name, True))
        folder.children[file] = Directory(file, False)

    def has_file(self, filename: str) -> bool:
        """Whether there is a file or folder with this path."""
        entry: Directory | None = self
        for name in filename.split("/"):
            entry = entry.children.get(name) if entry is not None else None
        return entry is not None

    def _lines(self, indent: str, mark: str) -> Iterator[str]:
        yield f"{indent}{mark}{self.name}\n"
        indent += "\u2502   " if mark.startswith("\u251c") else "    "
        children = sorted(self.children.values(), key=lambda child: (not child.is_dir, child.name))
        for child in children:
            yield from child._lines(indent, ("\u2514" if child is children[-1] else "\u251c") + "\u2500\u2500 ")

    def __str__(self) -> str:
        return "".join(self._lines("", "\u2500\u2500\u2500 "))


set_module("teletensor.package.file_structure_representation", Directory)
