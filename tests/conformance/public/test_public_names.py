"""Every public name of PyTorch exists here or has a reason; every reason is in use; the page is up to date."""

import functools
import inspect
import warnings

import pytest

from . import table


@functools.cache
def _report(package):
    return table.report(package, table.public_names(), table.reasons())


@pytest.fixture
def result(torch):
    return _report(torch)


def test_every_missing_name_has_a_reason(result):
    assert result.unexplained == []


def test_no_reason_is_stale(result):
    assert result.stale == []


def test_the_page_is_up_to_date(result):
    assert table.PAGE.read_text() == table.emit(result), "run `make names`"


def test_names_marked_as_not_implemented_raise(torch, result):
    wrong = []
    for name in result.raises:
        if not hasattr(table.find(torch, name), "__not_implemented__"):
            continue  # its source was read
        args = [torch.ones(1)] if name.startswith("torch.Tensor.") else []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                table.find(torch, name)(*args or (id,) * len(_parameters(table.find(torch, name))))
            wrong.append(name)
        except NotImplementedError as e:
            wrong += [] if name.rpartition(".")[2] in str(e) else [f"{name}: {e}"]
    assert wrong == []


def _parameters(function):
    """The parameters that must be given."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p for p in inspect.signature(function).parameters.values() if p.kind in kinds and p.default is p.empty]


def test_the_most_specific_pattern_gives_the_reason():
    rows = {"torch.a.*": "all", "torch.a.b*": "some"}
    assert table.reason("torch.a.bc", rows) == ("torch.a.b*", "some") and table.reason("torch.c", rows) == ("", "")
