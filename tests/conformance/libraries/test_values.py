"""The comparison of programs' values finds differences, the page's rows are replaced one by one, and runs can be resumed."""

import json

import pytest

from . import environment, execution, worker
from .page import HEADER, PAGE, Row, write
from .values import difference

TITLE = HEADER.splitlines()[0]

TENSOR = {"dtype": "float32", "size": [2], "elements": [1.0, -100.0]}
SUMS = {"dtype": "float32", "size": [100], "sums": [1.0, 0.0, 2.0, 3.0], "scale": 10.0, "finite": 100}


@pytest.mark.parametrize(
    "actual, expected, same",
    [
        (1.0, 1.00001, True), (1.0, 1.01, False), (1, 1, True), (True, 1, False), ("a", "a", True), (float("nan"), float("nan"), True),
        ([1, 2], [1, 2], True), ([1], [1, 2], False), ({"a": 1}, {"b": 1}, False), ({"a": [1.0]}, {"a": [2.0]}, False),
        ({**TENSOR, "elements": [1.001, -100.0]}, TENSOR, True), ({**TENSOR, "elements": [1.1, -100.0]}, TENSOR, False),
        ({**TENSOR, "dtype": "float64"}, TENSOR, False), ({**TENSOR, "dtype": "int64"}, {**TENSOR, "dtype": "int64"}, True),
        ({"dtype": "int64", "size": [1], "elements": [7]}, {"dtype": "int64", "size": [1], "elements": [8]}, False),
        ({**SUMS, "sums": [1.001, 0.0, 2.0, 3.0]}, SUMS, True), ({**SUMS, "sums": [1.1, 0.0, 2.0, 3.0]}, SUMS, False),
        ({**SUMS, "finite": 99}, SUMS, False),
    ],
)  # fmt: skip
def test_differences(actual, expected, same):
    assert (difference(actual, expected, 2e-4) == "") is same


def test_rows_are_replaced_one_by_one(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n| suite |\n| other |\n")
    first, second = Row("a", "1"), Row("b", "2")
    first.add("forward", "x_forward", "")
    second.add("forward", "y_forward", "differs|here", "a reason")
    write(page, [first, second])
    first.add("training", "x_training", "no")
    write(page, [first])
    text = page.read_text()
    assert text.startswith("# Title\n\n| suite |\n| other |\n") and text.count(TITLE) == 1 and text.count("| b |") == 1
    assert "| a | 1 | no | 1/1 |  | 0/1 |  |  | x_training: not explained: no |" in text and "y_forward: a reason" in text
    assert first.passed == 1 and first.count == 2


def test_the_page_has_the_section():
    assert TITLE in PAGE.read_text()


@pytest.mark.parametrize(
    "change, kept",
    [({}, True), ({"complete": False}, False), ({"key": "of another program"}, False)],
)
def test_values_of_a_complete_run_of_the_same_program_are_kept(tmp_path, monkeypatch, change, kept):
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(execution, "FOLDER", tmp_path)
    monkeypatch.setattr(execution, "_run", lambda name, library, show: "ran")
    (tmp_path / "requirements.txt").write_text("einops==0.8.2")
    stored = {"key": execution._key("einops"), "complete": True, "running": "", "values": {"import": {"value": True}}, **change}
    for library in ("torch", "teletensor"):
        (tmp_path / f"einops.{library}.json").write_text(json.dumps(stored))
    values = stored["values"] if kept else "ran"
    assert execution.reference("einops", None) == values
    monkeypatch.setattr(execution, "_changed", lambda: 0.0)
    assert execution.values("einops", True, None) == values and execution.values("einops", False, None) == "ran"
    monkeypatch.setattr(execution, "_changed", lambda: float("inf"))
    assert execution.values("einops", True, None) == "ran"


def test_the_programs_of_a_library_are_found_by_name():
    assert worker.modules("transformers") == ["transformers", "transformers_families", "transformers_uses"]
    assert worker.modules("torchmetrics") == ["torchmetrics"]
