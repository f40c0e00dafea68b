"""`teletensor operators`: the table with which a client of another language calls operators."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import yaml

from teletensor import cli
from tests.conftest import IN_PROCESS, ROOT, client_environment

pytestmark = pytest.mark.skipif(IN_PROCESS, reason="tests the command of the ordinary build")


COMMAND = [sys.executable, "-m", "teletensor.cli"]


@pytest.fixture(scope="module")
def table() -> dict:
    done = subprocess.run([*COMMAND, "operators", "--json"], env=client_environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ids_are_those_of_the_declarations(table):
    declared = {
        entry["id"]: entry["op"]
        for path in (ROOT / "engine/ops").glob("*.yaml")
        for entry in yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    }
    found = {operator["id"]: operator["name"] for operator in table["operators"]}
    assert declared.items() <= found.items()
    assert [operator["id"] for operator in table["operators"]] == sorted(found)


def test_parameters(table):
    operators = {operator["name"]: operator for operator in table["operators"]}
    assert operators["sum"] == {
        "id": 300,
        "name": "sum",
        "parameters": [
            {"name": "input", "type": "Tensor"},
            {"name": "dim", "type": "int[]", "optional": True, "default": None},
            {"name": "keepdim", "type": "bool", "default": False},
            {"name": "dtype", "type": "DType", "optional": True, "keyword_only": True, "default": None},
        ],
        "results": 1,
    }
    assert operators["split"]["results"] == -1
    add = {parameter["name"]: parameter for parameter in operators["add"]["parameters"]}
    assert add["other"]["accepts_number"] and add["alpha"]["default"] == 1 and add["alpha"]["keyword_only"]


def test_numbers_of_dtypes(table, torch):
    assert table["dtypes"]["bool"] == 0 and table["dtypes"]["int64"] == 5 and table["dtypes"]["float32"] == 8
    assert {name for name in table["dtypes"] if not isinstance(getattr(torch, name), torch.dtype)} == set()


def test_digest_and_version(table, torch):
    assert len(table["schema_digest"]) == 16 and int(table["schema_digest"], 16) == torch._C.operator_table()["schema_digest"]
    assert table["version"] == torch.__version__


def test_text(capsys):
    assert cli.main(["operators"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  350 matmul(Tensor input, Tensor other) -> 1" in lines
    assert "  300 sum(Tensor input, int[]? dim=None, bool keepdim=False, DType? dtype=None) -> 1" in lines


def test_options_of_an_engine_are_refused(capsys):
    assert cli.main(["--address", "127.0.0.1:1", "operators"]) == 1
    assert "--address has no effect on operators" in capsys.readouterr().err


def test_reader_that_ends(tmp_path):
    """As with `| head -1`: no message, since nothing is wrong with an engine."""
    with (tmp_path / "errors").open("w") as errors:
        process = subprocess.Popen([*COMMAND, "operators", "--json"], env=client_environment(), stdout=subprocess.PIPE, stderr=errors)
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 1
    assert (tmp_path / "errors").read_text() == ""
