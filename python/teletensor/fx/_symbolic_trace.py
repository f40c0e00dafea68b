"""Tracer and symbolic_trace: runs a function or module with proxies, which record a graph."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import inspect
import math
import threading
import warnings
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, Callable

from .. import nn
from .._C import Tensor
from .._ops.assertions import _assert
from ..utils import _pytree as pytree
from . import graph_module
from ._patching import (  # noqa: F401 - PyTorch defines them here
    _autowrap_check,
    _create_wrapped_func,
    _create_wrapped_method,
    _find_proxy,
    _maybe_revert_all_patches,
    _new_patcher,
    _patch_wrapped_functions,
    _Patcher,
    _wrapped_methods_to_patch,
)  # fmt: skip
from ._wrapped import _wrapped_fns_to_patch, wrap  # noqa: F401
from .graph import Graph, _PyTreeCodeGen, _PyTreeInfo
from .graph_module import GraphModule
from .node import Argument, base_types, has_side_effect
from .proxy import ParameterProxy, Proxy, Scope, ScopeContextManager, TracerBase

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_orig_module_call, _orig_module_getattr = nn.Module.__call__, nn.Module.__getattr__
_proxyable_classes: dict[type, None] = {}
_tracing = threading.local()
_CONSTANTS = (Tensor, pytree.TreeSpec)  # attributes and arguments that become get_attr nodes


def is_fx_tracing() -> bool:
    """Whether a tracer is running in this thread."""
    return getattr(_tracing, "active", False)


is_fx_symbolic_tracing = is_fx_tracing


@contextlib.contextmanager
def _is_fx_tracing_context(value: bool) -> Iterator[None]:
    before = is_fx_tracing()
    _tracing.active = value
    try:
        yield
    finally:
        _tracing.active = before


class ProxyableClassMeta(type):
    """A metaclass: constructing an instance with proxies becomes a node instead of a call of __init__."""

    def __init__(cls, name: str, bases: tuple, attrs: dict) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = _find_proxy(args, kwargs) if is_fx_tracing() else None
        if proxy is not None:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        instance = cls.__new__(cls)
        cls.__init__(instance, *args, **kwargs)
        return instance


class PHBase:
    """A placeholder in concrete_args: this part of an argument is an input of the graph."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A placeholder whose attributes are copied to the input's node."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


def _transfer_attrs(fr: Any, to: Any) -> None:
    """Copies the public data attributes that the destination does not have."""
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)


def _patch_function(fn: FunctionType, nargs: int) -> FunctionType:
    """The function with * and ** parameters, and keyword-only ones, as ordinary positional parameters."""
    code: CodeType = fn.__code__.replace(
        co_argcount=nargs, co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=fn.__code__.co_flags & ~HAS_VARSTUFF
    )
    return FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


@has_side_effect
def _assert_is_none(value: object, msg: str) -> None:
    """Called by graphs to check an argument that was None during tracing."""
    if value is not None:
        raise AssertionError(msg)


class Tracer(TracerBase):
    """Runs a module or function with proxies for its inputs; subclasses decide what becomes a node.

    Args:
        autowrap_modules: modules whose functions become nodes when they are called with proxies.
        autowrap_functions: further such functions.
        param_shapes_constant: gives parameters' sizes as numbers, so that control flow may depend on them.
    """

    _qualname_counter: dict[str, int] = collections.defaultdict(int)

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        entries = (item for module in autowrap_modules for item in vars(module).items())
        self._autowrap_function_ids = {id(value) for name, value in entries if not name.startswith("_") and callable(value)}
        self._autowrap_function_ids.update(id(f) for f in autowrap_functions)
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[nn.Module, str] | None = None
        self.root_module_name = ""
        self.num_calls: dict[str, int] = {}
        self.root: nn.Module
        self.tensor_attrs: dict[Any, str] = {}

    @classmethod
    def _graph_module_deserialization_tracer(cls, root: nn.Module) -> Tracer:
        return cls()

    # -- methods that subclasses override

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of the module becomes a node; otherwise its forward() is traced. By default torch.nn's modules."""
        return m.__module__.startswith(("teletensor.nn", "torch.nn")) and not isinstance(m, nn.Sequential)

    def call_module(self, m: nn.Module, forward: Callable, args: tuple, kwargs: dict) -> Any:
        """Called for each call of a module.

        Args:
            forward: calls the module's forward() with its hooks.
        """
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls > 0 else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            self.num_calls[path] = calls + 1
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                self.module_stack.pop(key)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Called when the function reads a parameter, buffer or submodule; returns what it gets.

        Args:
            parameter_proxy_cache: the proxies of this trace by qualified name.
        """
        if isinstance(attr_val, nn.Parameter):
            candidates = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            candidates = self.root.named_buffers()
        else:
            return attr_val
        for name, value in candidates:
            if value is attr_val:
                if name not in parameter_proxy_cache:
                    options: dict[str, Any] = {}
                    if self.param_shapes_constant:
                        options["proxy_factory_fn"] = lambda node, name=name: ParameterProxy(self, node, name, attr_val)
                    parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
                return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a: Any) -> Argument:
        """An argument of a call as a node's argument; tensors and modules become get_attr nodes.

        Raises:
            NameError: a parameter is not the root module's.
        """
        owned = None
        if isinstance(a, nn.Parameter):
            owned = self._name_in(a, self.root.named_parameters())
            if owned is None:
                raise NameError("parameter is not a member of this module")
        elif isinstance(a, Tensor):
            owned = self._name_in(a, self.root.named_buffers())
        elif isinstance(a, nn.Module):
            owned = self._name_in(a, self.root.named_modules())
        if owned is not None:
            return self.create_node("get_attr", owned, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node("call_function", type(a), tuple(self.create_arg(item) for item in a), {})
        if isinstance(a, _CONSTANTS):
            name = self.tensor_attrs.get(a) if isinstance(a, Tensor) else None
            if not name:
                name = self.get_fresh_qualname("_tensor_constant" if isinstance(a, Tensor) else "_tree_spec_constant")
                if isinstance(a, Tensor):
                    self.tensor_attrs[a] = name
                setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    # -- names

    @staticmethod
    def _name_in(value: Any, named: Iterator[tuple[str, Any]]) -> str | None:
        return next((name for name, candidate in named if candidate is value), None)

    def get_fresh_qualname(self, prefix: str) -> str:
        """An attribute name that the root module does not have: the prefix and a number."""
        if not hasattr(self.root, f"{prefix}0"):
            self._qualname_counter[prefix] = 0
            return f"{prefix}0"
        i = self._qualname_counter[prefix]
        while hasattr(self.root, f"{prefix}{i}"):
            i += 1
        self._qualname_counter[prefix] = i + 1
        return f"{prefix}{i}"

    def path_of_module(self, mod: nn.Module) -> str:
        """The qualified name of a submodule of the root.

        Raises:
            NameError: the root does not have it.
        """
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
        else:
            path = self._name_in(mod, self.root.named_modules())
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    # -- tracing

    def create_args_for_root(
        self, root_fn: Callable, is_module: bool, concrete_args: dict[str, Any] | tuple | None = None
    ) -> tuple[Any, list]:
        """Creates the placeholders.

        Returns:
            The function to call, and its arguments.

        Raises:
            RuntimeError: the parameters cannot be traced, or the number of concrete_args differs from theirs.
        """
        analysed = inspect.unwrap(root_fn)
        code, signature = analysed.__code__, inspect.signature(analysed)
        total = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        args: list[Any] = []
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            next(names)
            args.append(self.root)
        if isinstance(concrete_args, tuple) and concrete_args and code.co_flags & HAS_VARSTUFF and total == 1:
            return root_fn, args + self._numbered_placeholders(concrete_args)
        arg_names = [next(names) for _ in range(len(args), total)]
        if isinstance(concrete_args, tuple):
            if len(arg_names) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(arg_names)} arguments but got {len(concrete_args)} concrete arguments"
                )
            concrete_args = dict(zip(arg_names, concrete_args))
        create = functools.partial(
            self._proxy_placeholder, concrete_args=concrete_args, signature=signature, function=analysed
        )
        args.extend(create(name) for name in arg_names)
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            if code.co_flags & inspect.CO_VARARGS:
                args.append(create("*" + next(names)))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(create("**" + next(names)))
            root_fn = _patch_function(root_fn, len(args))
        flat, spec = pytree.tree_flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children()):
            return root_fn, args
        return self._flattened(root_fn, list(code.co_varnames)[:total], flat, spec)

    def _flattened(self, root_fn: Callable, names: list[str], flat: list, spec: Any) -> tuple[Callable, list]:
        """The function over the leaves of its arguments, whose result is flattened too."""
        codegen = _PyTreeCodeGen(_PyTreeInfo(names, spec, None), only_positional=True)
        self.graph._codegen = codegen

        def flatten_fn(*leaves: Any):  # has no return annotation, because the graph would copy it
            result, out_spec = pytree.tree_flatten(root_fn(*pytree.tree_unflatten(list(leaves), spec)))
            codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
            return result

        return flatten_fn, flat

    def _numbered_placeholders(self, concrete_args: tuple) -> list[Proxy]:
        """Placeholders input_0, input_1, ... for a function of *args."""
        created = []
        for i, concrete in enumerate(concrete_args):
            proxy = self.create_proxy("placeholder", f"input_{i}", (), {})
            if isinstance(concrete, PHBase) and concrete is not PH:
                _transfer_attrs(fr=concrete, to=proxy.node)
            created.append(proxy)
        return created

    def _proxy_placeholder(
        self, name: str, concrete_args: dict[str, Any] | None, signature: inspect.Signature, function: Callable
    ) -> Any:
        """The placeholder of a parameter; for a parameter in concrete_args, its value with placeholders for the parts
        that are PH.
        """
        default: tuple = ()
        if name[0] != "*" and signature.parameters[name].default is not inspect.Parameter.empty:
            default = (signature.parameters[name].default,)
        if concrete_args is None or name not in concrete_args:
            annotation = function.__annotations__.get(name, None)
            return self.create_proxy("placeholder", name, default, {}, type_expr=annotation)
        count = 0

        def replace(value: Any) -> Any:
            nonlocal count
            count += 1
            proxy = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                if value is not PH:
                    _transfer_attrs(fr=value, to=proxy.node)
                return proxy
            self._check_specialized(proxy, name, value)
            return value

        return pytree.tree_map(replace, concrete_args[name])

    def _check_specialized(self, proxy: Proxy, name: str, value: Any) -> None:
        """Adds nodes that raise AssertionError if an argument differs from the constant that was traced."""
        said = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, said), {})
        elif type(value) in base_types and not isinstance(value, Tensor):
            self.create_proxy("call_function", _assert, (proxy == value, said), {})
        else:
            warnings.warn(
                f"Was not able to add assertion to guarantee correct input {name} to specialized function. It is up to the "
                "user to make sure that your inputs match the inputs you specialized the function with.",
                stacklevel=2,
            )

    def _function_of(self, root: nn.Module | Callable) -> FunctionType:
        """Sets the root module; returns the function to trace."""
        if not isinstance(root, nn.Module):
            self.root = nn.Module()
            return root
        self.root = root
        if not hasattr(type(root), self.traced_func_name):
            raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
        self.root_module_name = root._get_name()
        self.submodule_paths = {module: name for name, module in root.named_modules()}
        return getattr(type(root), self.traced_func_name)

    def _collect_tensor_attrs(self, module: nn.Module, prefix: str) -> None:
        """Finds the tensors that are plain attributes of the root and its submodules."""
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                self.tensor_attrs[value] = prefix + name
        for name, child in module.named_children():
            self._collect_tensor_attrs(child, f"{prefix}{name}.")

    def trace(self, root: nn.Module | Callable, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Runs the root with proxies.

        Args:
            root: a module, whose forward() is traced, or a function.
            concrete_args: constants for some parameters, in which PH stands for inputs.

        Returns:
            The graph.

        Raises:
            TraceError: control flow depends on an input's value.
        """
        with _is_fx_tracing_context(True):
            fn = self._function_of(root)
            self.graph = Graph(tracer_cls=type(self))
            code = getattr(fn, "__code__", None)
            if code is not None:
                self.graph._co_fields = {
                    "co_name": code.co_name, "co_filename": code.co_filename, "co_firstlineno": code.co_firstlineno,
                }  # fmt: skip
            self.tensor_attrs = {}
            self._collect_tensor_attrs(self.root, "")
            if not isinstance(fn, FunctionType):
                raise AssertionError(f"Expected FunctionType, got {type(fn)}")
            fn_globals = fn.__globals__
            fn, args = self.create_args_for_root(fn, isinstance(root, nn.Module), concrete_args)
            with self._patched(fn_globals):
                returned = inspect.get_annotations(inspect.unwrap(fn)).get("return")
                self.create_node("output", "output", (self.create_arg(fn(*args)),), {}, type_expr=returned)
        self.submodule_paths = None
        return self.graph

    @contextlib.contextmanager
    def _patched(self, fn_globals: dict[str, Any]) -> Iterator[None]:
        """Context manager: redirects modules' calls and attributes, and wrapped functions, to this tracer."""
        proxies: dict[str, Proxy] = {}

        @functools.wraps(_orig_module_getattr)
        def module_getattr(module: nn.Module, attr: str) -> Any:
            return self.getattr(attr, _orig_module_getattr(module, attr), proxies)

        @functools.wraps(_orig_module_call)
        def module_call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _orig_module_call(module, *args, **kwargs)

            forward_globals = getattr(getattr(module, "forward", module), "__globals__", {})
            _autowrap_check(patcher, forward_globals, self._autowrap_function_ids)
            return self.call_module(module, forward, args, kwargs)

        with _new_patcher() as patcher:
            patcher.patch_method(nn.Module, "__getattr__", module_getattr, deduplicate=False)
            patcher.patch_method(nn.Module, "__call__", module_call, deduplicate=False)
            _patch_wrapped_functions(patcher)
            _autowrap_check(patcher, fn_globals, self._autowrap_function_ids)
            for module in self._autowrap_search:
                _autowrap_check(patcher, vars(module), self._autowrap_function_ids)
            yield

    def __deepcopy__(self, memo: dict) -> Tracer:
        copied = type(self).__new__(type(self))
        for name, value in vars(self).items():
            setattr(copied, name, copy.copy(value) if name == "_autowrap_search" else copy.deepcopy(value, memo))
        return copied


graph_module.default_tracer = Tracer


def symbolic_trace(root: nn.Module | Callable, concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """Traces a module or function; returns a module that computes the same from a graph.

    Args:
        root: a module or function. Its control flow must not depend on values of its inputs.
        concrete_args: constants for some parameters, in which PH stands for inputs.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    return GraphModule(tracer.root, graph, type(root).__name__ if isinstance(root, nn.Module) else root.__name__)


__all__ = ["Tracer", "symbolic_trace", "wrap", "PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "is_fx_tracing"]
