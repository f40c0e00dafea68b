"""``teletensor top`` in a terminal: keys, sorting, principals, and its end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pytest

from tests.conftest import IN_PROCESS, client_environment
from tests.python.session.test_principals import COMMAND, Engine, run, user

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

_FOOTER = "p principals"  # the end of a frame
CLIENT = """
import sys, teletensor as torch
x = torch.ones(int(sys.argv[1]) << 18)
x.sum().item()
print(1, flush=True)
while sys.stdin.readline():
    pass
"""


class Terminal:
    """A program in a pseudo-terminal of 80 columns and 24 lines."""

    def __init__(self, *command: str, **environment: str):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave, self.output = slave, ""
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave,
            env=client_environment(TERM="xterm-256color", COLUMNS="", LINES="", **environment),
        )  # fmt: skip

    def screen(self) -> str:
        """The text of the last complete frame: rich moves the cursor to the top before each."""
        frames = [frame for frame in self.output.split("\x1b[H") if _FOOTER in frame]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frames[-1]).replace("\r", "") if frames else ""

    def wait_for(self, pattern: str) -> str:
        deadline = time.monotonic() + 30
        while not re.search(pattern, self.screen(), re.DOTALL):
            assert time.monotonic() < deadline and self.process.poll() is None, self.screen()
            if select.select([self.master], [], [], 0.2)[0]:
                self.output += os.read(self.master, 65536).decode(errors="replace")
        return self.screen()

    def press(self, key: str, pattern: str) -> str:
        os.write(self.master, key.encode())
        return self.wait_for(pattern)

    def end(self, key: str) -> int:
        os.write(self.master, key.encode())
        deadline = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < deadline:
            if select.select([self.master], [], [], 0.05)[0]:
                self.output += os.read(self.master, 65536).decode(errors="replace")
        restored = termios.tcgetattr(self.slave) == self.before
        os.close(self.slave)
        os.close(self.master)
        assert restored
        return self.process.wait(1)


def rows(screen: str, first: str) -> list[list[str]]:
    """The cells of the table whose first header is `first`."""
    lines = screen.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"┃ {first}"))
    body = [line for line in lines[at:] if line.startswith("│")]
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in body]


def test_keys_sort_and_switch_tables(tmp_path):
    engine = Engine(tmp_path)
    tokens = [user(engine.file, "add", "alice", "--memory", "1GB"), user(engine.file, "add", "bob", "--priority", "batch")]
    engine.start()
    clients = []
    for megabytes, token in (("1", tokens[0]), ("32", tokens[1]), ("8", tokens[0])):
        clients.append(subprocess.Popen(
            [sys.executable, "-c", CLIENT, megabytes], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env=client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=token),
        ))  # fmt: skip
        assert clients[-1].stdout.readline() == b"1\n"
    access = {"TELETENSOR_ADDRESS": engine.address, "TELETENSOR_TOKEN": engine.token("admin-token")}
    terminal = Terminal(COMMAND, "top", "--interval", "0.2", "--sort", "held", **access)
    try:
        screen = terminal.wait_for(r"sessions \(3\) by held\s.*█")
        assert [row[0] for row in rows(screen, "id")] == ["2", "3", "1"]
        assert len(screen.rstrip("\n").splitlines()) <= 24 and max(map(len, screen.splitlines())) <= 80
        screen = terminal.press("r", r"by held, reversed")
        assert [row[0] for row in rows(screen, "id")] == ["1", "3", "2"]
        terminal.press("s", r"by held 1m\s")
        terminal.press("S", r"by held\s")
        terminal.press("SSr", r"by id, reversed")
        screen = terminal.press("p", r"principals \(\d\)\s")
        found = {row[1]: row for row in rows(screen, "sessions")}
        assert found["alice"][0] == "2" and found["alice"][2] == "interactive" and found["alice"][7] == "1.0 GiB"
        assert found["bob"][0] == "1" and found["bob"][2] == "batch" and 32 <= float(found["bob"][6].split()[0]) < 64
        screen = terminal.press("sss", r"by class\s")
        screen = terminal.press("c", r"cores 1m")
        terminal.press("p", r"sessions \(3\) by id, reversed")
    finally:
        status = terminal.end("q")
        for client in clients:
            client.communicate(b"", 20)
        engine.stop()
    assert status == 0


def test_without_a_terminal_and_with_errors(tmp_path):
    engine = Engine(tmp_path)
    user(engine.file, "add", "alice")
    engine.start()
    access = {"TELETENSOR_ADDRESS": engine.address, "TELETENSOR_TOKEN": engine.token("admin-token")}
    done = run("top", "--count", "2", "--interval", "0.1", "--principals", **access)
    assert done.returncode == 0 and done.stdout.count("principals (") == 1 and "\x1b" not in done.stdout
    assert "sessions (0) by per s" in run("top", "--count", "1", "--sort", "per-s", **access).stdout
    refused = run("top", "--count", "1", "--sort", "weight", **access)
    assert refused.returncode == 1 and "[top] expected --sort to be one of id, client" in refused.stderr
    assert run("top", "--count", "1", "--sort", "weight", "--principals", **access).returncode == 0
    engine.stop()
