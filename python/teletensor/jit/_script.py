"""ScriptModule and ScriptFunction: what script() and trace() return. They call Python, and are saved as exported programs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .. import _C
from .._C import Tensor
from .._lazy import defined_by
from ..compiler import is_compiling
from ..export import Dim, ExportedProgram, export
from ..export.dynamic_shapes import combined_args
from ..fx.experimental._sizes import value_of
from ..nn import Module
from ..utils import _pytree as pytree
from ._trace import _get_trace_graph

_save: list[Callable] = []  # torch.jit.save
_SHARED = ("_parameters", "_buffers", "_modules")
_STATE_HOOKS = ("_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")
_PLAIN = (int, float, complex, bool, str, bytes, type(None), _C.dtype, _C.device)


def set_save(function: Callable) -> None:
    """Sets the function of the method save()."""
    _save[:] = [function]


class Example:
    """The structure of a call's arguments, with the sizes and dtypes of its tensors but not their values.

    Other arguments than tensors and plain values are not kept, so that a call's objects are released.
    """

    def __init__(self, args: tuple, kwargs: dict[str, Any]) -> None:
        leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self.tensors = [isinstance(v, Tensor) for v in leaves]
        self.missing = [type(v).__name__ for v in leaves if not isinstance(v, (Tensor, *_PLAIN))]
        self.leaves = [
            (tuple(map(value_of, v.shape)), v.dtype, v.device) if isinstance(v, Tensor) else value_of(v) if isinstance(v, _PLAIN) else None
            for v in leaves
        ]

    def arguments(self) -> tuple[tuple, dict[str, Any]]:
        """Arguments like those of the call, whose tensors are zeros. Raises RuntimeError if others than plain values are missing."""
        if self.missing:
            raise RuntimeError(f"[jit] expected arguments that are tensors and plain values, got {', '.join(self.missing)}")
        made = [
            _C.torch.zeros(v[0], dtype=v[1], device=v[2]) if is_tensor else v for v, is_tensor in zip(self.leaves, self.tensors)
        ]
        return pytree.tree_unflatten(made, self.spec)


class ScriptModule(Module):
    """A base class of modules with annotated methods, which run as Python."""

    def __init__(self) -> None:
        super().__init__()

    def save(self, f: Any, **kwargs: Any) -> None:
        """torch.jit.save(self, f), which has the keyword arguments."""
        _save[0](self, f, **kwargs)


class RecursiveScriptModule(ScriptModule):
    """A module as script() and trace() return it: its parameters, buffers and submodules are those of the original one.

    A call is a call of the original module, so that Python evaluates control flow each time. The structure of the first call's
    arguments is kept, for save(). Hooks of a ScriptModule are its own; those of the original module run within a call.
    """

    def __init__(self, original: Module, example: Example | None = None) -> None:
        if not isinstance(original, Module):
            raise NotImplementedError("[jit] a ScriptModule of TorchScript's: script() and trace() make one of a module")
        self.__dict__.update(_original=original, _example=example)
        mode = original.training
        super().__init__()
        original.training = mode
        for registry in (*_SHARED, "_non_persistent_buffers_set", *(n for n in original.__dict__ if n in _STATE_HOOKS)):
            self.__dict__[registry] = original.__dict__[registry]

    @property
    def training(self) -> bool:
        """The mode of the original module."""
        return self._original.training

    @training.setter
    def training(self, mode: bool) -> None:
        self._original.training = mode

    @property
    def original_name(self) -> str:
        """The name of the original module's class."""
        return type(self._original).__name__

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the original module."""
        if (self._example is None or self._example.missing) and not is_compiling():
            self.__dict__["_example"] = Example(args, kwargs)
        return self._original(*args, **kwargs)

    def train(self, mode: bool = True) -> RecursiveScriptModule:
        """Sets the mode of the original module and its submodules."""
        self._original.train(mode)
        return self

    # ---- State, with what the original class adds to it

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> RecursiveScriptModule:
        self._original._apply(fn, recurse)
        return self

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The state of the original module."""
        return self._original.state_dict(*args, destination=destination, prefix=prefix, keep_vars=keep_vars)

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Any:
        """Loads values into the original module."""
        return self._original.load_state_dict(state_dict, strict, assign)

    def _load_from_state_dict(self, *args: Any) -> None:
        self._original._load_from_state_dict(*args)

    # ---- Attributes

    def __getattr__(self, name: str) -> Any:
        if name in ("_original", "_example"):
            raise AttributeError(name)
        if name in ("code", "graph", "inlined_graph"):  # properties, whose errors are no missing attributes
            return getattr(type(self), f"_{name}")(self)
        return getattr(self._original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ and name not in _SHARED:  # the state of hooks
            self.__dict__[name] = value
        else:
            setattr(self._original, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._original, name)

    def __deepcopy__(self, memo: dict) -> RecursiveScriptModule:
        import copy

        return type(self)(copy.deepcopy(self._original, memo), self._example)

    def copy(self) -> RecursiveScriptModule:
        """A copy with parameters and buffers of its own."""
        import copy

        return copy.deepcopy(self)

    def __len__(self) -> int:
        return len(self._original)

    def __getitem__(self, key: Any) -> Any:
        return self._original[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._original)

    def __contains__(self, item: Any) -> bool:
        return item in self._original

    def __bool__(self) -> bool:
        return True

    def extra_repr(self) -> str:
        """The name of the original class."""
        return f"original_name={self.original_name}"

    # ---- Captured

    def _program(self) -> ExportedProgram:
        """The exported program of forward, for arguments like those of the first call."""
        return exported(self._original, self._example, "code")

    def _code(self) -> str:
        return self._program().graph_module.code

    def _graph(self) -> Any:
        return graph_of(self._original, self._example)

    _inlined_graph = _graph

    def get_debug_state(self) -> Any:
        """Raises NotImplementedError."""
        raise NotImplementedError("[jit] there is no TorchScript executor whose state could be returned")


class TopLevelTracedModule(RecursiveScriptModule):
    """A module as trace() returns it."""


TracedModule = TopLevelTracedModule


class ScriptFunction:
    """A function as script() and trace() return it: a call is a call of the Python function."""

    def __init__(self, function: Callable, example: Example | None = None) -> None:
        if not callable(function):
            raise NotImplementedError("[jit.ScriptFunction] expected a Python function; there is no TorchScript")
        functools.update_wrapper(self, function)
        self._function, self._example = function, example

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (self._example is None or self._example.missing) and not is_compiling():
            self._example = Example(args, kwargs)
        return self._function(*args, **kwargs)

    def __get__(self, owner: Any, _kind: Any = None) -> Any:
        return self if owner is None else functools.partial(self, owner)

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self._function, "__name__", type(self._function).__name__)

    @property
    def qualified_name(self) -> str:
        """The function's name with its module."""
        return f"{self._function.__module__}.{getattr(self._function, '__qualname__', self.name)}"

    @property
    def code(self) -> str:
        """The captured operators as Python code, once the function was called."""
        return exported(Calling(self._function), self._example, "code").graph_module.code

    @property
    def graph(self) -> Any:
        """The recorded operators, once the function was called."""
        return graph_of(Calling(self._function), self._example)

    inlined_graph = graph

    def save(self, f: Any, **kwargs: Any) -> None:
        """torch.jit.save(self, f), which has the keyword arguments."""
        _save[0](self, f, **kwargs)


class Calling(Module):
    """A module that calls a function, with its parameters' names."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.__dict__["forward"] = function


def _known(example: Example | None, what: str) -> Example:
    if example is None:
        raise RuntimeError(
            f"[jit] {what} needs arguments for which operators are captured: call the module once, or use torch.jit.trace() or "
            "torch.jit.script(example_inputs=...); there is no TorchScript compiler"
        )
    return example


class _OfTensors(Module):
    """A module whose arguments are the tensors of an example."""

    def __init__(self, module: Module, example: Example) -> None:
        super().__init__()
        self.__dict__.update({k: module.__dict__[k] for k in _SHARED}, _module=module, _call=example)

    def forward(self, *tensors: Tensor) -> Any:
        """Calls the module with the other arguments of the example."""
        given = iter(tensors)
        leaves = [next(given) if is_tensor else v for v, is_tensor in zip(self._call.leaves, self._call.tensors)]
        args, kwargs = pytree.tree_unflatten(leaves, self._call.spec)
        return self._module(*args, **kwargs)


def graph_of(module: Module, example: Example | None) -> Any:
    """The recorded operators of a module, with TorchScript's names, for arguments like those of an example."""
    known = _known(example, "graph")
    leaves = pytree.tree_leaves(known.arguments())
    return _get_trace_graph(_OfTensors(module, known), tuple(v for v in leaves if isinstance(v, Tensor)))[0]


def _originals(module: Module) -> Iterator[Module]:
    """A module and its submodules, with the original ones of ScriptModules."""
    for m in module.modules():
        while isinstance(m, RecursiveScriptModule):
            m = m._original
        yield m


@contextmanager
def mode_of(module: Module, training: bool) -> Iterator[None]:
    """A context with all modules in one mode."""
    former = {m: m.training for m in _originals(module)}
    try:
        for m in former:
            m.__dict__["training"] = training
        yield
    finally:
        for m, was in former.items():
            m.__dict__["training"] = was


def exported(module: Module, example: Example | None, what: str) -> ExportedProgram:
    """The program of a module for arguments like those of an example, of any sizes that it permits."""
    args, kwargs = _known(example, what).arguments()
    signature = combined_args(module, args, kwargs)
    shapes = pytree.tree_map(lambda v: Dim.AUTO if isinstance(v, Tensor) and v.dim() else None, signature)
    has_variable = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in inspect.signature(module.forward).parameters.values())
    return export(module, args, kwargs, dynamic_shapes=None if has_variable else shapes)


def export_opnames(m: RecursiveScriptModule) -> list[str]:
    """The operators of a module's forward, such as "aten::add.Tensor", sorted, for arguments like those of its first call.

    Raises:
        RuntimeError: m is no ScriptModule, or its arguments are not known.
    """
    if not isinstance(m, RecursiveScriptModule):
        raise RuntimeError(f"[jit.export_opnames] expected a ScriptModule, got {type(m).__name__}")
    targets = {str(n.target) for n in m._program().graph.nodes if n.op == "call_function" and "." in str(n.target)}
    return sorted(t.replace(".", "::", 1).removesuffix(".default") for t in targets)


__getattr__, __dir__ = defined_by(globals(), "_types", "Attribute")
