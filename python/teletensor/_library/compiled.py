"""Kernels of custom operators that run as Programs in the engine: one instruction per call (torch.library.custom_op(compile=True))."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from .._functions import are_deterministic_algorithms_enabled
from .._programs import TracedProgram, trace
from ._environment import Environment

_SIGNATURES = 64  # kept per operator, the most recently used ones
# In errors of arguments that a Program does not fit.
_OUTDATED = ("the traced function requires", "trace the function again", "expected tensors of the Program's session")
_PROGRAMS = 8  # kept per signature: for sizes by which the function has decided


def _describe(value: Any, records: bool, key: list[Any], tensors: list[_C.Tensor]) -> None:
    """Adds to the key what a Program depends on: equal for arguments that one Program fits; and the tensors of an argument."""
    if isinstance(value, _C.Tensor):
        tensors.append(value)
        key += (value.dtype, value.device, value.dim(), records and value.requires_grad)
    elif isinstance(value, (list, tuple)):
        key.append((type(value), len(value)))
        for item in value:
            _describe(item, records, key, tensors)
    elif isinstance(value, (float, complex)):
        key += (type(value), repr(value))  # -0.0 and NaN are values of their own
    else:
        key += (type(value), value)


def _with(value: Any, tensors: Iterator[_C.Tensor]) -> Any:
    """An argument with other tensors, in the order of _describe()."""
    if isinstance(value, _C.Tensor):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        return type(value)([_with(item, tensors) for item in value])
    return value


class CompiledKernel:
    """A function that is traced at its first call for each signature; calls then run the Program.

    A signature consists of the dtypes, devices and numbers of dimensions of the tensors, whether gradients are recorded for them,
    the values of all other arguments, those of the variables that the function reads (Environment), and the default dtype and
    device. The function runs operator by operator where a Program is not possible and its caller
    handles the operators: in another trace, of which they become part, for tensors of wrapper subclasses (vmap, DTensor) and of the
    meta device, in dispatch modes, and while autocast casts them. Safe to call from several threads.
    """

    def __init__(self, name: str, function: Callable) -> None:
        self.__name__, self.__wrapped__ = name, function
        self._environment = Environment(function)
        self._lock = threading.Lock()
        self._signatures: OrderedDict[Any, list[TracedProgram]] = OrderedDict()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors: list[_C.Tensor] = []
        records = _C.is_grad_enabled()
        key: list[Any] = [records, are_deterministic_algorithms_enabled(), _C.default_dtype(), *_C.default_devices()]
        self._environment.add_to(key)
        for value in (*args, *kwargs.items()) if kwargs else args:
            _describe(value, records, key, tensors)
        if not tensors or _handled_elsewhere(tensors):
            return self.__wrapped__(*args, **kwargs)
        programs = self._programs(tuple(key))
        for program in tuple(programs):
            try:
                results = program(*tensors)
            except (ValueError, RuntimeError) as error:  # a decision by a size, a replaced global tensor, or another session
                if not any(text in str(error) for text in _OUTDATED):
                    raise
                continue
            if program is not programs[0]:
                self._put_first(programs, program)
            return results
        program = self._traced(args, kwargs, tensors)
        self._put_first(programs, program)
        return program(*tensors)

    def _traced(self, args: tuple, kwargs: dict[str, Any], tensors: list[_C.Tensor]) -> TracedProgram:
        """A Program of the function for these arguments, of which only the tensors are inputs."""

        def function(*inputs: _C.Tensor) -> Any:
            source = iter(inputs)
            results = self.__wrapped__(*(_with(v, source) for v in args), **{name: _with(v, source) for name, v in kwargs.items()})
            self._check_results(results, inputs)
            return results

        function.__name__ = self.__name__
        try:
            return trace(function, *tensors)
        except Exception as error:
            error.add_note(
                f"[{self.__name__}] the operator was defined with compile=True: its function must consist of operators whose results' "
                "sizes do not depend on values, and must not read values; without compile=True it may"
            )
            raise

    def _check_results(self, results: Any, inputs: tuple[_C.Tensor, ...]) -> None:
        """Raises RuntimeError, as PyTorch does, if a result is an argument or is returned twice: a run would return another object."""
        seen = list(inputs)
        for result in results if isinstance(results, (list, tuple)) else [results]:
            if isinstance(result, _C.Tensor):
                if any(result is tensor for tensor in seen):
                    raise RuntimeError(
                        f"{self.__name__}: The output of this custom operator must not also be an input or another output of this "
                        "custom operator; return a clone of it (x.clone())"
                    )
                seen.append(result)

    def _put_first(self, programs: list[TracedProgram], program: TracedProgram) -> None:
        """Makes a Program the one that the next call tries first."""
        with self._lock:
            programs[:] = [program, *(p for p in programs if p is not program)][:_PROGRAMS]

    def _programs(self, key: tuple) -> list[TracedProgram]:
        """The Programs for a signature, which becomes the most recently used one."""
        found = self._signatures.get(key)
        if found is not None and len(self._signatures) <= _SIGNATURES // 2:
            return found  # none is removed before the order matters
        with self._lock:
            programs = self._signatures.setdefault(key, [])
            self._signatures.move_to_end(key)
            while len(self._signatures) > _SIGNATURES:
                self._signatures.popitem(last=False)
            return programs

    def programs(self) -> list[TracedProgram]:
        """All Programs that are kept."""
        with self._lock:
            return [program for programs in self._signatures.values() for program in programs]


def _handled_elsewhere(tensors: list[_C.Tensor]) -> bool:
    device = tensors[0].device.type
    if device not in ("cpu", "cuda") or _C.is_tracing() or _C.autocast_dtype(device) is not None:
        return True
    return _C._len_torch_dispatch_stack() > 0 or _C._is_dispatched(tuple(tensors)) or any(map(_C._is_wrapper, tensors))
