#!/usr/bin/env python3
"""Prints a random sample of the project's prose and names, for a reader who judges them by the rules in CONTRIBUTING.md.

The same seed draws the same sample from the same tree. Comments and docstrings are printed with the code to which they
belong, error messages with ``...`` in place of C++ expressions:

    deploy/sample_prose.py --seed 1 --comments 100 --messages 50 --names 50
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import subprocess
import tokenize
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP = {".h", ".cc", ".cu"}
# Comments that address tools.
PRAGMA = re.compile(r"namespace\b|NOLINT|clang-format|noqa|type: ignore|pragma|!|fmt:|ruff:|IWYU|yamllint|---")
BLOCK = re.compile(r"(?:^[ \t]*//[^\n]*\n)+|(?<=\S)[ \t]+//[^\n]*", re.MULTILINE)
STRING = r'"(?:\\.|[^"\\\n])*"'
MESSAGE = re.compile(
    r"\b(?:check|fail|\w*Error|raise|\w*Exception|Status)\("
    rf"(?:[^;{{}}]*?)({STRING}(?:\s*,?[^;{{}}]*?{STRING})*)[^;{{}}]*;"
)
DECLARED = re.compile(
    r"^\s*(?:class|struct|enum class)\s+(?:ABSL_\w+\s+)?(\w+)(?=[^;()]*\{)"
    r"|^\s*(?:[\w:]+(?:<[^;{}()]*>)?[&*]*\s+)+[&*]?(\w+)\([^;{}]*\)"
    r"\s*(?:const\s*)?(?:noexcept\s*)?(?:override\s*)?[;{]",
    re.MULTILINE,
)
KEYWORDS = {"if", "for", "while", "switch", "return", "operator", "else", "throw", "new", "sizeof", "decltype"}


class Sources:
    """Comments, error messages and names, each as (place, text)."""

    def __init__(self) -> None:
        self.comments: set[tuple[str, str]] = set()
        self.messages: set[tuple[str, str]] = set()
        self.names: set[tuple[str, str]] = set()

    def add_comment(self, place: str, code: str, words: str) -> None:
        words = " ".join(words.split())
        if words and not PRAGMA.match(words) and any(c.isalpha() for c in words):
            self.comments.add((place, f"{' '.join(code.split())[:100]}\n    {words[:600]}"))

    def add_name(self, place: str, name: str) -> None:
        if len(name) > 1 and not name.startswith("__") and name not in KEYWORDS:
            self.names.add((place, name))

    def read_cpp(self, path: Path) -> None:
        text, where = path.read_text(), path.relative_to(ROOT)

        def place(at: int) -> str:
            return f"{where}:{text.count(chr(10), 0, at) + 1}"

        for block in BLOCK.finditer(text):
            words = " ".join(part.strip().lstrip("/").strip() for part in block.group().strip("\n").split("\n"))
            trailing = not block.group().endswith("\n")
            code = text[: block.start()].rsplit("\n", 1)[-1] if trailing else text[block.end() :].split("\n", 1)[0]
            self.add_comment(place(block.start()), code, words)
        for message in MESSAGE.finditer(text):
            words = " ... ".join(part[1:-1] for part in re.findall(STRING, message.group(1)))
            if len(words.split()) > 2:
                self.messages.add((place(message.start()), words))
        for declared in DECLARED.finditer(text):
            if path.suffix != ".h" and declared.group().endswith(";"):
                continue  # a variable
            self.add_name(place(declared.end() - 1), declared.group(1) or declared.group(2))

    def read_python(self, path: Path) -> None:
        text, where = path.read_text(), path.relative_to(ROOT)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                line = getattr(node, "lineno", 1)
                code = text.split("\n")[line - 1] if line > 1 else path.name
                self.add_comment(f"{where}:{line}", code, ast.get_docstring(node) or "")
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.add_name(f"{where}:{node.lineno}", node.name)
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for argument in node.exc.args[:1]:
                    words = ast.unparse(argument)
                    if len(words.split()) > 2:
                        self.messages.add((f"{where}:{node.lineno}", words))
        self.read_hash_comments(where, text, [t for t in tokens(text) if t.type == tokenize.COMMENT])

    def read_hash_comments(self, where: Path, text: str, found: list[tokenize.TokenInfo]) -> None:
        lines, block = text.split("\n"), []
        for token, following in zip_longest(found, found[1:]):
            block.append(token.string.lstrip("#").strip())
            row, trailing = token.start[0], token.line[: token.start[1]].strip()
            if not trailing and following and following.start == (row + 1, token.start[1]):
                continue
            code = trailing or (lines[row] if row < len(lines) else "")
            self.add_comment(f"{where}:{row - len(block) + 1}", code, " ".join(block))
            block = []

    def read_yaml(self, path: Path) -> None:
        text, where, operator = path.read_text(), path.relative_to(ROOT), ""
        for block in re.finditer(r"(?:^ *# [^\n]*\n)+|^[^\"'\n#]*[^\"'\n# ] +#( [^\n]*)\n", text, re.MULTILINE):
            words = block.group(1) or " ".join(part.strip().lstrip("#") for part in block.group().split("\n"))
            row = text.count("\n", 0, block.start()) + 1
            self.add_comment(f"{where}:{row}", text[block.end() :].split("\n", 1)[0], words)
        for row, line in enumerate(text.split("\n"), 1):
            if found := re.match(r"- op: (\w+)", line):
                operator = found.group(1)
                self.add_name(f"{where}:{row}", operator)
            elif found := re.match(r"\s+doc: (.+)", line):
                self.add_comment(f"{where}:{row}", operator, found.group(1))

    def read(self, path: Path) -> None:
        readers = {".py": self.read_python, ".yaml": self.read_yaml, **dict.fromkeys(CPP, self.read_cpp)}
        if path.suffix in readers:
            readers[path.suffix](path)
            self.add_name(str(path.relative_to(ROOT)), path.name)


def tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def tracked(*folders: str) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def draw(title: str, found: set[tuple[str, str]], count: int, seed: int) -> None:
    count = min(count, len(found))
    print(f"\n== {count} of {len(found)} {title}")
    for where, what in random.Random(seed).sample(sorted(found), count):
        print(f"{where}  {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--comments", type=int, default=100)
    parser.add_argument("--messages", type=int, default=50)
    parser.add_argument("--names", type=int, default=50)
    parser.add_argument("folders", nargs="*", help="folders to draw from (default: all)")
    arguments = parser.parse_args()
    sources = Sources()
    for path in tracked(*arguments.folders):
        sources.read(path)
    draw("comments and docstrings", sources.comments, arguments.comments, arguments.seed)
    draw("error messages", sources.messages, arguments.messages, arguments.seed)
    draw("names", sources.names, arguments.names, arguments.seed)


if __name__ == "__main__":
    main()
