"""Fusion in graphs: sequences of modules and functions that follow each other become one module."""

from __future__ import annotations

from typing import Any

from .... import fx, nn
from ....nn import functional as F
from ..backend_config import BackendConfig
from ..fuse_modules import _get_module, _set_module


def kind_of(node: fx.Node, model: nn.Module) -> Any:
    """What a node computes: a module's class, a function, or the name of a method."""
    if node.op == "call_module":
        return type(_get_module(model, node.target))
    return node.target if node.op in ("call_function", "call_method") else None


def chain(node: fx.Node, pattern: tuple, model: nn.Module) -> list[fx.Node] | None:
    """The nodes that end in a node and match a pattern, each used by the next one only; in the order of the pattern."""
    found = [node]
    for part in reversed(pattern):
        last = found[-1]
        if kind_of(last, model) is not part and kind_of(last, model) != part:
            return None
        if len(found) == len(pattern):
            return found[::-1]
        before = last.args[0] if last.args else None
        if not isinstance(before, fx.Node) or len(before.users) != 1:
            return None
        found.append(before)
    return None


def fuse(model: fx.GraphModule, is_qat: bool, config: BackendConfig) -> None:
    """Fuses patterns in place, the longest first, and what is fused with what follows it: Linear and BatchNorm1d, then ReLU."""
    while _fuse_once(model, is_qat, config):
        pass
    model.recompile()


def _fuse_once(model: fx.GraphModule, is_qat: bool, config: BackendConfig) -> bool:
    is_changed = False
    patterns = sorted((c for c in config.configs if c.fuser_method is not None), key=lambda c: -len(c.pattern))
    for node in reversed(list(model.graph.nodes)):
        for entry in patterns:
            nodes = chain(node, entry.pattern, model)
            if nodes is None or nodes[0].op != "call_module":
                continue
            modules = [_get_module(model, n.target) if n.op == "call_module" else _module_of(n.target) for n in nodes]
            if len({m.training for m, n in zip(modules, nodes) if n.op == "call_module"}) > 1:
                continue
            for module in modules:
                module.train(modules[0].training)
            fused = entry.fuser_method(is_qat, *modules)
            for module in (fused, modules[0]):
                if hasattr(modules[0], "qconfig"):
                    module.qconfig = modules[0].qconfig
            _set_module(model, nodes[0].target, fused)
            for name in (n.target for n in nodes[1:] if n.op == "call_module"):
                _set_module(model, name, nn.Identity())
            nodes[-1].replace_all_uses_with(nodes[0])
            for old in reversed(nodes[1:]):
                model.graph.erase_node(old)
            is_changed = True
            break
    return is_changed


def _module_of(function: Any) -> nn.Module:
    """The module of a function in a pattern."""
    if function is not F.relu:
        raise NotImplementedError(f"[fuse_fx] expected a pattern of modules and torch.nn.functional.relu, got {function}")
    return nn.ReLU()
