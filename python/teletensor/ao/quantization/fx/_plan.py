"""Decisions before observers are added: the configuration of each node, and whether the backend quantizes it."""

from __future__ import annotations

import copy
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from .... import _C, fx, nn
from ...._C import Tensor
from ...._grad_mode import no_grad
from ....nn import functional as F
from .. import utils
from .._observers import FixedQParamsObserver
from ..backend_config import BackendConfig, BackendPatternConfig, ObservationType
from ..fuse_modules import _get_module
from ..qconfig_mapping import QConfigMapping
from ._fuse import chain, kind_of


@dataclass
class Step:
    """A node that is quantized, alone or with a ReLU after it.

    Attributes:
        root: the name of the node that computes; relu: of the ReLU that belongs to it, or "".
        qconfig: its configuration.
        dynamic: whether its input is quantized with the range of each tensor; weight_only: not at all.
        shared: whether its result has its input's scale.
        weight: the index of its weight among its arguments; None for modules.
    """

    root: str
    relu: str
    qconfig: Any
    dynamic: bool
    weight_only: bool
    shared: bool
    weight: int | None


class _Recorder(fx.Interpreter):
    """Runs a graph and records which nodes give float tensors."""

    def __init__(self, model: fx.GraphModule):
        super().__init__(model)
        self.floats: set[str] = set()

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        if isinstance(result, Tensor) and result.is_floating_point():
            self.floats.add(n.name)
        return result


@no_grad()
def float_nodes(model: fx.GraphModule, example_inputs: tuple) -> set[str]:
    """The names of the nodes that give float tensors for some inputs. Computes with a copy in evaluation mode."""
    recorder = _Recorder(copy.deepcopy(model).eval())
    recorder.run(*example_inputs)
    return recorder.floats


def configurations(
    model: fx.GraphModule, scopes: dict[str, tuple[str, Any]], mapping: QConfigMapping
) -> dict[str, Any]:
    """The configuration of each node by name: by number in its module, module's name, expression, type, or the global one."""
    found, counts = {}, Counter()
    for node in model.graph.nodes:
        kind = kind_of(node, model)
        if kind is None:
            continue
        path = node.target if node.op == "call_module" else scopes.get(node.name, ("", None))[0]
        parent = path.rpartition(".")[0] if node.op == "call_module" else path
        names = [path] if path else []
        while names and "." in names[-1]:
            names.append(names[-1].rpartition(".")[0])
        qconfig = mapping.global_qconfig
        own = mapping.object_type_qconfigs
        qconfig = own.get(kind, qconfig)
        for name in reversed(names):  # the configuration of an enclosing module's class
            module = _get_module(model, name) if hasattr(model, name.partition(".")[0]) else None
            if name != path and module is not None and type(module) in own:
                qconfig = own[type(module)]
        if kind in own:
            qconfig = own[kind]
        qconfig = next((v for k, v in mapping.module_name_regex_qconfigs.items() if re.match(k, path)), qconfig)
        qconfig = next((mapping.module_name_qconfigs[n] for n in names if n in mapping.module_name_qconfigs), qconfig)
        order = (parent, kind, counts[parent, kind])
        counts[parent, kind] += 1
        found[node.name] = mapping.module_name_object_type_order_qconfigs.get(order, qconfig)
    return found


def _fits(qconfig: Any, config: BackendPatternConfig) -> Any:
    """The dtypes of a backend that fit a configuration; None if there are none."""
    if qconfig is None:
        return None
    activation, weight, dynamic = utils.get_qconfig_dtypes(qconfig) if qconfig.weight is not None else (
        qconfig.activation().dtype, None, False,
    )  # fmt: skip
    has_weight = config.root_module is not None or bool(config._input_type_to_index)
    for dtypes in config.dtype_configs:
        if bool(dtypes.is_dynamic) != dynamic or dtypes.input_dtype != activation:
            continue
        if has_weight and dtypes.weight_dtype not in (None, _C.float32, weight):
            continue
        limits = dtypes.output_dtype_with_constraints
        if limits.scale_exact_match is not None:
            observer = qconfig.activation()
            observer = getattr(observer, "activation_post_process", observer)
            if not isinstance(observer, FixedQParamsObserver):
                continue
        return dtypes
    return None


_RELUS = (nn.ReLU, F.relu, _C.torch.relu)


def steps(
    model: fx.GraphModule, qconfigs: dict[str, Any], backend: BackendConfig, floats: set[str]
) -> dict[str, Step]:
    """The nodes that are quantized, by the name of their last node, in the graph's order."""
    table = {c.pattern: c for c in backend.configs if c.pattern is not None}
    found: dict[str, Step] = {}
    taken: set[str] = set()
    for node in reversed(list(model.graph.nodes)):
        if node.name in taken or node.name not in floats:
            continue
        kind, nodes = kind_of(node, model), [node]
        config = table.get(kind)
        for relu in _RELUS if kind in _RELUS else ():
            pair = next((p for p in table if isinstance(p, tuple) and len(p) == 2 and p[1] is relu and chain(node, p, model)), None)
            if pair is not None and table[pair].fuser_method is None:
                nodes, config = chain(node, pair, model), table[pair]
        if config is None or config.fuser_method is not None:
            continue
        root = nodes[0]
        own = table.get(kind_of(root, model), config)
        dtypes = _fits(qconfigs.get(root.name), config if config.dtype_configs else own)
        if dtypes is None or config.observation_type is ObservationType.INPUT_OUTPUT_NOT_OBSERVED:
            continue
        count = sum(isinstance(a, fx.Node) and a.name in floats for a in root.args)
        observation = own._num_tensor_args_to_observation_type.get(count, config.observation_type)
        shared = observation is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT and len(nodes) == 1
        found[node.name] = Step(
            root.name, node.name if len(nodes) > 1 else "", qconfigs[root.name], bool(dtypes.is_dynamic),
            dtypes.input_dtype == _C.float32, shared, own._input_type_to_index.get("weight") if root.op != "call_module" else None,
        )  # fmt: skip
        taken.update(n.name for n in nodes)
    return dict(reversed(found.items()))
