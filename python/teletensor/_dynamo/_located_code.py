"""The code of a graph with the user's lines: errors name the call in the user's file, not the generated statement."""

from __future__ import annotations

import ast
import collections
import types
from collections.abc import Callable
from typing import Any

_Site = tuple[str, int, str]  # file, line and function


def located(module: Any) -> Callable:
    """The forward() of a GraphModule whose statements have the places of the calls that they were captured from.

    A code object has one file: statements from other files and functions are called as functions of their own.
    """
    text, forward = module.code, module.forward
    sites = {node.name: node.meta["site"] for node in module.graph.nodes if "site" in node.meta}
    if not sites or not isinstance(forward, types.MethodType):
        return forward
    namespace = dict(forward.__func__.__globals__)
    (file, name), _ = collections.Counter((site[0], site[2]) for site in sites.values()).most_common(1)[0]
    tree = ast.parse(text)
    function = next(part for part in tree.body if isinstance(part, ast.FunctionDef))
    bound = {a.arg for a in (*function.args.posonlyargs, *function.args.args)}
    line = first = min(site[1] for site in sites.values() if (site[0], site[2]) == (file, name))
    for statement in function.body:
        site = _site_of(statement, sites)
        if site is not None and (site[0], site[2]) != (file, name):
            statement.value = _call_of(statement.value, site, bound, namespace)
        elif site is not None:
            line = site[1]
        _place(statement, line)
        bound |= {part.id for part in ast.walk(statement) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return types.MethodType(_made(function, file, first, name, namespace), module)


def _site_of(statement: ast.stmt, sites: dict[str, _Site]) -> _Site | None:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return sites.get(targets[0].id) if len(targets) == 1 and isinstance(targets[0], ast.Name) else None


def _call_of(value: ast.expr, site: _Site, bound: set[str], namespace: dict[str, Any]) -> ast.Call:
    """A call of a function at a place, which computes an expression of local variables."""
    names = sorted({part.id for part in ast.walk(value) if isinstance(part, ast.Name)} & bound)
    parameters = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    body = ast.Return(value)
    function = ast.FunctionDef("at_place", parameters, [body], [], None)
    _place(body, site[1])
    key = f"_at_place_{len(namespace)}"
    namespace[key] = _made(function, site[0], site[1], site[2], namespace)
    return ast.Call(ast.Name(key, ast.Load()), [ast.Name(n, ast.Load()) for n in names], [])


def _place(statement: ast.stmt, line: int) -> None:
    for part in ast.walk(statement):
        if isinstance(part, (ast.stmt, ast.expr, ast.keyword)):
            part.lineno = part.end_lineno = line
            part.col_offset = part.end_col_offset = 0


def _made(function: ast.FunctionDef, file: str, line: int, name: str, namespace: dict[str, Any]) -> types.FunctionType:
    function.lineno = function.end_lineno = line
    function.col_offset = function.end_col_offset = 0
    for part in ast.walk(function.args):
        if isinstance(part, (ast.arg, ast.expr)):
            part.lineno = part.end_lineno = line
            part.col_offset = part.end_col_offset = 0
    function.decorator_list, function.returns = [], None
    for argument in function.args.args:
        argument.annotation = None
    code = compile(ast.Module([function], []), file, "exec", dont_inherit=True)
    own = next(c for c in code.co_consts if isinstance(c, types.CodeType))
    return types.FunctionType(own.replace(co_name=name.rpartition(".")[2], co_qualname=name), namespace)
