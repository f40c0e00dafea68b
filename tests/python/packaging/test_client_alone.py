"""Commands of a client that is installed without its extras: each says what to install."""

from __future__ import annotations

import sys

import pytest

from teletensor import cli, ray


@pytest.mark.parametrize("command", ["top", "models", "user list", "serve ."])
def test_without_rich(monkeypatch, capsys, command):
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert cli.main(["--address", "127.0.0.1:1", *command.split()]) == 1
    assert "needs rich: pip install 'teletensor[cli]'" in capsys.readouterr().err


def test_serve_without_an_engine(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("TELETENSOR_DAEMON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ray, "__file__", str(tmp_path / "site/teletensor/ray.py"))  # beside which the engine is looked for
    assert cli.main(["serve", str(tmp_path)]) == 1
    assert "pip install teletensor[engine]" in capsys.readouterr().err
