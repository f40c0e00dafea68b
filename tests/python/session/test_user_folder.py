"""Files of a user without HOME: in the home of the password database, or an error; never below the working directory."""

from __future__ import annotations

import os
import pwd
import subprocess

import pytest

from tests.conftest import BUILD, IN_PROCESS, client_environment
from tests.python.session.test_principals import COMMAND

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]
DAEMON = str(BUILD / "bin/teletensord")
PYTHON = str(BUILD / "../.venv/bin/python")

# Environments without a folder: relative paths, and, where the test may change its user, one without a password entry.
ENVIRONMENTS = [({"HOME": "home"}, {}), ({"HOME": "."}, {}), ({"XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}, {})]
if os.geteuid() == 0:
    ENVIRONMENTS.append(({}, {"user": 54321, "group": 54321}))


def run(*words: str, environment, folder, options=None) -> subprocess.CompletedProcess:
    base = {name: value for name, value in client_environment().items() if name != "HOME" and not name.startswith(("XDG_", "TELETENSOR_"))}
    return subprocess.run(
        words, env={**base, "TELETENSOR_CUDA_PLUGIN": "", **environment}, cwd=folder, capture_output=True, text=True, timeout=60,
        **(options or {}),
    )


@pytest.mark.parametrize(("environment", "options"), ENVIRONMENTS)
def test_the_engine_names_the_variable_and_the_option(tmp_path, environment, options):
    tmp_path.chmod(0o777)
    listen = ("--listen", "127.0.0.1:1")
    for words, expected in (
        ((), "HOME, or use --token-file"),
        (("--no-auth", "--tls-self-signed"), "HOME, or use --tls-dir"),
        (("--no-auth", "--http", "127.0.0.1:1", "--models", "/tmp"), "HOME, or use --model-cache"),
    ):
        done = run(DAEMON, *listen, *words, environment=environment, folder=tmp_path, options=options)
        assert done.returncode == 2 and expected in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("environment", [environment for environment, options in ENVIRONMENTS if not options])
def test_clients_store_nothing_below_the_working_directory(tmp_path, environment):
    done = run(COMMAND, "user", "add", "alice", environment=environment, folder=tmp_path)
    assert done.returncode == 1 and "HOME, or use --file" in done.stderr
    script = "import teletensor as torch\ntry:\n    print(torch.hub.get_dir())\nexcept RuntimeError as error:\n    print(error)"
    done = run(PYTHON, "-c", script, environment=environment, folder=tmp_path)
    assert done.returncode == 0 and "set HOME or TORCH_HOME" in done.stdout, done.stderr
    script = "from teletensor.distributed import _serving\ntry:\n    _serving.group_token()\nexcept ValueError as error:\n    print(error)"
    done = run(PYTHON, "-c", script, environment=environment, folder=tmp_path)
    assert "set HOME or TELETENSOR_GROUP_TOKEN" in done.stdout, done.stderr
    assert not list(tmp_path.iterdir())


def test_without_home_the_password_entry_counts(tmp_path):
    done = run(PYTHON, "-c", "from teletensor import _C; print(_C.user_folder('config'))", environment={}, folder=tmp_path)
    assert done.stdout.strip() == os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".config")
