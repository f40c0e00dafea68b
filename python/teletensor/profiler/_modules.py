"""RunningModules: which modules run at which time, for profiles by module."""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable

from ..nn.modules.module import Module, register_module_forward_pre_hook
from ..utils.hooks import RemovableHandle


class RunningModules:
    """The modules that run in a block, between start() and stop(). Their names are paths that begin with the class of the
    outermost module that runs.

    Args:
        entered: is called when a module starts to run, with its name, the module, and the names of the modules around it.
    """

    def __init__(self, entered: Callable[[str, Module, list[str]], None] | None = None) -> None:
        self._entered = entered

    def start(self) -> None:
        self._running: list[tuple[str, RemovableHandle]] = []
        self._times: list[int] = []  # time.perf_counter_ns()
        self._stacks: list[list[str]] = []  # from the time at the same place on
        self._names: dict[int, str] = {}
        self._hook = register_module_forward_pre_hook(self._enter)

    def stop(self) -> None:
        self._hook.remove()
        while self._running:
            self._running.pop()[1].remove()

    def at(self, moment: int) -> list[str]:
        """The names of the modules that were running, outermost first."""
        place = bisect.bisect_right(self._times, moment)
        return self._stacks[place - 1] if place else []

    def _enter(self, module: Module, *_: object) -> None:
        if not self._running:
            for name, child in module.named_modules(prefix=type(module).__name__):
                self._names.setdefault(id(child), name)
        name = self._names.get(id(module), type(module).__name__)
        if self._entered is not None:
            self._entered(name, module, [around for around, _ in self._running])
        depth = len(self._running) + 1

        def leave(*_: object) -> None:
            if len(self._running) == depth:  # otherwise the module called itself
                self._running.pop()[1].remove()
                self._note()

        # A hook of the module itself runs after the hooks that it has already, whose operators belong to the module.
        self._running.append((name, module.register_forward_hook(leave, always_call=True)))
        self._note()

    def _note(self) -> None:
        self._times.append(time.perf_counter_ns())
        self._stacks.append([name for name, _ in self._running])
