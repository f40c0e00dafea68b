"""Functions in C of heapq and bisect, in Python: captures execute them instead, with the comparisons of the functions in C."""

from __future__ import annotations

import bisect
import heapq
import itertools
from collections.abc import Callable
from typing import Any

from ._attributes import raise_
from ._handlers import handlers, handles
from ._source import constant
from ._values import Break, Constant, IteratorValue, SequenceValue, Value


def _less(a, b):
    return a < b


def _greater(a, b):
    return b < a


def _sift_down(heap, start, at, is_before):
    new = heap[at]
    while at > start:
        above = (at - 1) >> 1
        parent = heap[above]
        if not is_before(new, parent):
            break
        heap[at] = parent
        at = above
    heap[at] = new


def _sift_up(heap, at, is_before):
    end = len(heap)
    start = at
    new = heap[at]
    child = 2 * at + 1
    while child < end:
        right = child + 1
        if right < end and not is_before(heap[child], heap[right]):
            child = right
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = new
    _sift_down(heap, start, at, is_before)


def _heapify(heap, is_before):
    for i in reversed(range(len(heap) // 2)):
        _sift_up(heap, i, is_before)


def _heappop(heap, is_before):
    last = heap.pop()
    if heap:
        found = heap[0]
        heap[0] = last
        _sift_up(heap, 0, is_before)
        return found
    return last


def _heapreplace(heap, item, is_before):
    found = heap[0]
    heap[0] = item
    _sift_up(heap, 0, is_before)
    return found


def _heappush(heap, item, is_before):
    heap.append(item)
    _sift_down(heap, 0, len(heap) - 1, is_before)


def _heappushpop(heap, item, is_before):
    if heap and is_before(heap[0], item):
        item, heap[0] = heap[0], item
        _sift_up(heap, 0, is_before)
    return item


def _bisect_left(a, x, lo=0, hi=None, *, key=None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if (a[mid] if key is None else key(a[mid])) < x:
            lo = mid + 1
        else:
            hi = mid
    return lo


def _bisect_right(a, x, lo=0, hi=None, *, key=None):
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        mid = (lo + hi) // 2
        if x < (a[mid] if key is None else key(a[mid])):
            hi = mid
        else:
            lo = mid + 1
    return lo


def _insort_left(a, x, lo=0, hi=None, *, key=None):
    a.insert(_bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def _insort_right(a, x, lo=0, hi=None, *, key=None):
    a.insert(_bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


def _of_heap(name: str, form: Callable, is_before: Callable, count: int) -> Callable:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        heap = ex.real(args[0]) if len(args) == count and not kwargs else None
        if not (isinstance(heap, SequenceValue) and heap.cls is list):
            raise Break(f"{name}() gets wrong arguments, or a heap that is no list")
        if not heap.items and "pop" in name and count == 1 or not heap.items and "replace" in name:
            return raise_(IndexError, "index out of range" if count == 1 else "list index out of range")
        return ex.call(ex.wrap(form, constant(form)), [*args, ex.wrap(is_before, constant(is_before))], {})

    return handler


for _name, _form, _is_before, _count in (
    ("heapify", _heapify, _less, 1), ("heappop", _heappop, _less, 1), ("heapreplace", _heapreplace, _less, 2),
    ("heappush", _heappush, _less, 2), ("heappushpop", _heappushpop, _less, 2), ("_heapify_max", _heapify, _greater, 1),
    ("_heappop_max", _heappop, _greater, 1), ("_heapreplace_max", _heapreplace, _greater, 2),
):  # fmt: skip
    if hasattr(heapq, _name):
        handlers[getattr(heapq, _name)] = _of_heap(_name, _form, _is_before, _count)


def _of_position(form: Callable, of_constants: Callable | None) -> Callable:
    def handler(ex: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if of_constants is not None and "key" not in kwargs:
            try:
                return of_constants(ex, args, kwargs)
            except Break:  # elements that are no numbers or strings
                pass
        return ex.call(ex.wrap(form, constant(form)), args, kwargs)

    return handler


for _form in (_bisect_left, _bisect_right, _insort_left, _insort_right):
    _function = getattr(bisect, _form.__name__[1:])
    handlers[_function] = _of_position(_form, handlers.get(_function))


@handles(itertools.tee)
def _tee(ex, args, kwargs):
    count = ex.python_value(args[1]) if len(args) > 1 else 2
    if kwargs or not args or len(args) > 2 or type(count) is not int or count < 0:
        raise Break("tee() gets wrong arguments")
    iterator = ex.iterate(args[0])
    read: list[Value] = []

    def one() -> Value:
        position = 0

        def advance() -> Value:
            nonlocal position
            if position == len(read):
                read.append(ex.advance(iterator))
            position += 1
            return read[position - 1]

        return IteratorValue(advance, None, type(itertools.tee(())[0]))

    return SequenceValue([one() for _ in range(count)], tuple) if count else Constant(())
