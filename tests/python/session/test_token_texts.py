"""Tokens and addresses as files and variables have them: whitespace at the ends is removed, other characters are errors."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import IN_PROCESS, client_environment
from tests.python.session.test_principals import Engine, user

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

PROGRAM = """
import sys, teletensor as torch
try:
    torch.connect(sys.argv[1], token=sys.argv[2])
    print(torch.ones(2).sum().item())
except (ValueError, ConnectionError) as error:
    print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    made = Engine(tmp_path_factory.mktemp("tokens"))
    made.user_token = user(made.file, "add", "alice")
    yield made.start()
    made.stop()


@pytest.mark.parametrize("way", ["argument", "environment"])
@pytest.mark.parametrize(
    ("ends", "inside", "expected"), [("\n", "", "2.0"), (" \r\n", "", "2.0"), ("", "\n", "ValueError"), ("", "é", "ValueError"),
                                     ("", "\x01", "ValueError")],
)  # fmt: skip
def test_tokens(engine, way, ends, inside, expected):
    token = engine.user_token
    text = ends + token[:8] + inside + token[8:] + ends
    given, variable = (text, "") if way == "argument" else ("", text)
    environment = client_environment(TELETENSOR_TOKEN=variable)
    command = [sys.executable, "-c", PROGRAM, engine.address + ends, given]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stdout.startswith(expected), (done.returncode, done.stdout, done.stderr)
    assert token[8:] not in done.stdout  # a secret
