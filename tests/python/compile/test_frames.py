"""Functions that look at frames, causes and contexts of exceptions, and the lines of errors of a Program."""

from __future__ import annotations

import gc
import inspect
import logging
import sys
import traceback
import warnings
import weakref

import pytest

import teletensor as torch


def make_tensors():
    global X
    X = torch.ones(3)


NAME = 5


@pytest.fixture(params=["eager", "inductor"])
def compiled(request):
    torch._dynamo.reset()
    return lambda f: torch.compile(f, backend=request.param)


def names_of_locals(x):
    y = x + 1
    return y, sorted(locals())


def names_of_vars_and_dir(x):
    y = x + 1
    return y, sorted(vars()), sorted(dir())


def evaluated(x):
    k = 3  # noqa: F841
    y = x * eval("k * NAME")
    exec("y.add_(k)")
    return y


def formatted(x):
    k = 3
    return x * 2, "{k}".format(**locals())  # noqa: UP032


def own_frame(x):
    y = x + 1
    return y, sys._getframe().f_code.co_name, inspect.currentframe().f_lineno, inspect.stack()[0].function


def names_of_caller():
    return sorted(n for n in sys._getframe(1).f_locals if not n.startswith("<")), sys._getframe(1).f_code.co_name


def calls_helper(x):
    y = x + 1
    found = names_of_caller()
    return y * 2, found


class Base:
    def scaled(self, x):
        return x * 2


class Derived(Base):
    def scaled(self, x):
        print(end="")
        return super().scaled(x) + 1


def global_names(x):
    y = x + 1
    return y, "NAME" in globals(), globals()["NAME"]


@pytest.mark.parametrize(
    "function", [names_of_locals, names_of_vars_and_dir, evaluated, formatted, own_frame, calls_helper, global_names, Derived().scaled]
)
def test_functions_see_the_users_frame(compiled, function):
    f = compiled(function)
    expected = function(X)
    for _ in range(3):
        got = f(X)
        if isinstance(expected, tuple):
            torch.testing.assert_close(got[0], expected[0])
            assert got[1:] == expected[1:]
        else:
            torch.testing.assert_close(got, expected)


def test_called_functions_see_the_users_frame(compiled):
    def f(x):
        return names_of_locals(x + 1), formatted(x)

    got = compiled(f)(X)
    assert got[0][1] == ["x", "y"] and got[1][1] == "3" and got[0][0].tolist() == [3] * 3


def test_they_do_not_count_as_recompilations(compiled):
    f = compiled(names_of_locals)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, 12):
            assert f(torch.ones(n))[0].shape == (n,)


def warns(x):
    y = x + 1
    warnings.warn("about x", stacklevel=1)
    return y * 2


def logs(x):
    y = x + 1
    logging.getLogger("test_frames").warning("about %s", "x")
    return y * 2


def test_warnings_and_logs_have_the_users_line(compiled, caplog):
    with pytest.warns(UserWarning, match="about x") as caught:
        assert compiled(warns)(X).tolist() == [4] * 3
    assert caught[0].filename == __file__ and caught[0].lineno == warns.__code__.co_firstlineno + 2
    assert compiled(logs)(X).tolist() == [4] * 3
    (record,) = caplog.records
    assert record.funcName == "logs" and record.lineno == logs.__code__.co_firstlineno + 2 and record.pathname == __file__


def test_warnings_of_called_functions_have_the_users_line(compiled):
    def checked(x):
        warnings.warn("about x", stacklevel=2)
        return x + 1

    def f(x):
        y = x * 2
        return checked(y) * 2

    g = compiled(f)
    for _ in range(2):
        with pytest.warns(UserWarning, match="about x") as caught:
            assert g(X).tolist() == [6] * 3
        assert caught[0].filename == __file__ and caught[0].lineno == f.__code__.co_firstlineno + 2


def with_cause(x):
    try:
        {}["k"]
    except KeyError as e:
        raise RuntimeError("r") from e


def with_context(x):
    y = x + 1
    try:
        raise ValueError("in")
    except ValueError:
        raise TypeError("out", y.shape)  # noqa: B904


def from_none(x):
    try:
        raise ValueError("in")
    except ValueError:
        raise TypeError("out") from None


def from_a_class(x):
    x = x + 1
    raise RuntimeError("r") from KeyError("k")


def raised_again(x):
    try:
        raise ValueError("in")
    except ValueError as e:
        raise e


def in_callee(x):
    return with_cause(x + 1)


def in_finally(x):
    try:
        raise ValueError("in")
    finally:
        {}["k"]


def chain(e):
    return None if e is None else (type(e), str(e), chain(e.__cause__), chain(e.__context__), e.__suppress_context__)


@pytest.mark.parametrize("function", [with_cause, with_context, from_none, from_a_class, raised_again, in_callee, in_finally])
def test_causes_and_contexts(compiled, function):
    def caught(f):
        try:
            f(X)
        except Exception as e:  # noqa: BLE001
            return chain(e), [s.lineno for s in traceback.extract_tb(e.__traceback__) if s.name == function.__name__]
        raise AssertionError

    expected = caught(function)
    f = compiled(function)
    for _ in range(2):
        assert caught(f) == expected


def kept(x):
    try:
        raise ValueError("in")
    except ValueError as e:
        error = RuntimeError("r")
        try:
            raise error from e
        except RuntimeError as r:
            found = r
    return x + 1, found


def test_a_result_that_is_an_exception(compiled):
    assert chain(compiled(kept)(X)[1]) == chain(kept(X)[1])


def picks(x, i):
    y = x * 2
    return torch.gather(y, 0, i)


def picks_in_callee(x, i):
    return picks(x + 1, i) + 1


@pytest.mark.parametrize("function", [picks, picks_in_callee])
def test_errors_of_a_program_name_the_users_line(function):
    torch._dynamo.reset()
    f = torch.compile(function)
    assert f(X, torch.tensor([0, 1])).shape == (2,)
    with pytest.raises(IndexError) as caught:
        f(X, torch.tensor([0, 7])).tolist()
    line = picks.__code__.co_firstlineno + 2
    assert f"{__file__}:{line} in picks" in str(caught.value) and "eval_with_key" not in str(caught.value)


def test_classes_made_in_a_loop_are_freed(compiled):
    f = compiled(lambda x, a: x + a.k)
    made = []
    for k in range(3):
        cls = type("Made", (), {"k": k})
        assert f(X, cls())[0] == 1 + k
        made.append(weakref.ref(cls))
        del cls
    torch._dynamo.reset()
    gc.collect()
    assert all(ref() is None for ref in made)
