"""Functions of itertools: generators in Python, which captures execute instead of those in C, or the functions themselves, of values."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

from ._attributes import raise_
from ._handlers import handlers, handles
from ._iteration import stop
from ._source import constant
from ._values import IteratorValue, SequenceValue


def _accumulate(iterable, func=operator.add, *, initial=None):
    func = operator.add if func is None else func
    total = initial
    is_first = initial is None
    if not is_first:
        yield total
    for element in iterable:
        total = element if is_first else func(total, element)
        is_first = False
        yield total


def _count(start=0, step=1):
    n = start
    while True:
        yield n
        n = n + step


def _cycle(iterable):
    saved = []
    for element in iterable:
        yield element
        saved.append(element)
    while saved:
        yield from saved


def _repeat(object, times=None):  # noqa: A002
    if times is None:
        while True:
            yield object
    for _ in range(times):
        yield object


def _zip_longest(*iterables, fillvalue=None):
    iterators = [iter(i) for i in iterables]
    left = len(iterators)
    is_done = [False] * left
    while left:
        values = []
        for i, it in enumerate(iterators):
            value = fillvalue
            if not is_done[i]:
                try:
                    value = next(it)
                except StopIteration:
                    is_done[i] = True
                    left -= 1
            values.append(value)
        if left:
            yield tuple(values)


def _starmap(function, iterable):
    for args in iterable:
        yield function(*args)


def _groupby(iterable, key=None):
    iterator = iter(iterable)
    is_finished = False
    try:
        element = next(iterator)
    except StopIteration:
        return
    k = element if key is None else key(element)

    def group(of):
        nonlocal element, k, is_finished
        yield element
        for element in iterator:
            k = element if key is None else key(element)
            if not k == of:  # noqa: SIM201 - as itertools compares
                return
            yield element
        is_finished = True

    while not is_finished:
        of = k
        elements = group(of)
        yield of, elements
        for _ in elements:  # the next group begins where this one ends
            pass


def _takewhile(predicate, iterable):
    for element in iterable:
        if not predicate(element):
            return
        yield element


def _dropwhile(predicate, iterable):
    drops = True
    for element in iterable:
        drops = drops and predicate(element)
        if not drops:
            yield element


def _pairwise(iterable):
    is_first = True
    before = None
    for element in iterable:
        if not is_first:
            yield before, element
        before, is_first = element, False


def _compress(data, selectors):
    for element, is_selected in zip(data, selectors):
        if is_selected:
            yield element


def _filterfalse(predicate, iterable):
    for element in iterable:
        if not (element if predicate is None else predicate(element)):
            yield element


def _from_iterable(iterables):
    for iterable in iterables:
        yield from iterable


def _by_form(original: Any, form: Callable) -> Callable:
    def handler(ex, args, kwargs):
        generator = ex.real(ex.call(ex.wrap(form, constant(form)), args, kwargs))

        def advance():
            result.remake = None
            return ex.advance(generator)

        result = IteratorValue(advance, None, original)
        result.remake = lambda code: f"{code.constant(original)}({code.arguments(args, kwargs)})"
        return result

    return handler


def _of_pools(original: Any) -> Callable:
    """The handler of a function that reads its iterables when it is called."""

    def handler(ex, args, kwargs):
        pools = [ex.elements(a) for a in (args if original is itertools.product else args[:1])]
        numbers = [ex.python_value(ex.real(a)) for a in args[len(pools) :]]
        try:
            tuples = original(*pools, *numbers, **{name: ex.python_value(ex.real(v)) for name, v in kwargs.items()})
        except (TypeError, ValueError) as e:
            return raise_(type(e), str(e))

        def advance():
            found = next(tuples, None)
            return stop() if found is None else SequenceValue(list(found), tuple)

        return IteratorValue(advance, None, original)

    return handler


for _function in (itertools.product, itertools.permutations, itertools.combinations, itertools.combinations_with_replacement):
    handles(_function)(_of_pools(_function))
for _form in (
    _accumulate, _count, _cycle, _repeat, _zip_longest, _starmap,
    _groupby, _takewhile, _dropwhile, _compress, _filterfalse, _pairwise,
):  # fmt: skip
    _original = getattr(itertools, _form.__name__[1:], None)
    if _original is not None:  # pairwise is missing in Python 3.9
        handles(_original)(_by_form(_original, _form))
handlers[itertools.chain.from_iterable] = _by_form(itertools.chain, _from_iterable)
