"""RunningModules: which modules run at which time, for profiles by module."""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Iterator
from typing import Any

from .._C import Tensor
from ..autograd.graph import queue_callback
from ..nn.modules.module import Module, register_module_forward_pre_hook
from ..utils.hooks import RemovableHandle
from ._recording import Recorded

_BACKWARD = {"backward", "backward_begin", "backward_until", "backward_feed", "backward_end"}  # calls that compute gradients


def computes_gradients(recorded: Recorded, instruction: int) -> bool:
    """Whether an instruction is a call of a backward pass."""
    return bool(recorded.issued(instruction)) and recorded.names.get(int(recorded.calls[instruction]["op"])) in _BACKWARD


class RunningModules:
    """The modules that run in a block, between start() and stop(). Their names are paths that begin with the class of the
    outermost module that runs.

    Args:
        entered: is called when a module starts to run, with its name, the module, and the names of the modules around it.
        gradients: whether a module also runs in a backward pass: from the gradients of its results to those of its arguments.
            Hooks find that out, at which the engine waits.
    """

    def __init__(self, entered: Callable[[str, Module, list[str]], None] | None = None, gradients: bool = False) -> None:
        self._entered, self._gradients = entered, gradients

    def start(self) -> None:
        self._running: list[tuple[str, RemovableHandle]] = []
        self._differentiated: list[str] = []  # the modules whose gradients are computed now
        self._hooks: list[Any] = []
        self._times: list[int] = []  # time.perf_counter_ns()
        self._stacks: list[list[str]] = []  # from the time at the same place on
        self._names: dict[int, str] = {}
        self._hook = register_module_forward_pre_hook(self._enter)

    def stop(self) -> None:
        self._hook.remove()
        for hook in self._hooks:
            hook.remove()
        while self._running:
            self._running.pop()[1].remove()

    def at(self, moment: int) -> list[str]:
        """The names of the modules that were running, outermost first; those of a backward pass in the order of their starts."""
        place = bisect.bisect_right(self._times, moment)
        return self._stacks[place - 1] if place else []

    def _enter(self, module: Module, arguments: tuple) -> None:
        if not self._running:
            for name, child in module.named_modules(prefix=type(module).__name__):
                self._names.setdefault(id(child), name)
        name = self._names.get(id(module), type(module).__name__)
        if self._entered is not None:
            self._entered(name, module, [around for around, _ in self._running])
        depth = len(self._running) + 1
        self._after_gradients(arguments, lambda: self._end_gradients(name))

        def leave(_module: Module, _arguments: tuple, result: Any) -> None:
            self._after_gradients(result, lambda: self._begin_gradients(name))
            if len(self._running) == depth:  # otherwise the module called itself
                self._running.pop()[1].remove()
                self._note()

        # A hook of the module itself runs after the hooks that it has already, whose operators belong to the module.
        self._running.append((name, module.register_forward_hook(leave, always_call=True)))
        self._note()

    def _note(self) -> None:
        self._times.append(time.perf_counter_ns())
        self._stacks.append([name for name, _ in self._running] + self._differentiated)

    # -- backward passes

    def _after_gradients(self, values: Any, call: Callable[[], None]) -> None:
        """Calls a function in each backward pass when the gradients of all tensors in values have been computed."""
        tensors = [t for t in _tensors(values) if t.requires_grad] if self._gradients else []
        found: set[int] = set()

        def note(position: int) -> None:
            found.add(position)
            if len(found) == len(tensors):
                found.clear()
                call()

        for position, tensor in enumerate(tensors):
            self._hooks.append(tensor.register_hook(lambda _, position=position: note(position)))

    def _begin_gradients(self, name: str) -> None:
        if not self._differentiated:
            queue_callback(self._end_pass)
        if name not in self._differentiated:
            self._differentiated.append(name)
            self._note()

    def _end_gradients(self, name: str) -> None:
        if name in self._differentiated:
            self._differentiated.remove(name)
            self._note()

    def _end_pass(self) -> None:
        self._differentiated.clear()
        self._note()


def _tensors(values: Any) -> Iterator[Tensor]:
    if isinstance(values, Tensor):
        if len(getattr(values, "_locals", (values,))) == 1:  # a DTensor of several engines has no hooks
            yield values
    elif isinstance(values, (list, tuple, dict)):
        for value in values.values() if isinstance(values, dict) else values:
            yield from _tensors(value)
