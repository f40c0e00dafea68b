"""Kernels of custom operators that run as Programs in the engine: one instruction per call (torch.library.custom_op(compile=True))."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .. import _C
from .._functions import are_deterministic_algorithms_enabled
from .._programs import TracedProgram, trace
from ..utils import _pytree as pytree

_SIGNATURES = 64  # kept per operator, the most recently used ones
# In errors of arguments that a Program does not fit.
_OUTDATED = ("the traced function requires", "trace the function again", "expected tensors of the Program's session")
_PROGRAMS = 8  # kept per signature: for sizes by which the function has decided


def _constant(value: Any) -> Any:
    """A key for an argument that is no tensor: equal if the values are, of one type; -0.0 and NaN are values of their own."""
    return type(value), repr(value) if isinstance(value, (float, complex)) else value


class CompiledKernel:
    """A function that is traced at its first call for each signature; calls then run the Program.

    A signature consists of the dtypes, devices and numbers of dimensions of the tensors, whether gradients are recorded for them,
    and the values of all other arguments. The function runs operator by operator where a Program is not possible and its caller
    handles the operators: in another trace, of which they become part, for tensors of wrapper subclasses (vmap, DTensor) and of the
    meta device, in dispatch modes, and while autocast casts them. Safe to call from several threads.
    """

    def __init__(self, name: str, function: Callable) -> None:
        self.__name__, self.__wrapped__ = name, function
        self._lock = threading.Lock()
        self._signatures: OrderedDict[Any, list[TracedProgram]] = OrderedDict()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, _C.Tensor)]
        if not tensors or _handled_elsewhere(tensors):
            return self.__wrapped__(*args, **kwargs)
        programs = self._programs(leaves, spec)
        for program in tuple(programs):
            try:
                results = program(*args, **kwargs)
            except (ValueError, RuntimeError) as error:  # a decision by a size, a replaced global tensor, or another session
                if not any(text in str(error) for text in _OUTDATED):
                    raise
                continue
            if program is not programs[0]:
                self._put_first(programs, program)
            return results
        try:
            program = trace(self.__wrapped__, *args, **kwargs)
        except Exception as error:
            error.add_note(
                f"[{self.__name__}] the operator was defined with compile=True: its function must consist of operators whose results' "
                "sizes do not depend on values, and must not read values; without compile=True it may"
            )
            raise
        self._put_first(programs, program)
        return program(*args, **kwargs)

    def _put_first(self, programs: list[TracedProgram], program: TracedProgram) -> None:
        """Makes a Program the one that the next call tries first."""
        with self._lock:
            programs[:] = [program, *(p for p in programs if p is not program)][:_PROGRAMS]

    def _programs(self, leaves: list[Any], spec: pytree.TreeSpec) -> list[TracedProgram]:
        """The Programs for the arguments' signature, which become the most recently used ones."""
        records = _C.is_grad_enabled()
        key = (
            spec, records, are_deterministic_algorithms_enabled(),
            *((x.dtype, x.device, x.dim(), records and x.requires_grad) if isinstance(x, _C.Tensor) else _constant(x) for x in leaves),
        )  # fmt: skip
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
    return (
        _C.is_tracing()
        or _C._len_torch_dispatch_stack() > 0
        or device not in ("cpu", "cuda")
        or _C.autocast_dtype(device) is not None
        or any(_C._is_wrapper(t) or _C._is_dispatched((t,)) for t in tensors)
    )
