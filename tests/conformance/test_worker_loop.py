"""Worker processes of the comparisons with PyTorch: requests and replies, faults, and the choice of the interpreter."""

from __future__ import annotations

import importlib
import sys

import pytest

from tests.conformance import peer
from tests.conformance.rows import Worker

WORKER = """
import os, sys
from tests.conformance.worker_loop import serve_rows

def good(number):
    print("a line that is not a reply", flush=True)
    return {"name": "good", "number": number, "type": int}

def bad(number):
    raise KeyError("the reason")

sys.exit(serve_rows({"good": good, "bad": bad, "ends": lambda number: os._exit(3)}))
"""
TORCH = """
__version__ = "1.2.3"
def set_num_threads(number):
    pass
"""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    """A worker process with a stand-in for PyTorch."""
    (tmp_path / "fake_worker.py").write_text(WORKER)
    (tmp_path / "torch.py").write_text(TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process = Worker(sys.executable, 60, "fake_worker")
    yield process
    process.stop()


def test_replies(worker):
    rows = {
        "?": {"names": ["bad", "ends", "good"], "version": "1.2.3"},
        "good": {"name": "good", "number": 7, "type": "<class 'int'>"},
        "bad": {"name": "bad", "broken": "KeyError: 'the reason'"},
        "missing": {"name": "missing", "broken": "KeyError: 'missing'"},
        "ends": {"name": "ends", "broken": "ended the process (3)"},
    }
    for name, row in [*rows.items(), ("good", rows["good"])]:
        assert worker.ask(name, 7) == row


@pytest.mark.parametrize("comparison", ["op_db", "module_db", "signatures", "differential"])
def test_interpreter_is_an_option(comparison, monkeypatch):
    class ChosenError(Exception):
        pass

    def chosen(args, *packages):
        raise ChosenError(args.python)

    monkeypatch.setattr(peer, "python_of", chosen)
    monkeypatch.setattr(sys, "argv", ["comparison", "--python", "/an/interpreter"])
    with pytest.raises(ChosenError, match="^/an/interpreter$"):
        importlib.import_module(f"tests.conformance.{comparison}.__main__").main()
