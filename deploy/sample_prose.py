#!/usr/bin/env python3
"""Prints a random sample of the project's prose and names, for a reader who judges them by the rules in CONTRIBUTING.md.

The same seed draws the same sample from the same tree:

    deploy/sample_prose.py --seed 13 --comments 100 --messages 50 --names 50
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP = {".h", ".cc", ".cu"}
BLOCK = re.compile(r"(?:^[ \t]*//[^\n]*\n)+|(?<=\S)[ \t]+//[^\n]*", re.MULTILINE)
STRING = r'"(?:\\.|[^"\\\n])*"'
MESSAGE = re.compile(
    rf"\b(?:check|fail|Error)\((?:[^;{{}}]*?)({STRING}(?:\s*,?[^;{{}}]*?{STRING})*)[^;{{}}]*;"
)
DECLARED = re.compile(
    r"^(?:class|struct|enum class)\s+(?:ABSL_\w+\s+)?(\w+)(?=[^;]*\{)"
    r"|^\s*(?:[\w:<>,*& ]+\s)?(\w+)\([^;{}]*\)\s*(?:const\s*)?(?:noexcept\s*)?[;{]",
    re.MULTILINE,
)


def tracked(*folders: str) -> list[Path]:
    names = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def collect_cpp(path: Path, comments: list, messages: list, names: list) -> None:
    text, where = path.read_text(), path.relative_to(ROOT)

    def line(at: int) -> str:
        return f"{where}:{text.count(chr(10), 0, at) + 1}"

    for block in BLOCK.finditer(text):
        words = " ".join(part.strip().lstrip("/").strip() for part in block.group().split("\n"))
        if len(words.split()) > 3 and not words.startswith(("namespace", "NOLINT", "clang-format")):
            comments.append((line(block.start()), words.strip()))
    for message in MESSAGE.finditer(text):
        parts = re.findall(STRING, message.group(1))
        joined = " ... ".join(part[1:-1] for part in parts)
        if len(joined.split()) > 2:
            messages.append((line(message.start()), joined))
    if path.suffix == ".h":
        for declared in DECLARED.finditer(text):
            name = declared.group(1) or declared.group(2)
            if name and name not in ("if", "for", "while", "switch", "return", "operator"):
                names.append((line(declared.start()), name))
    names.append((str(where), path.name))


def collect_python(path: Path, comments: list, messages: list, names: list) -> None:
    text, where = path.read_text(), path.relative_to(ROOT)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)) and (doc := ast.get_docstring(node)):
            comments.append((f"{where}:{getattr(node, 'lineno', 1)}", " ".join(doc.split())[:600]))
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append((f"{where}:{node.lineno}", node.name))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for argument in node.exc.args[:1]:
                messages.append((f"{where}:{node.lineno}", ast.unparse(argument)))


def draw(title: str, found: list, count: int, seed: int) -> None:
    print(f"\n== {min(count, len(found))} of {len(found)} {title}")
    for where, what in random.Random(seed).sample(sorted(set(found)), min(count, len(set(found)))):
        print(f"{where}\n    {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=13)
    parser.add_argument("--comments", type=int, default=100)
    parser.add_argument("--messages", type=int, default=50)
    parser.add_argument("--names", type=int, default=50)
    parser.add_argument("folders", nargs="*", help="folders to draw from (default: all but the tests)")
    arguments = parser.parse_args()
    folders = arguments.folders or [
        "base",
        "engine",
        "kernels",
        "autograd",
        "proto",
        "server",
        "client",
        "python",
        "deploy",
        "benchmarks",
    ]
    comments, messages, names = [], [], []
    for path in tracked(*folders):
        if path.suffix in CPP:
            collect_cpp(path, comments, messages, names)
        elif path.suffix == ".py":
            collect_python(path, comments, messages, names)
    draw("comments and docstrings", comments, arguments.comments, arguments.seed)
    draw("error messages", messages, arguments.messages, arguments.seed)
    draw("names", names, arguments.names, arguments.seed)


if __name__ == "__main__":
    main()
