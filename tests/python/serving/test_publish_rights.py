"""Who may publish, replace, withdraw, call and load models."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests.conftest import IN_PROCESS, client_environment
from tests.python.session.test_principals import Engine, user

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rights")
    (folder / "models").mkdir()
    made = Engine(folder, "--models", str(folder / "models"), "--model-poll", "0")
    made.tokens = {
        name: user(made.file, "add", name, "--role", role)
        for name, role in (("alice", "user"), ("bob", "user"), ("watcher", "observer"), ("root", "operator"))
    }
    made.tokens["carol"] = user(made.file, "add", "carol", "--memory", "64MB")
    yield made.start()
    made.stop()


def as_principal(engine, name: str, program: str) -> None:
    """Runs a program in which every line beginning with `!` has to raise PermissionError, and `?` ValueError."""
    lines = ["import teletensor as torch", "from teletensor import serving", "import pytest"]
    for line in textwrap.dedent(program).strip().splitlines():
        error = {"!": "PermissionError", "?": "ValueError"}.get(line[0])
        lines += [f"with pytest.raises({error}):", f"    {line[1:].strip()}"] if error else [line]
    environment = client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=engine.tokens.get(name, "0" * 64))
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_model_belongs_to_its_principal(engine):
    as_principal(engine, "alice", """
        torch.serve(lambda x: x + 1, "hers", torch.ones(2))
        torch.serve(lambda x: x + 1, "private", torch.ones(2), to=["alice"])
        torch.serve(lambda x: x + 1, "shared", torch.ones(2), to="bob")
        assert torch.models("private")(torch.ones(1)).tolist() == [2] == torch.models("shared")(torch.ones(1)).tolist()
    """)  # fmt: skip
    as_principal(engine, "bob", """
        assert torch.models("hers")(torch.ones(1)).tolist() == [2] == torch.models("shared")(torch.ones(1)).tolist()
        assert {m["name"] for m in torch.models()} == {"hers", "shared"}
        ? torch.models("private")
        ! torch.serve(lambda x: x + 2, "hers", torch.ones(2))
        ! serving.withdraw("hers")
        ! serving.withdraw("private", 1)
        torch.serve(lambda x: x + 2, "his", torch.ones(2))
        assert torch.models("hers")(torch.ones(1)).tolist() == [2]
    """)  # fmt: skip


def test_memory_of_models_counts_for_their_principal(engine):
    as_principal(engine, "carol", """
        weight = torch.ones(1 << 20)
        made = 0
        with pytest.raises(ValueError, match="limit of 64 MiB"):
            for made in range(20): torch.serve(lambda x: x + weight.sum(), f"model{made}", torch.ones(2))
        assert made > 1
        serving.withdraw("model0")
        torch.serve(lambda x: x + weight.sum(), "again", torch.ones(2))
    """)  # fmt: skip


def test_calls_of_the_repository_are_an_operators(engine):
    program = """
        from teletensor import _C
        engine = _C.Inference()
        ! engine.load("his")
        ! engine.unload("his")
        torch.serve(lambda x: x + 1, "loaded", torch.ones(2))
    """
    as_principal(engine, "alice", program)
    as_principal(engine, "root", """
        from teletensor import _C
        torch.serve(lambda x: x + 3, "rooted", torch.ones(2))
        serving.withdraw("rooted")
        _C.Inference().load("loaded")
    """)  # fmt: skip


def test_observers_and_strangers_call_nothing(engine):
    for name in ("watcher", "stranger"):
        as_principal(engine, name, """
            ! torch.models("hers")
            ! torch.models()
        """)  # fmt: skip
