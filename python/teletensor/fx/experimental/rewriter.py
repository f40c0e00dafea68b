"""RewritingTracer: rewrites the assertions and annotated assignments of functions, then traces the functions."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from types import CellType, CodeType, FunctionType
from typing import Any, Callable

from ... import nn
from ..._ops.assertions import _assert
from .._symbolic_trace import Tracer
from ..annotate import annotate
from ..graph import Graph

__all__ = ["AST_Rewriter", "RewritingTracer"]

# The functions that rewritten code calls, by the names of the enclosing variables that hold them.
_CALLED = {"_fx_assert": _assert, "_fx_annotate": annotate}


class AST_Rewriter(ast.NodeTransformer):  # noqa: N801 - PyTorch's name
    """Replaces `assert a, b` by `torch._assert(a, b)`, and `x: T = v` by `x = annotate(v, T)`, which tracing records."""

    def rewrite(self, fn: FunctionType) -> FunctionType:
        """The function with its body rewritten; it has the same globals and the same variables of enclosing functions.

        Raises:
            NotImplementedError: for a lambda or a decorated function.
            OSError: its source is not available.
        """
        definition = ast.parse(textwrap.dedent(inspect.getsource(fn))).body[0]
        if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
            raise NotImplementedError(f"[AST_Rewriter] expected a function without decorators, got {fn}")
        variables = [*fn.__code__.co_freevars, *_CALLED]
        arguments = ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=name) for name in variables], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        enclosing = ast.FunctionDef(
            name="_enclosing", args=arguments, body=[self.visit(definition)], decorator_list=[], type_params=[]
        )
        tree = ast.fix_missing_locations(ast.Module(body=[enclosing], type_ignores=[]))
        ast.increment_lineno(tree, fn.__code__.co_firstlineno - 1)
        code = _inner(_inner(compile(tree, fn.__code__.co_filename, "exec"), "_enclosing"), definition.name)
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
        cells.update({name: CellType(value) for name, value in _CALLED.items()})
        closure = tuple(cells[name] for name in code.co_freevars)
        result = FunctionType(code, fn.__globals__, fn.__name__, fn.__defaults__, closure)
        functools.update_wrapper(result, fn)
        del result.__wrapped__
        result.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
        return result

    def visit_Assert(self, node: ast.Assert) -> ast.Expr:  # noqa: N802 - the name that ast expects
        """The call that replaces an assertion."""
        return _call("_fx_assert", node, node.test, node.msg or ast.Constant(value=""))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:  # noqa: N802
        """The assignment that replaces an annotated one."""
        if node.value is None:
            return node
        value = _call("_fx_annotate", node, node.value, node.annotation).value
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)


def _call(function: str, place: ast.AST, *args: ast.expr) -> ast.Expr:
    call = ast.Call(func=ast.Name(id=function, ctx=ast.Load()), args=list(args), keywords=[])
    return ast.copy_location(ast.Expr(value=call), place)


def _inner(code: CodeType, name: str) -> CodeType:
    """The code object of a function that is nested in another code object."""
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)


class RewritingTracer(Tracer):
    """Traces a module or function with assertions and annotated assignments as nodes; see AST_Rewriter.

    Modules that are not leaves are copied with their forward() rewritten; the copies share the parameters.
    """

    def trace(self, root: nn.Module | Callable, concrete_args: dict[str, Any] | None = None) -> Graph:
        """Rewrites and traces the root; see Tracer.trace()."""
        rewritten = self._rewritten(root, "") if isinstance(root, nn.Module) else AST_Rewriter().rewrite(root)
        return super().trace(rewritten, concrete_args)

    def _rewritten(self, module: nn.Module, name: str) -> nn.Module:
        """A copy of a module with the forward() of it and its submodules rewritten."""
        copied = copy.copy(module)
        kind = type(module)
        if not isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            attributes = {"forward": AST_Rewriter().rewrite(kind.forward), "__module__": kind.__module__}
            copied.__class__ = type(kind.__name__, (kind,), attributes)
        vars(copied)["_modules"] = type(module._modules)(module._modules)
        for child_name, child in module._modules.items():
            path = f"{name}.{child_name}" if name else child_name
            if child is not None and not self.is_leaf_module(child, path):
                copied._modules[child_name] = self._rewritten(child, path)
        return copied
