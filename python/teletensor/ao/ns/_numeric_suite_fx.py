"""torch.ao.ns._numeric_suite_fx: weights and values of two graphs of a model, before and after quantization, side by side.

Nodes are matched by the names of their modules, and the functions between these by their order and names. Results:
``{node of model b: {"weight" or "node_output" or "node_input": {model's name: [{"values": [...], ...}]}}}``.
"""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable
from typing import Any

from ..._C import Tensor
from ..._not_implemented import not_implemented
from ...fx import GraphModule, Node
from ...nn import Module
from ..quantization import FakeQuantizeBase, ObserverBase
from ..quantization.fx.tracer import QuantizationTracer
from .fx.utils import compute_sqnr

__all__ = [
    "NSTracer", "OutputComparisonLogger", "OutputLogger", "add_loggers", "extend_logger_results_with_comparison",
    "extract_logger_info", "extract_weights",
]  # fmt: skip

not_implemented(
    globals(), "copies of parts of a model beside each other",
    "add_shadow_loggers convert_n_shadows_model extract_results_n_shadows_model extract_shadow_logger_info "
    "loggers_set_enabled loggers_set_save_activations prepare_n_shadows_model print_comparisons_n_shadows_model",
)  # fmt: skip

_CONVERSIONS = {"quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic", "dequantize", "to", "getitem", "getattr"}
# Functions that only move elements, whose results are not compared, as in PyTorch.
_MOVING = {"flatten", "reshape", "view", "permute", "transpose", "squeeze", "unsqueeze", "chunk", "contiguous", "size", "repeat", "unfold"}


class OutputLogger(Module):
    """Keeps the values that it is called with, in ``stats``; those of recurrent layers in ``stats_rnn``. Returns them.

    Args:
        ref_node_name, ref_node_target_type: the node that is compared, and its type.
        prev_node_name, prev_node_target_type: the node whose value is kept.
        ref_name: the node of the model that names the results.
        results_type: "node_output" or "node_input".
        fqn: the module's name.
    """

    _is_impure = True

    def __init__(
        self, ref_node_name: str, prev_node_name: str, model_name: str, ref_name: str, prev_node_target_type: str,
        ref_node_target_type: str, results_type: str, index_within_arg: int, index_of_arg: int, fqn: str | None,
        qconfig_str: str | None = "",
    ) -> None:  # fmt: skip
        super().__init__()
        self.stats: list[Tensor] = []
        self.stats_rnn: list[tuple] = []
        self.ref_node_name, self.prev_node_name, self.model_name, self.ref_name = ref_node_name, prev_node_name, model_name, ref_name
        self.prev_node_target_type, self.ref_node_target_type = prev_node_target_type, ref_node_target_type
        self.results_type, self.index_within_arg, self.index_of_arg = results_type, index_within_arg, index_of_arg
        self.fqn, self.qconfig_str = fqn, qconfig_str
        self.enabled = self.save_activations = True

    def forward(self, x: Any) -> Any:
        """Keeps a tensor, or the result of a recurrent layer."""
        if self.enabled and self.save_activations:
            if isinstance(x, Tensor):
                self.stats.append(x.detach())
            elif isinstance(x, tuple) and len(x) == 2 and len(x[1]) == 2:
                self.stats_rnn.append((x[0].detach(), (x[1][0].detach(), x[1][1].detach())))
        return x

    def __repr__(self) -> str:
        values = {k: v for k, v in self.__dict__.items() if k != "training" and not k.startswith("_")}
        return f"{type(self).__name__}({values})"


class OutputComparisonLogger(OutputLogger):
    """An OutputLogger that compares each value with another one (``comparisons``, in decibels)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.comparison_fn, self.comparison_fn_name = compute_sqnr, "sqnr"
        self.comparisons: list = []

    def forward(self, x: Any, x_ref: Any) -> Any:  # type: ignore[override]
        """Keeps and compares a tensor. Raises AssertionError for other values."""
        if not self.enabled:
            return x
        if not isinstance(x, Tensor):
            raise AssertionError("non-tensor inputs not yet supported")
        if self.save_activations:
            self.stats.append(x.detach())
        self.comparisons.append(self.comparison_fn(x, x_ref))
        return x


class NSTracer(QuantizationTracer):
    """Traces a model; observers and fake quantizations are called as modules."""

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one node."""
        return isinstance(m, (ObserverBase, FakeQuantizeBase)) or super().is_leaf_module(m, module_qualified_name)


def _graph_of(model: Module) -> GraphModule:
    """A copy of the model's graph; the modules and their parameters are the model's."""
    if isinstance(model, GraphModule):
        return GraphModule(model, copy.deepcopy(model.graph))
    return GraphModule(model, NSTracer([], []).trace(model))


def _is_observer(model: Module, node: Node) -> bool:
    return node.op == "call_module" and isinstance(model.get_submodule(node.target), (ObserverBase, FakeQuantizeBase))


def _name(node: Node) -> str:
    """The name of the function that a node calls, without "functional" and what it is combined with."""
    target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    return target.split(".")[0].removesuffix("_scalar").removesuffix("_relu").strip("_")


def _compared(model: GraphModule) -> list[tuple[tuple[str, str], Node]]:
    """The nodes whose values are compared, with what they are matched by."""
    found = []
    for node in model.graph.nodes:
        if node.op == "call_module" and not _is_observer(model, node):
            found.append((("module", node.target), node))
        elif node.op in ("call_function", "call_method") and _name(node) not in _CONVERSIONS | _MOVING:
            found.append((("function", _name(node)), node))
    return found


def _matched(a: GraphModule, b: GraphModule) -> list[tuple[str, Node, Node]]:
    """Pairs of nodes, with the name of the second one."""
    nodes_a, nodes_b = _compared(a), _compared(b)
    keys = [[key for key, _ in nodes] for nodes in (nodes_a, nodes_b)]
    blocks = difflib.SequenceMatcher(None, *keys, autojunk=False).get_matching_blocks()
    pairs = [(nodes_a[m.a + i][1], nodes_b[m.b + i][1]) for m in blocks for i in range(m.size)]
    return [(second.name, first, second) for first, second in pairs]


def _type_of(model: Module, node: Node) -> str:
    """The name of the class or function that a node calls."""
    target = type(model.get_submodule(node.target)) if node.op == "call_module" else node.target
    if isinstance(target, str):
        return target
    return f"{getattr(target, '__module__', '')}.{getattr(target, '__qualname__', getattr(target, '__name__', target))}"


def _weight_of(model: Module, node: Node) -> Tensor | None:
    """The weight of a layer, or of a function whose second argument is an attribute."""
    if node.op == "call_module":
        module = model.get_submodule(node.target)
        if not hasattr(module, "weight") and hasattr(module, "__getitem__") and len(module):
            module = module[0]  # a fused layer
        weight = getattr(module, "weight", None)
        found = weight() if callable(weight) and not isinstance(weight, Tensor) else weight
        return found.detach() if isinstance(found, Tensor) and found.dim() > 1 else None
    if _name(node) in ("linear", "conv1d", "conv2d", "conv3d") and len(node.args) > 1:
        source = node.args[1]
        while isinstance(source, Node) and source.op != "get_attr" and (_is_observer(model, source) or _name(source) in _CONVERSIONS):
            source = source.args[0]
        if isinstance(source, Node) and source.op == "get_attr":
            owner, _, name = source.target.rpartition(".")
            found = getattr(model.get_submodule(owner), name)
            return found.detach() if isinstance(found, Tensor) else None
    return None


def _fqn(node: Node) -> str:
    return node.target if node.op == "call_module" else ""


def extract_weights(
    model_name_a: str, model_a: Module, model_name_b: str, model_b: Module, base_name_to_sets_of_related_ops: Any = None,
    unmatchable_types_map: Any = None, op_to_type_to_weight_extraction_fn: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """The weights of the layers of two models.

    Raises:
        NotImplementedError: tables of related operators or of functions that extract weights are given.
    """
    _only_defaults(base_name_to_sets_of_related_ops, unmatchable_types_map, op_to_type_to_weight_extraction_fn)
    graphs = {model_name_a: _graph_of(model_a), model_name_b: _graph_of(model_b)}
    results: dict[str, Any] = {}
    for name, *pair in _matched(*graphs.values()):
        weights = [_weight_of(graph, node) for graph, node in zip(graphs.values(), pair, strict=True)]
        if any(weight is None for weight in weights):
            continue
        entries = {}
        for (model_name, graph), node, weight in zip(graphs.items(), pair, weights, strict=True):
            kind = _type_of(graph, node)
            entries[model_name] = [{
                "type": "weight", "values": [weight], "prev_node_name": node.name, "prev_node_target_type": kind,
                "ref_node_name": node.name, "ref_node_target_type": kind, "index_within_arg": 0, "index_of_arg": 0, "fqn": _fqn(node),
            }]  # fmt: skip
        results[name] = {"weight": entries}
    return results


def _only_defaults(*tables: Any) -> None:
    if any(table is not None for table in tables):
        raise NotImplementedError("[_numeric_suite_fx] tables of related operators are not supported: nodes are matched by names")


def _log(graph: GraphModule, logger_cls: Callable, model_name: str, name: str, node: Node, value: Node, kind: str, place: int) -> None:
    """Inserts a logger of the value of a node before its other users."""
    logger = logger_cls(
        node.name, value.name, model_name, name, _type_of(graph, value) if value.op.startswith("call") else value.op,
        _type_of(graph, node), kind, 0, place, _fqn(node),
    )  # fmt: skip
    attribute = f"{value.name}_{kind}_logger_{place}"
    while hasattr(graph, attribute):
        attribute += "_"
    graph.add_submodule(attribute, logger)
    with graph.graph.inserting_after(value):
        made = graph.graph.call_module(attribute, (value,))
    if kind == "node_output":
        value.replace_all_uses_with(made, lambda user: user is not made)
    else:
        node.replace_input_with(value, made)


def add_loggers(
    name_a: str, model_a: Module, name_b: str, model_b: Module, logger_cls: Callable, should_log_inputs: bool = False,
    base_name_to_sets_of_related_ops: Any = None, unmatchable_types_map: Any = None,
) -> tuple[GraphModule, GraphModule]:  # fmt: skip
    """Copies of both models whose values are kept by loggers when they run. They share the models' parameters.

    Args:
        logger_cls: OutputLogger, or a subclass.
        should_log_inputs: keeps the nodes' tensor arguments too.
    """
    _only_defaults(base_name_to_sets_of_related_ops, unmatchable_types_map)
    graphs = {name_a: _graph_of(model_a), name_b: _graph_of(model_b)}
    for name, *pair in _matched(*graphs.values()):
        for (model_name, graph), node in zip(graphs.items(), pair, strict=True):
            if should_log_inputs:
                for place, argument in enumerate(node.args):
                    if isinstance(argument, Node) and argument.op != "get_attr":
                        _log(graph, logger_cls, model_name, name, node, argument, "node_input", place)
            observers = [user for user in node.users if _is_observer(graph, user)]
            _log(graph, logger_cls, model_name, name, node, observers[0] if observers else node, "node_output", 0)
    for graph in graphs.values():
        graph.graph.lint()
        graph.recompile()
    return tuple(graphs.values())  # type: ignore[return-value]


def extract_logger_info(
    model_a: Module, model_b: Module, logger_cls: Callable, model_name_to_use_for_layer_names: str
) -> dict[str, Any]:
    """The values that the loggers of both models kept.

    Args:
        model_name_to_use_for_layer_names: the model after whose nodes the results are named: that of model b.
    """
    results: dict[str, Any] = {}
    for model in (model_a, model_b):
        for logger in model.modules():
            if not isinstance(logger, logger_cls):
                continue
            entry = {
                "type": logger.results_type, "values": logger.stats_rnn or logger.stats, "ref_node_name": logger.ref_node_name,
                "ref_node_target_type": logger.ref_node_target_type, "prev_node_name": logger.prev_node_name,
                "prev_node_target_type": logger.prev_node_target_type, "index_within_arg": logger.index_within_arg,
                "index_of_arg": logger.index_of_arg, "fqn": logger.fqn, "qconfig_str": logger.qconfig_str,
                "comparisons": getattr(logger, "comparisons", []), "comparison_fn_name": getattr(logger, "comparison_fn_name", ""),
            }  # fmt: skip
            kinds = results.setdefault(logger.ref_name, {})
            kinds.setdefault(logger.results_type, {}).setdefault(logger.model_name, []).append(entry)
    for name, kinds in list(results.items()):
        found = next(iter(kinds.values())).get(model_name_to_use_for_layer_names)
        if found is None:
            raise ValueError(f"expected the name of one of the models, got {model_name_to_use_for_layer_names!r}")
        wanted = found[0]["ref_node_name"]
        if wanted != name:
            results[wanted] = results.pop(name)
    return results


def extend_logger_results_with_comparison(
    results: dict[str, Any], model_name_1: str, model_name_2: str, comparison_fn: Callable[[Any, Any], Any], comparison_name: str
) -> None:
    """Adds the comparisons of both models' values to the entries of the second one, as ``comparison_name``.

    Raises:
        AssertionError: the results lack one of the models.
    """
    for kinds in results.values():
        for models in kinds.values():
            if model_name_1 not in models or model_name_2 not in models:
                raise AssertionError(f"{model_name_1} or {model_name_2} not found in results")
            for first, second in zip(models[model_name_1], models[model_name_2], strict=False):
                second[comparison_name] = [comparison_fn(a, b) for a, b in zip(first["values"], second["values"], strict=False)]


