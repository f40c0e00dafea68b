"""Every sample of every operator under vmap: the results and gradients of a loop over the entries."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.operators.samples import SAMPLES, arguments, call, tensor, values
from tests.operators.test_rows import DIFFERENTIABLE

# Operators with effects outside of their results, of which the tests of vmap call none.
EFFECTS = (
    "group_", "reducer_", "pull", "store_", "checkpoint_", "share_", "publish", "unpublish", "opened_", "open_", "list_publications",
    "graph_", "event_", "profiler_", "memory_", "backward", "saved_", "hook", "unhook", "custom_function", "set_", "requires_grad",
    "manual_seed", "get_", "run_program", "define_program", "drop_program", "explain_program", "expand_program", "program_counters",
    "replay_", "uploaded", "move_leaf", "count_data_write", "accumulate_grads", "clear_", "empty_cache", "reset_", "pointwise_chain",
)  # fmt: skip
ENTRIES = (1.0, 0.5, 0.75)  # factors of floating-point arguments
# Decompositions of which the vectors are determined up to a factor: the result to compare.
DETERMINED = {"eigh_decomposed": 0, "eig_decomposed": 0, "svd_decomposed": 1}
# Results without defined values.
UNDEFINED = {"empty", "empty_like", "new_empty"}


def has_tensors(sample) -> bool:
    return any(isinstance(v, (np.ndarray, list)) and p.is_tensor | p.is_tensor_list
               for p in sample.operator.params if (v := sample.values.get(p.name)) is not None)  # fmt: skip


MAPPED = [s for s in SAMPLES if not s.operator.name.startswith(EFFECTS) and has_tensors(s) and not s.operator.is_random
          and s.operator.name not in UNDEFINED and not any(p.written for p in s.operator.params)]  # fmt: skip


def changed(array: np.ndarray, entry: int) -> np.ndarray:
    """The argument of an entry: scaled, or for integers in another order."""
    if array.dtype.kind in "fc":
        return (array * ENTRIES[entry]).astype(array.dtype)
    return np.roll(array, entry).reshape(array.shape)


def leaves_of(kwargs: dict) -> list[tuple]:
    """Where the tensors of a call are."""
    found = []
    for name, value in kwargs.items():
        if isinstance(value, list):
            found += [(name, i) for i, v in enumerate(value) if hasattr(v, "requires_grad")]
        elif hasattr(value, "requires_grad"):
            found.append((name, None))
    return found


def replaced(kwargs: dict, places: list[tuple], tensors) -> dict:
    made = {k: list(v) if isinstance(v, list) else v for k, v in kwargs.items()}
    for (name, i), value in zip(places, tensors, strict=True):
        if i is None:
            made[name] = value
        else:
            made[name][i] = value
    return made


def cases(torch, sample) -> list[tuple]:
    """(arguments of each entry, places of the mapped tensors), with all tensors mapped, and each one alone."""
    entries = [arguments(torch, sample, lambda name, a, e=e: tensor(torch, changed(a, e))) for e in range(len(ENTRIES))]
    places = leaves_of(entries[0])
    choices = [places] + ([[p] for p in places] if len(places) > 1 else [])
    return [([replaced(entries[0], chosen, [at(e, p) for p in chosen]) for e in entries], chosen) for chosen in choices]


def at(kwargs: dict, place: tuple):
    return kwargs[place[0]] if place[1] is None else kwargs[place[0]][place[1]]


def results_of(torch, sample, entries: list[dict]) -> list[list]:
    """The results of a loop over the entries. Waits for errors."""
    rows = [call(torch, sample, e) for e in entries]
    for row in rows:
        for result in row:
            values(result)
    return rows


def assert_close(got, want, what: str) -> None:
    assert (got.dtype, tuple(got.shape)) == (want.dtype, tuple(want.shape)), what
    a, b = values(got), values(want)
    if a.dtype.kind in "fc":
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=what)
    else:
        np.testing.assert_array_equal(a, b, err_msg=what)


def quiet(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function()


@pytest.mark.parametrize("sample", MAPPED, ids=str)
def test_value(torch, sample):
    for entries, places in cases(torch, sample):
        try:
            want = results_of(torch, sample, entries)
        except (RuntimeError, ValueError, IndexError):  # the operator refuses the changed arguments
            entries = entries[:1] * len(ENTRIES)
            want = results_of(torch, sample, entries)
        stacked = [torch.stack([at(e, p) for e in entries]) for p in places]

        def function(*tensors, kwargs=entries[0], places=places):
            return tuple(call(torch, sample, replaced(kwargs, places, tensors)))

        if len({tuple(tuple(r.shape) for r in row) for row in want}) > 1:
            with pytest.raises(RuntimeError, match="depend on values"):
                quiet(lambda: torch.vmap(function)(*stacked))  # noqa: B023
            continue
        if sample.operator.name == "as_strided":
            with pytest.raises(NotImplementedError, match="as_strided"):
                torch.vmap(function)(*stacked)
            continue
        got = quiet(lambda: torch.vmap(function)(*stacked))  # noqa: B023
        for i, columns in enumerate(zip(*want, strict=True)):
            if i != DETERMINED.get(sample.operator.name, i):
                continue
            for e, expected in enumerate(columns):
                assert_close(got[i][e], expected, f"{sample} with {places} mapped, result {i} of entry {e}")


def gradients_of(torch, total, entries: list[dict], places: list[tuple]) -> list[tuple]:
    """The gradients of a loop over the entries. Waits for errors."""
    numbers = tuple(range(len(places)))
    want = [torch.func.grad(lambda *t, e=e: total(*t, kwargs=e), numbers)(*(at(e, p) for p in places)) for e in entries]
    for row in want:
        for gradient in row:
            values(gradient)
    return want


@pytest.mark.parametrize("sample", [s for s in DIFFERENTIABLE if s in MAPPED], ids=str)
def test_gradient(torch, sample):
    entries, places = cases(torch, sample)[0]
    places = [p for p in places if at(entries[0], p).is_floating_point()]
    if sample.operator.name == "sparse_coalesce":
        entries = entries[:1] * len(ENTRIES)  # other indices have another number of distinct columns

    def total(*tensors, kwargs):
        results = [r for r in call(torch, sample, replaced(kwargs, places, tensors)) if r.is_floating_point() or r.is_complex()]
        return sum(((r.abs() if r.is_complex() else r).sin().sum() for r in results), torch.zeros(()))

    rest = [p for p in leaves_of(entries[0]) if p not in places]
    numbers = tuple(range(len(places)))
    if sample.operator.name == "as_strided":
        return  # refused, as above
    try:
        want = gradients_of(torch, total, entries, places)
    except NotImplementedError:
        return  # not differentiable in one of the arguments
    except RuntimeError:
        if not sample.operator.name.startswith("sparse_"):
            raise
        entries = entries[:1] * len(ENTRIES)  # changed indices are refused
        want = gradients_of(torch, total, entries, places)

    def of_entry(tensors, others):
        kwargs = replaced(entries[0], rest, others)
        return torch.func.grad(lambda *t: total(*t, kwargs=kwargs), numbers)(*tensors)

    stacked = tuple(tuple(torch.stack([at(e, p) for e in entries]) for p in which) for which in (places, rest))
    got = quiet(lambda: torch.vmap(of_entry)(*stacked) if rest else torch.vmap(lambda t: of_entry(t, ()))(stacked[0]))
    for i, columns in enumerate(zip(*want, strict=True)):
        for e, expected in enumerate(columns):
            assert_close(got[i][e], expected, f"gradient {i} of {sample}, entry {e}")
