"""Recorded: a tangent whose operators are recorded, so that they can be repeated with other tangents (linearize)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import _C, _transforms
from .._C import Tensor
from .._grad_mode import set_grad_enabled
from .._library.engine_operators import operator_named
from . import tree
from ._transformed import Level, Transformed, read_inside, run_grad


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


class LinearLevel(Level):
    """The recording of the operators that are applied to tangents."""

    def __init__(self) -> None:
        self.number = _transforms.next_number()
        self.is_running = False
        self._steps: list[_Step] = []
        self._constants: list[tuple[Tensor, int]] = []  # with their versions
        self._count = 0

    def __enter__(self) -> LinearLevel:
        self.is_running = True
        return self

    def __exit__(self, *_: object) -> None:
        self.is_running = False

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

    def _keep(self, values: Sequence[Any]) -> None:
        for value in values:
            if isinstance(value, (list, tuple)):
                self._keep(value)
            elif isinstance(value, Tensor) and not self._has(value):
                self._constants.append((value, value._version))

    def compute(self, name: str, arguments: list, into: list | None) -> list:
        if not self.is_running:
            raise RuntimeError(f"linearize: {name} received a tensor of a function which has ended")
        op = operator_named(name)
        targets = into or []
        if not all(map(self._has, targets)):
            raise NotImplementedError(f"linearize: {name} cannot write a tangent to a tensor that is none")
        inputs = [v for v in tree.leaves([arguments, targets]) if self._has(v)]
        self._keep(arguments)

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
        constants, places = self._constants, [o._place if self._has(o) else None for o in outputs]
        zeros = [None if self._has(o) else (tuple(o.shape), o.dtype, o.device) for o in outputs]

        def repeat(tangents: list) -> list:
            if any(tensor._version != version for tensor, version in constants):
                raise RuntimeError("linearize: a tensor that the function used was changed in place afterwards")
            values: dict[int, Any] = dict(enumerate(tangents[:count]))
            for step in steps:
                with set_grad_enabled(step.records_grad or _C.is_grad_enabled()):
                    found = step.compute([values[p] for p in step.places])
                values.update((p, r) for p, r in zip(step.results, found) if p >= 0)
            return [
                values[p] if p is not None else _C.torch.zeros(z[0], dtype=z[1], device=z[2]) for p, z in zip(places, zeros)
            ]

        return repeat
