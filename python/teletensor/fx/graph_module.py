"""GraphModule: a module whose forward() is generated from a graph."""

from __future__ import annotations

import base64
import contextlib
import copy
import itertools
import linecache
import os
import sys
import traceback
from collections.abc import Iterator
from typing import Any, Callable

from .. import nn
from ..nn.modules.module import _addindent
from ._attributes import (  # noqa: F401 - PyTorch defines them here
    _assign_attr,
    _copy_attr,
    _del_attr,
    _get_attr,
    _get_attr_via_attr_list,
    _has_attr,
)  # fmt: skip
from ._source import (  # noqa: F401
    _EvalCacheLoader,
    _exec_with_source,
    _format_import_block,
    _format_import_statement,
    _forward_from_src,
    _loader,
    _method_from_src,
)  # fmt: skip
from .experimental import _config
from .graph import GRAPH_PLACEHOLDER, RECORD_GRAPH, Graph, PythonCode, _PyTreeCodeGen
from .node import Node
from .traceback import _register_fx_metadata

__all__ = ["reduce_graph_module", "GraphModule"]

default_tracer: type | None = None  # Tracer, which _symbolic_trace sets

FX_GRAPH_MODULE_FILE_PREFIX = "fx_generated_"
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
_NODE_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")


class _CodeOnlyModule(nn.Module):
    """A module of given attributes, from which a GraphModule is built again."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> nn.Module:
    """The GraphModule that was pickled: its source is imported and traced again.

    Args:
        body: the module's attributes, with its source in `_code`.
        import_block: the statements that bind the source's globals.
    """
    src = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(f"{import_block}\n{src}", {}), body)


def _deserialize_graph_module(forward: Callable, body: dict[str, Any], graph_module_cls: type | None = None) -> nn.Module:
    """A GraphModule of the attributes, with the graph of the function; all submodules are leaves."""
    tracer_cls = body.get("_tracer_cls") or default_tracer

    class KeepModules(tracer_cls):
        def is_leaf_module(self, _module: nn.Module, _name: str) -> bool:
            return True

    code_only = type("_CodeOnlyModule", (_CodeOnlyModule,), {"forward": forward})(body)
    tracer = KeepModules._graph_module_deserialization_tracer(code_only)
    graph = tracer.trace(code_only, **body.get("_tracer_extras", {}))
    graph._tracer_cls = tracer_cls
    traces = body.pop("_graphmodule_graph_node_meta_stack_trace", None) or {}
    for node in graph.nodes:
        if node.name in traces:
            node.meta["stack_trace"] = traces[node.name]
    module = (graph_module_cls or GraphModule)(code_only, graph, class_name=body.get("_graphmodule_cls_name", "GraphModule"))
    for name, value in body.items():
        if not hasattr(module, name):
            setattr(module, name, value)
    return module


class _WrappedCall:
    """Calls a GraphModule; prints the line of generated source if it raises."""

    def __init__(self, cls: type, cls_call: Callable | None) -> None:
        self.cls, self.cls_call = cls, cls_call

    @staticmethod
    def _generate_error_message(frame: traceback.FrameSummary) -> str:
        """The traceback, and the generated lines around the one that raised."""
        lines, number = linecache.getlines(frame.filename), frame.lineno
        return "\n".join([
            traceback.format_exc(),
            f"Call using an FX-traced Module, line {number} of the traced Module's generated forward function:",
            "".join(lines[number - 2 : number]),
            f"{'~' * len(frame.line)}~~~ <--- HERE",
            "\n".join(lines[number : number + 2]),
        ])  # fmt: skip

    def __call__(self, obj: GraphModule, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)
        except Exception as e:
            innermost = traceback.StackSummary.extract(traceback.walk_tb(e.__traceback__))[-1]
            if "eval_with_key" in innermost.filename:
                print(self._generate_error_message(innermost), file=sys.stderr)
                raise e.with_traceback(None)  # noqa: B904 - the frames of this file are left out
            raise


_GENERATED = frozenset(("_code", "_lineno_map", "_prologue_start"))


def _generate_and_call(self: GraphModule, *args: Any, **kwargs: Any) -> Any:
    if "_code" not in vars(self):
        self.recompile()
    return type(self).forward(self, *args, **kwargs)


class GraphModule(nn.Module):
    """A module whose forward() is generated from a graph.

    Each instance has a class of its own, which has the generated `forward`.

    Args:
        root: the module whose submodules, parameters and buffers the graph names, or a dict of them by qualified name.
        graph: the graph; assigning `graph` or calling recompile() generates the code again.
        class_name: the name of the module's class.
    """

    _generates_late = False  # whether the first code is generated when it is called or read

    def __new__(cls, *_args: Any, **_kwargs: Any) -> GraphModule:
        base = next(c for c in cls.__mro__ if c.__qualname__.rpartition(".")[2] != "GraphModuleImpl")

        class GraphModuleImpl(base):
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [node.target for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            if isinstance(root, _CodeOnlyModule):
                named = (root.named_children(), root.named_buffers(), root.named_parameters())
                targets = [name for name, _ in itertools.chain(*named)] + targets
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in ``root``!"
                    )
            for target in sorted(targets, key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        for hooks in _NODE_HOOKS:
            setattr(self, hooks, [])
        self.meta: dict[str, Any] = {}
        self.shape_env = None
        self.graph = graph
        local = graph._tracer_cls is None or "<locals>" in graph._tracer_cls.__qualname__  # cannot be pickled
        self._tracer_cls = None if local else graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}

    # -- graph and code

    @property
    def graph(self) -> Graph:
        """The graph. Assigning it generates the code."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self._graph = graph
        graph.owning_module = self
        if self._generates_late and "_code" not in vars(self):
            type(self).forward = _generate_and_call
        else:
            self.recompile()

    def __getattr__(self, name: str) -> Any:
        if self._generates_late and name in _GENERATED and "_graph" in vars(self):
            self.recompile()
            return vars(self)[name]
        return super().__getattr__(name)

    @property
    def code(self) -> str:
        """The source of forward()."""
        if "_code" not in vars(self) and not self._generates_late:
            raise RuntimeError("[GraphModule.code] expected a module whose code has been generated by recompile()")
        return self._code

    def recompile(self) -> PythonCode:
        """Generates forward() from the graph; call it after changing the graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.pytree_info.in_spec, codegen.pytree_info.out_spec
        is_recorded = _config.enrich_profiler_metadata
        generated = self._graph.python_code(root_module="self", record_func=is_recorded)
        self._code, self._lineno_map = generated.src, generated._lineno_map
        self._prologue_start = generated._prologue_start
        cls, fields = type(self), self._graph._co_fields
        if is_recorded:
            fields = {"co_filename": self._register_metadata(generated)}
        cls.forward = _forward_from_src(self._code, generated.globals, fields)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))

            def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
                return self._wrapped_call(self, *args, **kwargs)

            cls.__call__ = call_wrapped
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return generated

    def _register_metadata(self, generated: PythonCode) -> str:
        """Registers the nodes under the name of a file, which depends on the code and on them, and puts the name into the
        code. Returns the name.
        """
        nodes = {
            i: {"name": n.name, "op": n.op, "target": str(n.target), "stack_trace": n.meta.get("stack_trace")}
            for i, n in enumerate(self._graph.nodes)
        }
        import hashlib  # used rarely
        import json

        digest = hashlib.sha256(json.dumps({"code": self._code, "node_metadata": nodes}).encode()).digest()
        name = f"{FX_GRAPH_MODULE_FILE_PREFIX}_{base64.b32encode(digest)[:51].decode().lower()}.py"
        _register_fx_metadata(
            name,
            {"lineno_map": generated._lineno_map, "prologue_start": generated._prologue_start, "node_metadata": nodes},
        )
        self._code = self._code.replace(RECORD_GRAPH, RECORD_GRAPH.replace(GRAPH_PLACEHOLDER, name))
        return name

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code of this module and its GraphModules with the tensors and source lines that were recorded.

        Args:
            print_output: prints it too.
            include_stride, include_device: adds them to the tensors.
            colored: adds terminal colors.
            fast_sympy_print: selects how symbolic sizes are printed; graphs have none.
            expanded_def: prints one parameter per line.
            additional_meta: keys of nodes' `meta` to print.
        """
        options = {
            "include_stride": include_stride, "include_device": include_device, "colored": colored,
            "additional_meta": additional_meta,
        }  # fmt: skip
        text = _readable(self, self._get_name(), expanded_def=expanded_def, **options)
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        reminder = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self._code, reminder])

    def to_folder(self, folder: str | os.PathLike, module_name: str = "FxModule") -> None:
        """Writes the module as a package that can be read and imported: source, state dict and submodules.

        Args:
            folder: is created; import it as a package.
            module_name: the name of the class.
        """
        from ._folder import write_folder

        write_folder(self, folder, module_name)

    # -- submodules

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Adds a submodule by qualified name; creates the modules on the path.

        Returns:
            False if a part of the name is not a module.
        """
        *prefix, field = target.split(".")
        module: nn.Module = self
        for item in prefix:
            below = getattr(module, item, None)
            if below is None:
                below = nn.Module()
                setattr(module, item, below)
            if not isinstance(below, nn.Module):
                return False
            module = below
        module.add_module(field, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Deletes a submodule by qualified name. Returns whether it existed."""
        path, _, field = target.rpartition(".")
        module: Any = self
        for item in filter(None, path.split(".")):
            module = getattr(module, item, None)
            if not isinstance(module, nn.Module):
                return False
        if not isinstance(getattr(module, field, None), nn.Module):
            return False
        delattr(module, field)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Deletes the submodules that no node uses."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            used.update(itertools.accumulate(node.target.split("."), "{}.{}".format))
            with contextlib.suppress(AttributeError):
                if node.op == "call_module":
                    below = self.get_submodule(node.target).named_modules()
                    used.update(f"{node.target}.{name}" for name, _ in below if name)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # -- copies

    def __reduce__(self) -> tuple:
        generated = self.recompile()
        body = self.__dict__.copy()
        body["_graphmodule_cls_name"] = type(self).__name__
        traces = {node.name: node.stack_trace for node in self.graph.nodes if node.stack_trace}
        body["_graphmodule_graph_node_meta_stack_trace"] = traces
        del body["_graph"]
        return reduce_graph_module, (body, _format_import_block(generated.globals))

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return self.__reduce__()

    def _deepcopy_init(self) -> Callable:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict) -> GraphModule:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        attributes = {name: value for name, value in self.__dict__.items() if name != "_graph"}
        body = _CodeOnlyModule(copy.deepcopy(attributes, memo))
        self._deepcopy_init()(copied, body, copy.deepcopy(self._graph), type(self).__name__)
        hooks = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks", *_NODE_HOOKS)
        for name in hooks:
            if name in body.__dict__:
                setattr(copied, name, body.__dict__[name])
        copied.meta = body.__dict__.get("meta", {})
        for name, value in copied.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(copied, name, value)
        for hook in copied._deepcopy_hooks:
            hook(copied)
        return copied

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, self.graph)
        copied.meta = getattr(self, "meta", {})
        return copied

    def _replicate_for_data_parallel(self) -> GraphModule:
        replica = self.__copy__()
        self._graph.owning_module = self
        vars(replica)["_is_replica"] = True
        return replica

    # -- hooks called when the graph changes

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[[Node, str, Node], Any]) -> Iterator[None]:
        """Context manager: inside its block, `f(old=, new=, user=)` is called before a node's argument is replaced."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


class LateGraphModule(GraphModule):
    """A GraphModule that generates its first code when the code is called or read."""

    _generates_late = True


def _define_hook(registry: str) -> None:
    """Adds the methods that register and remove a hook."""
    name = registry.strip("_").replace("_hooks", "_hook").replace("replace_hook", "replace_node_hook")

    def register(self: GraphModule, f: Callable) -> None:
        if not callable(f):
            raise AssertionError(f"{name.removesuffix('_hook')} hook must be a callable.")
        getattr(self, registry).append(f)

    def unregister(self: GraphModule, f: Callable) -> None:
        getattr(self, registry).remove(f)

    setattr(GraphModule, f"_register_{name}", register)
    setattr(GraphModule, f"_unregister_{name}", unregister)


for _registry in _NODE_HOOKS:
    _define_hook(_registry)


def _readable(module: GraphModule, name: str, expanded_def: bool = False, **options: Any) -> str:
    """The source of a GraphModule and its children, as classes."""
    graph = getattr(module, "graph", None)
    if not isinstance(graph, Graph):
        raise AssertionError("print_readable must be used on a module with a graph")
    src = graph.python_code(root_module="self", verbose=True, expanded_def=expanded_def, **options).src.lstrip("\n")
    code = _addindent(f"class {name}(torch.nn.Module):\n{src}", 4)
    children = [_readable(child, n, **options) for n, child in module.named_children() if isinstance(child, GraphModule)]
    return code + _addindent("\n".join(["", *children]), 4)
