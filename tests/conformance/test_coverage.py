"""Tests of the table of names that are missing here."""

from types import ModuleType, SimpleNamespace

from tests.conformance import coverage
from tests.conformance.covering import COVERED_BY


def test_missing_names_by_use(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("# a comment\n12|pkg.nn.Linear\n7|pkg.jit.script\n5|Tensor.view\n3|Tensor.gone\n")
    package = ModuleType("pkg")
    package.nn, package.Tensor = SimpleNamespace(Linear=1), SimpleNamespace(view=2)
    counts = coverage.read_names(names)
    assert counts == {"pkg.nn.Linear": 12, "pkg.jit.script": 7, "Tensor.view": 5, "Tensor.gone": 3}
    rows = coverage.missing(package, counts)
    assert rows == [(7, "pkg.jit.script", ""), (3, "Tensor.gone", "")]
    page = coverage.emit(rows, counts, 5)
    assert "| 10 or more | 1 | 1 | 0 | 0 |" in page and "| 3 or more | 4 | 2 | 2 | 2 |" in page
    assert "| 7 | `pkg.jit.script` |  |" in page and "Tensor.gone" not in page


def test_reasons_match_prefixes():
    assert coverage.reason("torch.jit.script") and coverage.reason("torch.distributed.init_process_group")
    assert coverage.reason("torch.nn.Linear") == ""


def test_bare_names_are_covered_by_public_names(tmp_path):
    names = tmp_path / "names.txt"
    names.write_text("abs\nadd.Tensor\n_softmax\nrelu||UnaryUfuncInfo|y\n_gone\nlinalg.inv\n")
    package = ModuleType("pkg")
    package.Tensor = SimpleNamespace(abs=1)
    package.add = package.softmax = abs
    package.nn = SimpleNamespace(functional=SimpleNamespace(relu=1))
    package.linalg = SimpleNamespace(inv=1)
    counts = coverage.read_names(names)
    assert list(counts) == ["abs", "add.Tensor", "_softmax", "relu", "_gone", "linalg.inv"]
    assert coverage.missing(package, counts) == [(1, "_gone", "")]


def test_functions_that_cover_internal_names_exist(torch):
    lacking = {name: public for name, (public, _) in COVERED_BY.items() if not coverage.has(torch, public)}
    assert {name for name in lacking if "fft" not in name} == set()
