#!/usr/bin/env python3
"""Checks the C++ sources with clang-tidy, and the Python sources with ruff.

Usage: ``deploy/lint.py [--deep] [FILE.cc...]``

* clang's -Wthread-safety over every .cc file that includes base/mutex.h, directly or through other headers: reading or
  writing a member without the mutex that its ABSL_GUARDED_BY names is an error. Locks of the standard library, which
  this analysis does not see, are errors outside base/.
* clang-tidy with .clang-tidy over the .cc files of client, server, engine and autograd, in the same run. ``--deep`` adds
  the other folders and the static analyzer, which take an hour on two cores.
* ruff over the Python sources.

Needs a configured release build with its generated headers. A file that passed, in this clone or another, is checked again
only if it, a project header that it includes, or the checks have changed; teletensor/lint-passed.json in the user's cache
folder has the hashes. Prints one line of progress, then the findings; the exit status is 1 if there are any.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
INCLUDED_FROM = (ROOT, BUILD / "generated", BUILD / "generated" / "proto")
FOLDERS = ("autograd", "base", "client", "distributed", "engine", "formats", "kernels", "proto", "python", "server")
TIDY_FOLDERS = ("autograd", "client", "engine", "formats", "server")
RUFF_FOLDERS = ("python", "tests", "benchmarks", "examples", "engine/codegen", "deploy")
TIDY = str(Path(sys.executable).with_name("clang-tidy"))  # PyPI's, which does not try its checks on system headers
PASSED = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "teletensor" / "lint-passed.json"
LOCKS = "clang-diagnostic-thread-safety*"
LOCK_FLAGS = ["-Wno-everything", "-Wthread-safety"]

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
FINDING = re.compile(r"^\S+:\d+:\d+: (?:warning|error|fatal error): ")
SUMMARY = re.compile(r"^\d+ (?:warnings?|errors?)\b.* generated\.$")
STANDARD_LOCK = re.compile(r"\bstd::(?:\w*mutex\b(?!::)|condition_variable\w*|lock_guard|scoped_lock|shared_lock)")


@cache
def includes(path: Path) -> tuple[Path, ...]:
    """Returns the project's headers that a file includes, generated ones too."""
    names = INCLUDE.findall(path.read_text())
    return tuple(
        found for name in names if (found := next((d / name for d in INCLUDED_FROM if (d / name).is_file()), None))
    )


def transitive_includes(path: Path) -> set[Path]:
    """Returns the file and all of the project's headers that it includes, directly or indirectly."""
    seen, left = {path}, [path]
    while left:
        new = set(includes(left.pop())) - seen
        seen |= new
        left += new
    return seen


def compile_arguments() -> dict[Path, list[str]]:
    """Returns the arguments of each .cc file in the build, without compiler and output. Skips generated files."""
    found: dict[Path, list[str]] = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if path.suffix != ".cc" or BUILD in path.parents or path.parent.name == "isa":
            continue
        arguments = shlex.split(entry["command"])
        arguments = arguments[next(i for i, a in enumerate(arguments) if a.startswith("-")) :]
        output = arguments.index("-o")
        found.setdefault(
            path, [a for a in arguments[:output] + arguments[output + 2 :] if a not in ("-c", entry["file"])]
        )
    return found


def jobs(files: dict[Path, list[str]], deep: bool) -> list[tuple[Path, list[str]]]:
    """Returns the files to check, each with its command."""
    result = []
    mutex = ROOT / "base" / "mutex.h"
    gcc = subprocess.run(["c++", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout.strip()
    flags = [*LOCK_FLAGS, f"-idirafter{gcc}"]  # omp.h, which PyPI's clang-tidy does not bring
    for path, arguments in files.items():
        folder = path.relative_to(ROOT).parts[0]
        locks = folder in FOLDERS and mutex in transitive_includes(path)
        if folder in (FOLDERS if deep else TIDY_FOLDERS):
            checks = f"{'clang-analyzer-*,' if deep else ''}{LOCKS}"  # in addition to those of .clang-tidy
        elif locks:
            checks = f"-*,modernize-use-nullptr,{LOCKS}"  # clang-tidy runs only with a check of its own
        else:
            continue
        arguments = [argument for argument in arguments if argument != "-Winvalid-pch"]
        result.append((path, [TIDY, "--quiet", f"--checks={checks}", str(path), "--", *arguments, *flags]))
    return result


def key(command: list[str]) -> str:
    """Returns the command as it is in every clone."""
    return " ".join(command).replace(str(ROOT), ".")


def digest(path: Path, command: list[str], version: str) -> str:
    """Returns a hash of the project's files that the command's result depends on."""
    state = hashlib.sha256("\0".join([version, key(command), (ROOT / ".clang-tidy").read_text()]).encode())
    for each in sorted(transitive_includes(path)):
        state.update(each.read_bytes())
    return state.hexdigest()


def run(command: list[str]) -> list[str]:
    """Returns the command's findings, one text each, with their explanatory lines."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    found: list[list[str]] = []
    for line in done.stdout.splitlines():
        if FINDING.match(line):
            found.append([])
        if found and not SUMMARY.match(line):
            found[-1].append(line)
    found = [lines for lines in found if not lines[0].startswith(f"{BUILD}/")]  # in generated headers
    if done.returncode != 0 and not found:
        return [f"{shlex.join(command)}\n{done.stdout}{done.stderr}"]
    return ["\n".join(lines) for lines in found]


def standard_locks() -> list[str]:
    """Returns uses of the standard library's locks, which clang does not check."""
    found = []
    for folder in set(FOLDERS) - {"base"}:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix not in (".h", ".cc", ".cu"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if match := STANDARD_LOCK.search(line.split("//")[0]):
                    found.append(f"{name}:{number}: {match[0]}: expected a lock of base/mutex.h, which clang checks")
    return sorted(found)


def check(console: Console, work: list[tuple[Path, list[str]]]) -> dict[str, None]:
    """Runs the commands on all cores; returns their findings without duplicates."""
    passed = json.loads(PASSED.read_text()) if PASSED.is_file() else {}
    PASSED.parent.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([TIDY, "--version"], capture_output=True, text=True, check=True).stdout
    digests = {key(command): digest(path, command, version) for path, command in work}
    left = [(path, command) for path, command in work if passed.get(key(command)) != digests[key(command)]]
    found: dict[str, None] = {}
    columns = [
        TextColumn("lint"),
        BarColumn(30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[step]}"),
    ]
    with Progress(*columns, console=console, transient=True) as progress, ThreadPoolExecutor(os.cpu_count()) as pool:
        task = progress.add_task("lint", total=len(work), completed=len(work) - len(left), step="")
        pending = {pool.submit(run, command): (path, command) for path, command in left}
        for done, future in enumerate(as_completed(pending), 1):
            path, command = pending[future]
            progress.update(task, advance=1, step=path.name)
            if findings := future.result():
                found.update(dict.fromkeys(findings))
            else:
                passed[key(command)] = digests[key(command)]
                written = PASSED.with_suffix(f".{os.getpid()}")
                written.write_text(json.dumps(passed))
                written.replace(PASSED)  # other clones read it
            if not console.is_terminal and 10 * done // len(left) > 10 * (done - 1) // len(left):
                console.print(f"lint: {done} of {len(left)} checks", highlight=False)
    return found


def main() -> int:
    """Runs all checks; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE.cc", type=Path, help="default: all")
    parser.add_argument(
        "--deep", action="store_true", help="run clang's static analyzer, and clang-tidy over all folders"
    )
    args = parser.parse_args()
    console = Console()
    files = compile_arguments()
    if args.files:
        wanted = {path.resolve() for path in args.files}
        files = {path: arguments for path, arguments in files.items() if path in wanted}
    work = jobs(files, args.deep)
    found = standard_locks() + list(check(console, work))
    for text in found:
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    ruff = subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", *RUFF_FOLDERS], cwd=ROOT)
    console.print(f"lint: {len(work)} checks of C++, {len(found)} findings", highlight=False)
    return 1 if found or ruff.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
