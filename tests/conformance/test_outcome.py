"""Tests of the table of suites: every failure is reported."""

import json

from . import run
from .outcome import Outcome, read, read_op_db
from .reasons import REASONS
from .suites import SUITES

REPORT = """<testsuites><testsuite>
  <testcase classname="a.test_x" name="test_good"/>
  <testcase classname="a.test_x" name="test_bad[1]"><failure message="AssertionError: 1 is not 2&#10;more"/></testcase>
  <testcase classname="a.test_x" name="test_broken"><error message="ImportError: gone"/></testcase>
  <testcase classname="a.test_x" name="test_left_out"><skipped message="no such backend"/></testcase>
</testsuite></testsuites>"""


def test_pytest_report_is_read(tmp_path, monkeypatch):
    (tmp_path / "report.xml").write_text(REPORT)
    monkeypatch.setitem(REASONS, "a suite", {r"test_bad\[": "one is not two"})
    outcome = read("a suite", "1.0", tmp_path / "report.xml")
    assert (outcome.passed, outcome.skipped) == (1, 1)
    assert outcome.failures["a.test_x::test_bad[1]"] == "AssertionError: 1 is not 2"
    assert outcome.unexplained() == ["a.test_x::test_broken"]
    assert run.row(outcome) == ["a suite", "1.0", "1", "2", "1", "1: not explained; 1: one is not two"]


def test_op_db_table_is_read(tmp_path):
    same = {"name": "add", "state": "passed", "passed": 5, "failed": 0, "on_purpose": 2, "skipped": 1}
    wrong = {"name": "sub", "state": "failed", "passed": 3, "failed": 4, "on_purpose": 0, "skipped": 0}
    (tmp_path / "op_db.json").write_text(json.dumps({"torch": "2.6", "operators": [same, wrong]}))
    outcome = read_op_db("op_db", tmp_path / "op_db.json")
    assert (outcome.version, outcome.passed, outcome.skipped) == ("torch 2.6", 8, 1)
    assert outcome.unexplained() == ["sub"] and run.row(outcome)[3] == "3"


def test_missing_suite(tmp_path):
    outcome = run.run(SUITES[0], tmp_path)
    assert "data-apis/array-api-tests" in outcome.missing and isinstance(outcome, Outcome)
    assert run.row(outcome)[-1] == outcome.missing


def test_page_keeps_rows_of_suites_that_did_not_run(tmp_path):
    first, second = SUITES[0].name, SUITES[1].name
    page = tmp_path / "page.md"
    run.write(page, [Outcome(first, "1", passed=5), Outcome(second, "2", passed=6)])
    run.write(page, [Outcome(first, "", missing="gone"), Outcome(second, "3", passed=7)])
    assert page.read_text() == run.HEADER + f"| {first} | 1 | 5 | 0 | 0 |  |\n| {second} | 3 | 7 | 0 | 0 |  |\n"


def test_reasons_belong_to_suites():
    assert set(REASONS) <= {suite.name for suite in SUITES}
