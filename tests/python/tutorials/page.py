"""Runs the programs and commands of a page of documentation, and compares what they print with the page.

Usage: ``python -m tests.python.tutorials.page docs/tutorials/first-steps.md``

The convention of such a page, whose blocks run in order in an empty folder, with a home folder of their own:

- A block of ``python`` is run; all of a page run in one process. The block of ``output`` that follows has what it prints,
  and, if it raises an exception, the exception's type and message. Without one it must print nothing. A block of ``text``
  in its place is a sample of an output that has other numbers each time; it is not compared.
- In a block of ``console``, a line that starts with ``$ `` is a command for bash, and the lines after it are its output.
  A command must succeed. One that ends in ``&`` runs until the page ends, and its output may continue; ``%1`` is the
  process of the first such command.
- A block with ``title="NAME"`` is the contents of the file NAME.
- Other blocks of ``text`` are not run. Blocks of other languages must have a title.

In outputs, ``...`` stands for any text, and several spaces for one. The ports 7070 to 7079, 9070 and 29500 are replaced by free ones.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(os.environ.get("TELETENSOR_BUILD", ROOT / "build"))
LIMIT = 120  # seconds, for a command: detects one that hangs
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.M | re.S)
PORT = re.compile(r"(?<=[:=\s])(?:707\d|9070|29500)\b")


class Mismatch(Exception):
    """A block that did not do what the page says."""


@dataclass
class Block:
    """A fenced block: its language, the file that it is, its text and the number of its first line."""

    language: str
    title: str | None
    text: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    return [Block(m[1], m[2], m[3], page.count("\n", 0, m.start(3)) + 1) for m in FENCE.finditer(page)]


def expected_output(rest: list[Block]) -> str | None:
    """The output of a program, given the blocks that follow it; None if it is not compared."""
    if not rest or rest[0].title or rest[0].language not in ("output", "text"):
        return ""
    return rest[0].text if rest[0].language == "output" else None


def matches(expected: str, actual: str, whole: bool = True) -> bool:
    """Whether an output is the expected one, in which ``...`` stands for any text; or begins with it. Tables' columns may
    have other widths."""

    def narrow(text: str) -> str:
        return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())

    pattern = ".*?".join(re.escape(part) for part in narrow(expected).split("..."))
    return bool((re.fullmatch if whole else re.match)(pattern, narrow(actual), re.S))


def free_ports(page: str) -> str:
    """The page with ports that no process uses."""
    found: dict[str, str] = {}
    with contextlib.ExitStack() as probes:
        for port in PORT.findall(page):
            if port not in found:
                probe = probes.enter_context(socket.socket())
                probe.bind(("127.0.0.1", 0))
                found[port] = str(probe.getsockname()[1])
    return PORT.sub(lambda match: found[match[0]], page)


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, and their outputs."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = f"{command}\n{more}"
        yield command, output


class Runner:
    """Runs the blocks of a page in a folder. Ends the commands in the background when it is left."""

    def __init__(self, name: str, folder: Path):
        self.name, self.folder = name, folder
        self.background: list[subprocess.Popen] = []
        self.names = {"__name__": "__main__"}
        self.lines = 0  # of the Python blocks so far: positions are those in all of them as one program

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_) -> None:
        for process in self.background:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self.background:
            process.wait(20)

    def command(self, command: str, expected: str) -> None:
        """Runs a command and checks its output."""
        for number, process in enumerate(self.background, 1):
            command = command.replace(f"%{number}", str(process.pid))
        log = self.folder / f".output-{len(self.background)}"
        with log.open("w+") as output:
            foreground = command.removesuffix("&")
            words = ["bash", "-o", "pipefail", "-c", foreground if foreground == command or "|" in command else f"exec {foreground}"]
            process = subprocess.Popen(
                words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        if not command.endswith("&"):
            try:
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                raise Mismatch(f"did not end within {LIMIT} s; it printed\n{log.read_text()}") from None
            if process.returncode != 0:
                raise Mismatch(f"ended with {process.returncode}; it printed\n{log.read_text()}")
            self.compare(expected, log.read_text())
            return
        self.background.append(process)
        deadline = time.monotonic() + LIMIT
        while not matches(expected, log.read_text(), whole=False):
            if process.poll() is not None or time.monotonic() > deadline:
                self.compare(expected, log.read_text())
            time.sleep(0.01)

    def python(self, text: str, expected: str | None) -> None:
        """Runs a program and checks its output; without an expected one, that it prints something and succeeds."""
        code = compile("\n" * self.lines + text, f"{self.name}.py", "exec")
        self.lines += text.count("\n")
        with contextlib.redirect_stdout(io.StringIO()) as output:
            try:
                exec(code, self.names)  # noqa: S102 - our own documentation
            except Exception as error:
                if expected is None:
                    raise Mismatch(f"raised {type(error).__name__}: {error}") from None
                print(f"{type(error).__name__}: {error}")
        if expected is not None:
            self.compare(expected, output.getvalue())
        elif not output.getvalue():
            raise Mismatch("printed nothing")

    @staticmethod
    def compare(expected: str, actual: str) -> None:
        """Raises Mismatch for another output than the expected one."""
        if not matches(expected, actual):
            raise Mismatch(f"expected the output\n{expected}\nreceived\n{actual}")


def run(page: Path) -> None:
    """Runs a page. Raises Mismatch with the line of the block."""
    found = blocks(free_ports(page.read_text()))
    with tempfile.TemporaryDirectory() as folder, Runner(page.stem, Path(folder)) as runner:
        os.chdir(folder)
        for i, block in enumerate(found):
            try:
                if block.title:
                    Path(folder, block.title).write_text(block.text)
                elif block.language == "python":
                    runner.python(block.text, expected_output(found[i + 1 :]))
                elif block.language == "console":
                    for command, output in commands(block.text):
                        runner.command(command, output)
                elif block.language not in ("output", "text"):
                    raise Mismatch(f"expected a block of python, console, output or text, or a title; got {block.language}")
            except Mismatch as error:
                raise Mismatch(f"{page}:{block.line}: {error}") from None
        # The page's own process; that of a test keeps its session.
        if __name__ == "__main__" and (torch := sys.modules.get("teletensor")) is not None:
            torch.disconnect()


def prepare(home: str) -> None:
    """Sets the environment of the page's programs: the built package and commands, and an empty home folder."""
    for name in [name for name in os.environ if name.startswith(("TELETENSOR_", "XDG_", "SLURM_", "OMPI_", "PMI"))]:
        del os.environ[name]
    folders = [str(BUILD / "bin"), str(BUILD / "../.venv/bin"), os.path.dirname(sys.executable)]
    os.environ |= {
        "HOME": home, "PATH": os.pathsep.join([*folders, os.environ["PATH"]]), "PYTHONPATH": str(BUILD / "python"),
        "TELETENSOR_DAEMON": str(BUILD / "bin/teletensord"), "PYTHONUNBUFFERED": "1", "COLUMNS": "120",
    }  # fmt: skip
    sys.path.insert(0, str(BUILD / "python"))


def main() -> int:
    """Runs a page; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="a Markdown file")
    page = parser.parse_args().page.resolve()
    with tempfile.TemporaryDirectory() as home:
        prepare(home)
        try:
            run(page)
        except Mismatch as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
