"""The runner of PyTorch's unit tests: it records the outcome of each test, also of one that takes too long or ends the process."""

import sys
from types import ModuleType

import pytest

from . import sections
from .distributed import absent
from .distributed.absent import Absent, AbsentModule
from .unit_tests import comparison, former_names, presentation
from .unit_tests.comparison import compare, kinds
from .unit_tests.execution import Outcome, run

FILE = """
import os, time, unittest, torch
from torch._C import a_private_name
torch.ones(2).sum().item()  # starts an engine
class Test(unittest.TestCase):
    def test_a_private_name(self): a_private_name()
    @a_private_name(3)
    def test_decorated(self): pass
    @unittest.skipIf(a_private_name, "a condition that is false")
    def test_conditional(self): pass
    def test_fails(self): self.assertEqual(torch.ones(2).sum().item(), 3)
    def test_hangs(self): time.sleep(60)
    def test_kills(self): os._exit(3)
    def test_passes(self): assert torch.ones(2).sum().item() == 2
    def test_skips(self): self.skipTest("no reason")
    @unittest.expectedFailure
    def test_wrong(self): assert torch.ones(2).sum().item() == 3
"""
PASSED, FAILED, SKIPPED = Outcome("passed"), Outcome("failed", "ValueError: 3 is not 4"), Outcome("skipped", "no LAPACK")


@pytest.mark.slow
def test_every_outcome_is_recorded(tmp_path):
    (tmp_path / "test_a.py").write_text(FILE)
    outcomes = run(tmp_path / "test_a.py", "teletensor", sys.executable, tmp_path / "a.jsonl", limit=3)
    states = {name.removeprefix("Test::test_"): outcome.state for name, outcome in outcomes.items()}
    assert states == {
        "a_private_name": "failed", "decorated": "failed", "conditional": "passed", "fails": "failed",
        "hangs": "failed", "kills": "failed", "passes": "passed",
        "skips": "skipped", "wrong": "passed",
    }  # fmt: skip
    assert all("a_private_name" in outcomes[f"Test::test_{name}"].message for name in ("a_private_name", "decorated"))
    assert "2.0 != 3" in outcomes["Test::test_fails"].message and "no reason" in outcomes["Test::test_skips"].message
    assert "longer than 3 s" in outcomes["Test::test_hangs"].message
    assert outcomes["Test::test_kills"].message == "ended the process (3)"


def test_former_names_are_set_where_they_are_missing(monkeypatch):
    module = ModuleType("a_module")
    module.name = 4
    monkeypatch.setitem(sys.modules, "a_module", module)
    monkeypatch.setattr(former_names, "NAMES", {"a_module.former": lambda m: m.name + 1, "a_module.name": lambda _: 0})
    former_names.provide("from a_module import former, name")
    assert (module.former, module.name) == (5, 4)


def test_relative_imports_are_provided(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", AbsentModule("torch"))
    assert absent.provide("from .values import a", package="torch.b") == ["torch.b.values.a"]
    assert isinstance(sys.modules.pop("torch.b.values").a, Absent) and sys.modules.pop("torch.b")


def test_a_file_that_cannot_be_imported(tmp_path):
    (tmp_path / "test_a.py").write_text("import nothing_of_this_name")
    outcomes = run(tmp_path / "test_a.py", "teletensor", sys.executable, tmp_path / "a.jsonl", limit=3)
    assert outcomes.keys() == {""} and "nothing_of_this_name" in outcomes[""].message
    assert compare("test_a", outcomes, {"T::a": PASSED}).failures == {"T::a": outcomes[""].message}


@pytest.mark.parametrize(
    "ours, theirs, counted",
    [
        (PASSED, PASSED, "both"), (PASSED, FAILED, "only_ours"), (FAILED, FAILED, "neither"), (FAILED, PASSED, "failures"),
        (SKIPPED, PASSED, "failures"), (FAILED, SKIPPED, ""), (SKIPPED, FAILED, ""),
    ],
)  # fmt: skip
def test_tests_are_counted_by_both_outcomes(ours, theirs, counted):
    result = compare("test_a", {"T::a": ours}, {"T::a": theirs})
    values = {"both": result.both, "only_ours": result.only_ours, "neither": result.neither, "failures": len(result.failures)}
    assert values == {name: int(name == counted) for name in values}


def test_failures_are_grouped_by_reason(monkeypatch):
    monkeypatch.setattr(comparison, "REASONS", {r"test_b::T::c: .*LAPACK": "no LAPACK on purpose"})
    theirs = dict.fromkeys(("T::a", "T::b", "T::c"), PASSED)
    result = compare("test_b", {"T::a": Outcome("failed", "ValueError: 5 is not 6"), "T::b": FAILED, "T::c": SKIPPED}, theirs)
    assert result.cells() == ["test_b", "all", "0", "1", "2", "0", "0", "1: no LAPACK on purpose"]
    assert kinds(result.unexplained()) == [("ValueError: _ is not _", 2)]


def test_rows_of_sections_are_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n## B\n\n| name |\n|---|\n| x |\n")
    header = "## A\n\nText.\n\n| file | count |\n|---|---|\n"
    sections.write(page, header, ["| c | 1 |", "| b | 2 |"], ["a", "b", "c"])
    page.write_text(page.read_text() + "\n## C\n\n| kept |\n")
    sections.write(page, header, ["| a | 3 |", "| b | 4 |"], ["a", "b", "c"])
    table = "| a | 3 |\n| b | 4 |\n| c | 1 |\n"
    assert page.read_text() == f"# Page\n\n## B\n\n| name |\n|---|\n| x |\n\n{header}{table}\n## C\n\n| kept |\n"


def test_tests_of_modules_have_pytorchs_names():
    module = ModuleType("common_modules")
    module.MODULE_CLASS_NAMES = {int: "teletensor.nn.Linear", str: "nn.Conv1d"}
    presentation._name_modules(module)
    assert list(module.MODULE_CLASS_NAMES.values()) == ["nn.Linear", "nn.Conv1d"]
