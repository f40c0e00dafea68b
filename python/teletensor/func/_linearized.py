"""Recorded: a tangent whose operators are recorded, so that they can be repeated with other tangents (linearize)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import _C, _transforms
from .._C import Tensor
from .._grad_mode import set_grad_enabled
from .._library.engine_operators import operator_named
from . import tree
from ._forward_call import batched_like
from ._transformed import Level, Transformed, read_inside, root, run_grad


class Recorded(Transformed):
    """A tangent. Its value is that for tangents of zero, with which the operators are recorded."""

    _level: LinearLevel
    _place: int  # among the tensors of a repetition

    def with_value(self, change: Callable[[Tensor], Tensor]) -> Recorded:
        return self._level.step(lambda values: [change(values[0])], [self])[0]

    def as_leaf(self) -> Recorded:
        return self.with_value(_transforms.leaf)

    def as_untaped(self) -> Recorded:
        return self.with_value(_transforms.untaped)

    def __repr__(self, *, tensor_contents=None) -> str:
        return f"Recorded(level={self._level.number}, value={self._value!r})"


read_inside(Recorded)


class _Step(NamedTuple):
    """A computation with the tensors at `places`, whose results are those at `results`."""

    compute: Callable[[list], Sequence[Any]]
    places: list[int]
    results: list[int]
    writes: bool
    records_grad: bool


class _Constant:
    """A tensor among the arguments of a step that is no tangent: `holder[place]`, and its version when it was used."""

    def __init__(self, holder: list, place: int, version: int) -> None:
        self.holder, self.place, self.version = holder, place, version

    tensor = property(lambda self: self.holder[self.place])

    def is_current(self) -> bool:
        """Whether the tensor has not been written since."""
        return self.tensor._version == self.version


def _mapped_like(value: Any, tangents: list[Tensor]) -> Any:
    """A new tensor, with an entry of its own for each entry of the vmaps that map over the tangents."""
    if not isinstance(value, Tensor):
        return value
    made = value
    for tangent in tangents:
        made = batched_like(made, tangent)
    return value if made is value else made.clone()


class _Recording(threading.local):
    def __init__(self) -> None:
        self.levels: list[LinearLevel] = []


_recording = _Recording()


def _storage(tensor: Tensor) -> tuple:
    inside = root(tensor)
    return inside._session, inside._storage[0]


def before_write(tensors: Sequence[Any]) -> None:
    """Lets the recordings of this thread copy the values that they use of tensors which are about to be written."""
    if _recording.levels:
        storages = {_storage(t) for t in tensors}
        for level in _recording.levels:
            level.before_write(storages)


class LinearLevel(Level):
    """The recording of the operators that are applied to tangents."""

    def __init__(self) -> None:
        self.number = _transforms.next_number()
        self.is_running = False
        self._steps: list[_Step] = []
        self._constants: dict[tuple, list[_Constant]] = {}  # by storage
        self._count = 0

    def __enter__(self) -> LinearLevel:
        self.is_running = True
        _recording.levels.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.is_running = False
        _recording.levels.remove(self)

    def input(self, value: Tensor) -> Recorded:
        """A tangent that a repetition receives."""
        return self._wrap(value)

    def _wrap(self, value: Tensor) -> Recorded:
        made = _C._make_wrapper(
            Recorded, value.shape, list(value.stride()), value.storage_offset(), value.dtype, value.device
        )
        made._value, made._level, made._place = value, self, self._count
        self._count += 1
        return made

    def _has(self, value: Any) -> bool:
        return isinstance(value, Recorded) and value._level is self

    def step(self, compute: Callable[[list], Sequence[Any]], inputs: list[Recorded], writes: bool = False) -> list:
        """Computes and records. `compute` receives the values of the inputs."""
        found = compute([x._value for x in inputs])
        made = [self._wrap(r) if isinstance(r, Tensor) else r for r in found]
        results = [m._place if isinstance(m, Recorded) else -1 for m in made]
        self._steps.append(_Step(compute, [x._place for x in inputs], results, writes, _C.is_grad_enabled()))
        return made

    def _keep(self, values: Sequence[Any]) -> list:
        """A copy of a call's arguments, in which constants may be replaced."""
        kept = [self._keep(v) if isinstance(v, (list, tuple)) else v for v in values]
        for i, value in enumerate(kept):
            if isinstance(value, Tensor) and not self._has(value):
                self._constants.setdefault(_storage(value), []).append(_Constant(kept, i, value._version))
        return kept

    def before_write(self, storages: set) -> None:
        """Replaces the constants in these storages by copies."""
        for storage in storages & self._constants.keys():
            uses = self._constants[storage]
            written = [c for c in uses if c.is_current()]
            self._constants[storage] = [c for c in uses if not c.is_current()]
            copies: dict[int, Tensor] = {}
            for c in written:
                if id(c.tensor) not in copies:
                    copies[id(c.tensor)] = c.tensor.clone()
            for c in written:
                c.holder[c.place] = copies[id(c.tensor)]

    def compute(self, name: str, arguments: list, into: list | None) -> list:
        if not self.is_running:
            raise RuntimeError(f"linearize: {name} received a tensor of a function which has ended")
        op = operator_named(name)
        targets = into or []
        if not all(map(self._has, targets)):
            raise NotImplementedError(f"linearize: {name} cannot write a tangent to a tensor that is none")
        arguments = self._keep(arguments)
        inputs = [v for v in tree.leaves([arguments, targets]) if self._has(v)]

        def call(values: list) -> Sequence[Any]:
            rest = iter(values)
            given, outputs = tree.map_leaves(lambda v: next(rest) if self._has(v) else v, [arguments, targets])
            if into is None:
                return op.call(given)
            op.call(given, outputs)
            return []

        made = self.step(call, inputs, into is not None)
        return made if into is None else into

    def gradients(self, outputs, grad_outputs, inputs, retain_graph: bool, create_graph: bool, allow_unused: bool) -> list:
        """Gradients of tangents with respect to recorded values, or products of tangents with their Jacobians."""
        if any(map(self._has, inputs)):
            raise NotImplementedError("linearize: gradients with respect to tangents are not supported in the function")
        given = [t for t in (*outputs, *grad_outputs) if self._has(t)]
        del retain_graph  # for repetitions the graph is always kept

        def call(values: list) -> list:
            rest = iter(values)
            roots, vectors = ([next(rest) if self._has(t) else t for t in group] for group in (outputs, grad_outputs))
            recorded = create_graph or _C.is_grad_enabled() and any(v is not None and v.requires_grad for v in vectors)
            return run_grad(roots, vectors, inputs, True, recorded, allow_unused)

        return self.step(call, given)

    def backward(self, *_: Any) -> None:
        raise NotImplementedError("linearize: backward() of tangents is not supported")

    def apply_function(self, function: type, args: tuple) -> Any:
        """Function.apply() with tangents, in a user's jvp()."""
        structure: list[Any] = []

        def call(values: list) -> list:
            rest = iter(values)
            structure[:] = [function.apply(*(next(rest) if self._has(a) else a for a in args))]
            return tree.leaves(structure[0])

        made = self.step(call, [a for a in args if self._has(a)])
        return tree.rebuild(structure[0], made)

    def finish(self, outputs: list[Tensor]) -> Callable[[list], list]:
        """Ends the recording. Returns the function that computes the outputs for other tangents."""
        count = self._count - sum(len([r for r in step.results if r >= 0]) for step in self._steps)
        wanted = {o._place for o in outputs if self._has(o)}
        steps: list[_Step] = []
        keep_all = any(step.writes for step in self._steps)
        for step in reversed(self._steps):
            if keep_all or wanted.intersection(step.results):
                steps.append(step)
                wanted.update(step.places)
        steps.reverse()
        constants = [c for uses in self._constants.values() for c in uses]
        places = [o._place if self._has(o) else None for o in outputs]
        zeros = [None if self._has(o) else (tuple(o.shape), o.dtype, o.device) for o in outputs]

        def repeat(tangents: list) -> list:
            if not all(c.is_current() for c in constants):
                raise RuntimeError("linearize: a tensor that the function used was changed in place afterwards")
            values: dict[int, Any] = dict(enumerate(tangents[:count]))
            for step in steps:
                with set_grad_enabled(step.records_grad or _C.is_grad_enabled()):
                    found = step.compute([values[p] for p in step.places])
                if not step.places:  # what later steps write to
                    found = [_mapped_like(r, tangents[:count]) for r in found]
                values.update((p, r) for p, r in zip(step.results, found) if p >= 0)
            given = {_storage(t) for t in tangents[:count]}
            made = [values[p] if p is not None else _C.torch.zeros(z[0], dtype=z[1], device=z[2]) for p, z in zip(places, zeros)]
            return [t.clone() if _storage(t) in given else t for t in made]  # the caller may write to them

        return repeat
