"""The subcommand of the ``teletensor`` command."""

import pytest

from teletensor import cli


@pytest.mark.parametrize("flag", ["--address", "--token", "--admin-token"])
def test_options_of_an_engine_are_rejected(capsys, flag):
    assert cli.main([flag, "x", "launch", "script.py"]) == 1
    assert f"{flag} has no effect on launch" in capsys.readouterr().err


def test_errors(capsys):
    assert cli.main(["launch", "-n", "none", "script.py"]) == 2
    assert "--nproc-per-node: expected a positive number" in capsys.readouterr().err


def test_abbreviations_are_rejected(capsys):
    with pytest.raises(SystemExit):
        cli.main(["launch", "--nproc", "2", "script.py"])
