"""A slice of the comparison with moved arguments, with PyTorch's recorded outcomes; the runner; the list of reasons."""

from __future__ import annotations

import json
import math
import sys
import warnings

import pytest

from tests.conformance.differential import page, record
from tests.conformance.differential.pool import Journal, Limits, Row, Worker

RECORDED = json.loads(record.OUTCOMES.read_text())
CALLS = record.calls()


def _same(ours, theirs) -> bool:
    if isinstance(theirs, float) and isinstance(ours, (int, float)):
        return math.isclose(ours, theirs, rel_tol=2e-4, abs_tol=2e-5)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and ours.keys() == theirs.keys() and all(_same(ours[k], v) for k, v in theirs.items())
    return type(ours) is type(theirs) and ours == theirs


def _raised(outcome: list) -> tuple[list[str], str]:
    """The names of an exception's class and its base classes, and its type and message; empty if there is none."""
    return (outcome[2], f"{outcome[2][0]}: {outcome[3]}") if outcome[1:2] == ["raises"] else ([], "")


def _difference(ours: list, theirs: list) -> str:
    """How the outcomes of a probe differ, as on the page; an exception may be of a subclass or a base class of PyTorch's."""
    text = ours[0]
    (mine, refusal), (other, refused) = _raised(ours), _raised(theirs)
    if mine and other:
        is_same = {mine[0], other[0]} & {*mine} & {*other} and (mine[0] == other[0] or "NotImplementedError" not in (mine[0], other[0]))
        return "" if is_same else f"{text}: {refusal}; PyTorch raises {refused}"
    if refused:
        return f"{text}: no error, PyTorch raises {refused}"
    if refusal:
        return f"{text}: {refusal}"
    return "" if _same(ours[1], theirs[1]) else f"{text}: values, at {ours[1]}, PyTorch has {theirs[1]}"


def _differences(torch, text: str) -> list[str]:
    name, what, _ = CALLS[text]
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = record.outcomes(name, text, torch)
    for mine, theirs in zip(ours, RECORDED[text]):
        found.append(_difference(mine, theirs))
    found += [f"{len(ours)} probes, PyTorch has {len(RECORDED[text])}"] if len(ours) != len(RECORDED[text]) and not any(found) else []
    path = name.split("#")[0]
    return [d for d in found if d and not page.entry_of(path, what, d)]


def test_the_slice_is_recorded():
    assert list(CALLS) == list(RECORDED), "run `.venv-peers/bin/python -m tests.conformance.differential.record`"


@pytest.mark.parametrize("group", record.GROUPS)
def test_calls_with_moved_arguments(torch, group):
    chosen = [text for text, (name, _, _) in CALLS.items() if record.written.entries()[name][0] == group]
    found = {text: differences for text in chosen if (differences := _differences(torch, text))}
    assert found == {}
    assert chosen


# Steps of a name: "passed", "failed", "crash" (the process ends), "hang".
FAKE = """
import json, os, sys, time
print('["ready"]', flush=True)
for line in sys.stdin:
    name, _, first = json.loads(line)
    for n, what in enumerate(name.split()[first:], first):
        print(json.dumps(["at", n, f"torch.{what}", "x=1", "torch.f#0"]), flush=True)
        if what == "crash":
            os._exit(3)
        if what == "hang":
            time.sleep(600)
        print(json.dumps([what, 2 if what == "passed" else "text"]), flush=True)
    print('["done"]', flush=True)
"""


@pytest.fixture
def worker(tmp_path, monkeypatch):
    (tmp_path / "fake_differential_worker.py").write_text(FAKE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    worker = Worker(sys.executable, Limits(call=1.0), "fake_differential_worker")
    yield worker
    worker.stop()


@pytest.mark.parametrize(
    ("name", "passed", "found"),
    [
        ("passed passed", 4, []),
        ("passed failed skipped passed", 4, [("torch.failed", "text")]),
        ("passed crash passed crash", 4, [("torch.crash", "the call ended the process (3)")] * 2),
        ("hang passed", 2, [("torch.hang", "the call took more than 1 s")]),
        ("crash", 0, [("torch.crash", "the call ended the process (3)")]),
    ],
)
def test_a_call_that_crashes_or_hangs_costs_one_call(worker, name, passed, found):
    row = worker.row(name, 1)
    assert (row.counts.get("passed", 0), [(path, text) for path, _, text in row.found]) == (passed, found)
    assert worker.row("passed", 1).counts == {"passed": 2}


def test_a_journal_continues_only_for_the_same_sources(tmp_path):
    path = tmp_path / "rows.jsonl"
    Journal(path, "mark").add(Row("add", {"passed": 3}))
    path.write_text(path.read_text() + '{"name": "sub", "cou')  # the writer was stopped here
    assert list(Journal(path, "mark").rows) == ["add"]
    assert Journal(path, "mark").rows["add"].counts == {"passed": 3}
    assert list(Journal(path, "other", keep=True).rows) == ["add"]
    assert list(Journal(path, "another").rows) == []


def test_reasons_are_complete():
    assert [e for e in page.TABLE if set(e) - {"argument", "saying"} != {"names", "kind", "why"} or not e["why"]] == []
    assert [e for e in page.TABLE if not set(e["kind"].split(", ")) <= page.KINDS.keys()] == []


def test_a_reason_for_results_is_about_a_few_names_and_one_difference():
    results = [e for e in page.TABLE if "result" in e["kind"]]
    assert [e for e in results if e["kind"] != "result" or "saying" not in e or "*" in str(e["names"])] == []


SUM = "Expected reduce to be one of prod, mean, amax or amin but got sum"
OUTSIDE = "index 6 is out of bounds"
ROWS = [
    (["torch.add", "by position", "result 1: 2 of 3 values, at [0] 1, PyTorch has 2"], False),
    (["torch.nn.functional.ctc_loss", "blank=1", "7 of 16 values, at [2] 1, PyTorch has 2 <- float32[5, 2]"], True),
    (["torch.nn.functional.ctc_loss", "blank=2", "7 of 16 values, at [2] 1, PyTorch has 2 <- float32[5, 2]"], False),
    (["torch.index_reduce", "reduce='sum'", f"no error, PyTorch raises RuntimeError: {SUM}"], True),
    (["torch.index_reduce", "reduce='sum'", "2 of 3 values, at [0] 1, PyTorch has 2"], False),
    (["torch.gather", "dim=0", f"IndexError: [gather] {OUTSIDE} ; PyTorch raises RuntimeError: {OUTSIDE}"], True),
    (["torch.gather", "dim=0", f"IndexError: [gather] {OUTSIDE} <- float32[3]"], False),
]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("f(x): no error, PyTorch raises TypeError: no", "accepted"),
        ("step 1: ValueError: [f] bad: x <- float32[]", "refused"),
        ("ValueError: bad; PyTorch raises TypeError: no", "exception"),
        ("result 1: sizes [], PyTorch has [5] <- float32[5]", "result"),
        ("repr RNNCell(1), PyTorch has ValueError", "result"),
    ],
)
def test_kind_of_a_difference(text, kind):
    assert page.kind_of(text) == kind


@pytest.mark.parametrize(("found", "is_explained"), ROWS)
def test_a_reason_applies_to_its_names_and_texts(found, is_explained):
    differences, _ = page.differences([Row("x", {"failed": 1}, [], [found])])
    assert [bool(d.why) for d in differences] == [is_explained]
    assert ("not explained" in page.page([Row("x", {"failed": 1}, [], [found])], "2.15.0")) != is_explained
