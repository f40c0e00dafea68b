"""docs/running.md: its commands are accepted by this version's programs, and its table has every option."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest

from tests.conftest import BUILD, IN_PROCESS, ROOT, client_environment
from tests.python.session.test_principals import run
from tests.python.session.test_tls import Files

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]
PAGE = (ROOT / "docs/running.md").read_text()
SHA256 = "sha256:" + "ab" * 32


def commands(program: str) -> list[str]:
    """The lines of the page's blocks that run a program, without comments."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)
    lines = "\n".join(text for language, text in blocks if not language).replace("\\\n", " ").splitlines()
    return [line.partition("  #")[0].strip() for line in lines if line.split(" ")[0] == program]


def test_options_of_the_engine_are_accepted(tmp_path):
    """Each command with --check-config, which reads and checks all options."""
    Files(tmp_path, "localhost")  # cert.pem and key.pem
    (tmp_path / "principals.json").write_text('{"principals": []}')
    (tmp_path / ".config/teletensor").mkdir(parents=True)
    (tmp_path / ".config/teletensor/principals.json").write_text('{"principals": []}')
    (tmp_path / "engines-token").write_text("0" * 64)
    shown = commands("teletensord")
    assert len(shown) > 8
    for line in shown:
        words = shlex.split(re.sub(r"sha256:\w{4}\.\.\.", SHA256, line).replace("~", str(tmp_path)))
        done = subprocess.run(
            [BUILD / "bin/teletensord", *words[1:], "--check-config"], cwd=tmp_path, capture_output=True, text=True, timeout=60,
            env=client_environment(HOME=str(tmp_path)),
        )  # fmt: skip
        assert done.returncode == 0, (line, done.stdout, done.stderr)


def test_commands_for_principals_do_what_they_say(tmp_path):
    shown = [line for line in commands("teletensor") if line.split()[1] == "user"]
    printed = {}
    for line in shown:
        done = run(*shlex.split(line)[1:], HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / ".config"), COLUMNS="200")
        assert done.returncode == 0, (line, done.stderr)
        printed[line] = done.stdout
    assert re.fullmatch("[0-9a-f]{64}\n", printed["teletensor user add alice"])
    (listed,) = (text for line, text in printed.items() if line.endswith(" list"))
    for name in ("alice", "nightly", "grafana", "carol", "batch-jobs", "bob@example.org"):
        assert name in listed, listed
    last = run("user", "list", HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path / ".config"), COLUMNS="200").stdout
    assert "alice" not in last and "carol" in last


def test_the_table_has_every_option():
    helped = subprocess.run([BUILD / "bin/teletensord", "--help"], capture_output=True, text=True, timeout=60).stdout
    options = set(re.findall(r"^  (?:-h,)?(--[a-z-]+)", helped, re.M))
    variables = set(re.findall(r"Env:(TELETENSOR_[A-Z_]+)", helped))
    table = PAGE[PAGE.index("## All options") : PAGE.index("## Threads")]
    assert options - set(re.findall(r"`(--[a-z-]+)", table)) == set()
    assert set(re.findall(r"`(--[a-z-]+)", table)) - options == set()
    assert variables - set(re.findall(r"`(TELETENSOR_[A-Z_]+)", table)) == set()


def test_named_subcommands_exist():
    helped = run("--help").stdout
    known = set(re.findall(r"^    ([a-z-]+) ", helped, re.M))
    named = {word for word in re.findall(r"`teletensor ([a-z][a-z-]+)", PAGE)}
    assert len(named) > 6 and named <= known, named - known
