"""Conversion of graphs with observers to graphs that compute with integers."""

from __future__ import annotations

import copy
import operator
from typing import Any

from .... import _C, fx, nn, ops
from .... import _quantized_names as q
from ...._quantized import create
from ....nn import functional as F
from ...nn.intrinsic import quantized as nniq
from ...nn.intrinsic.fused import _FusedModule
from ...nn.quantized import Linear, Sigmoid, Softmax
from ...nn.quantized import conv as nnq_conv
from ...nn.quantized.utils import qparams, quantize_weight
from .. import quantization_mappings as tables
from .._post_process import _is_activation_post_process
from ..fuse_modules import _get_module, _set_module
from ..quantize import _remove_qconfig
from ..utils import get_qparam_dict
from ._fuse import kind_of
from ._plan import Step

_BINARY = {operator.add: "add", _C.torch.add: "add", operator.mul: "mul", _C.torch.mul: "mul", _C.torch.matmul: "matmul"}
_FUNCTIONS = {F.linear: 0, F.conv1d: 1, F.conv2d: 2, F.conv3d: 3}
_STATIC_DTYPES = (q.quint8, q.qint8)


class _Converter:
    """Builds the converted graph. Of each old node there may be a float node, a quantized node, or both."""

    def __init__(self, model: fx.GraphModule, is_reference: bool):
        self.old, self.is_reference = model, is_reference
        self.plan = model.meta["quantization"]
        self.model = model
        self.graph = fx.Graph()
        self.floats: dict[fx.Node, fx.Node] = {}
        self.quantized: dict[fx.Node, fx.Node] = {}
        self.steps: dict[str, Step] = {step.root: step for step in self.plan["steps"].values()}
        self.scales = 0

    # -- values

    def float_of(self, node: fx.Node) -> fx.Node:
        """The float value of an old node."""
        if node not in self.floats:
            self.floats[node] = self.graph.call_method("dequantize", (self.quantized[node],))
        return self.floats[node]

    def quantized_of(self, node: Any) -> fx.Node | None:
        """The quantized value of an old node; None if it has none."""
        return self.quantized.get(node) if isinstance(node, fx.Node) else None

    def observer(self, node: fx.Node) -> nn.Module | None:
        """The observer that a node calls."""
        if node.op != "call_module":
            return None
        module = _get_module(self.old, node.target)
        return module if _is_activation_post_process(module) else None

    def result_observer(self, node: fx.Node) -> nn.Module | None:
        """The observer of a node's result."""
        found = [o for o in map(self.observer, node.users) if o is not None and not getattr(o, "is_dynamic", False)]
        return found[0] if len(node.users) == 1 and found else None

    # -- nodes

    def run(self) -> fx.GraphModule:
        """The converted model."""
        inputs = [n for n in self.old.graph.nodes if n.op == "placeholder"]
        for node in self.old.graph.nodes:
            if node in inputs and inputs.index(node) in self.plan["inputs"]:
                self.quantized[node] = self.graph.node_copy(node)
            elif node.op == "output":
                self.output(node)
            elif self.observer(node) is not None:
                self.observed(node, self.observer(node))
            elif node.name not in self.steps or not self.step(node, self.steps[node.name]):
                if node not in self.quantized and node not in self.floats:
                    self.floats[node] = self.graph.node_copy(node, self.float_of)
        made = fx.GraphModule(self.model, self.graph)
        made.graph.eliminate_dead_code()
        made.delete_all_unused_submodules()
        _remove_qconfig(made)
        made.recompile()
        return made

    def output(self, node: fx.Node) -> None:
        """The results, float tensors except for those that the user wants quantized."""
        chosen = self.plan["outputs"]
        value = node.args[0]
        if isinstance(value, (list, tuple)):
            parts = [
                self.quantized.get(v) or self.float_of(v) if i in chosen and isinstance(v, fx.Node) else fx.map_arg(v, self.float_of)
                for i, v in enumerate(value)
            ]
            self.graph.output(type(value)(parts))
        elif chosen and value in self.quantized:
            self.graph.output(self.quantized[value])
        else:
            self.graph.output(fx.map_arg(value, self.float_of))

    def observed(self, node: fx.Node, observer: nn.Module) -> None:
        """An observer becomes a quantization, or nothing if its input is quantized by the node itself."""
        (value,) = node.args
        if value in self.quantized:
            self.quantized[node] = self.quantized[value]
            if value in self.floats:
                self.floats[node] = self.floats[value]
            return
        if observer.dtype not in _STATIC_DTYPES or getattr(observer, "is_dynamic", False) or value.op == "get_attr":
            self.floats[node] = self.float_of(value)
            return
        scale, point = qparams(observer)
        name = f"{value.name}_scale_{self.scales}", f"{value.name}_zero_point_{self.scales}"
        self.scales += 1
        self.model.register_buffer(name[0], _C.tensor(scale))
        self.model.register_buffer(name[1], _C.tensor(point))
        args = (self.float_of(value), *(self.graph.get_attr(n) for n in name), observer.dtype)
        self.quantized[node] = self.graph.call_function(create.quantize_per_tensor, args)

    def step(self, node: fx.Node, step: Step) -> bool:
        """Computes a planned node with integers. False if it is computed with floats."""
        if self.is_reference:
            return self.reference(node, step)
        last = next(iter(node.users)) if step.relu else node
        if step.dynamic or step.weight_only:
            return node.op == "call_module" and self.dynamic(node)
        observer = self.result_observer(last)
        if observer is None or observer.dtype not in _STATIC_DTYPES:
            return False
        if node.op == "call_module":
            made = self.module(node, observer)
        else:
            made = self.function(node, step, observer)
        if made is None and step.shared:
            made = self.moved(node)
        if made is None:
            return False
        self.quantized[node] = self.quantized[last] = made
        return True

    def moved(self, node: fx.Node) -> fx.Node | None:
        """The same operator on the integers."""
        nodes: list = []
        fx.map_arg((node.args, node.kwargs), nodes.append)
        tensors = [n for n in nodes if n in self.quantized]
        if not tensors:
            return None
        return self.graph.node_copy(node, lambda n: self.quantized[n] if n in self.quantized else self.float_of(n))

    def put(self, target: str, module: nn.Module, args: tuple) -> fx.Node:
        """A call of a module that replaces another one."""
        _set_module(self.model, target, module)
        return self.graph.call_module(target, args)

    def dynamic(self, node: fx.Node) -> bool:
        """A module whose input is quantized with its own range, or not at all."""
        module = _get_module(self.old, node.target)
        kind = tables.get_default_dynamic_quant_module_mappings().get(type(module))
        if kind is None:
            return False
        args = fx.map_arg(node.args, self.float_of)
        self.floats[node] = self.put(node.target, kind.from_float(module), args)
        return True

    def module(self, node: fx.Node, observer: nn.Module) -> fx.Node | None:
        """A module with a quantized class."""
        x = self.quantized_of(node.args[0])
        module = _get_module(self.old, node.target)
        if x is None:
            return None
        if type(module) in (nn.Sigmoid, nn.Softmax):
            kind = {nn.Sigmoid: Sigmoid, nn.Softmax: Softmax}[type(module)]
            return self.put(node.target, kind.from_reference(module, *qparams(observer)), (x,))
        if type(module) in (nn.Tanh, nn.Hardsigmoid):
            return self.graph.call_module(node.target, (x,))
        table = {**tables.get_default_static_quant_module_mappings(), **tables.get_embedding_static_quant_module_mappings()}
        kind = table.get(type(module))
        if kind is None or isinstance(module, (nn.ReLU6, nn.Dropout)):
            return self.graph.call_module(node.target, (x,)) if isinstance(module, (nn.ReLU6, nn.Dropout)) else None
        module.activation_post_process = observer
        return self.put(node.target, kind.from_float(module), (x,))

    def function(self, node: fx.Node, step: Step, observer: nn.Module) -> fx.Node | None:
        """A function with a quantized operator."""
        scale = qparams(observer)
        if node.target in _BINARY:
            return self.binary(node, bool(step.relu), scale)
        x = self.quantized_of(node.args[0])
        if x is None:
            return None
        if node.target in _FUNCTIONS:
            return self.weighted(node, x, bool(step.relu), scale)
        rest = tuple(fx.map_arg(node.args[1:], self.float_of))
        keywords = fx.map_arg(dict(node.kwargs), self.float_of)
        names = {
            F.elu: ("elu", (), ("alpha",)), F.hardswish: ("hardswish", (), ("inplace",)),
            F.leaky_relu: ("leaky_relu", ("negative_slope", "inplace"), ()),
            F.layer_norm: ("layer_norm", ("normalized_shape", "weight", "bias", "eps"), ()),
        }  # fmt: skip
        if node.target in (F.hardsigmoid, _C.torch.sigmoid, _C.torch.tanh) or node.op == "call_method":
            return self.moved(node)
        if node.target not in names:
            return None
        name, before, after = names[node.target]
        usual = {"alpha": 1.0, "negative_slope": 0.01, "inplace": False, "weight": None, "bias": None, "eps": 1e-5}
        given = dict(zip((*before, *after), rest)) | keywords
        values = {n: given.get(n, usual.get(n)) for n in (*before, *after)}
        function = getattr(ops.quantized, name)
        tail = () if name == "hardswish" else tuple(values[n] for n in after)
        return self.graph.call_function(function, (x, *(values[n] for n in before), *scale, *tail))

    def binary(self, node: fx.Node, relu: bool, scale: tuple) -> fx.Node | None:
        """A sum or product of two tensors, or of a tensor and a number."""
        name, tensors = _BINARY[node.target], [self.quantized_of(a) for a in node.args[:2]]
        ending = "_relu" if relu and name != "matmul" else ""
        if node.kwargs or len(node.args) != 2:
            return None
        if None not in tensors:
            if relu and name == "matmul":
                return None
            return self.graph.call_function(getattr(ops.quantized, name + ending), (*tensors, *scale))
        number = next((a for a in node.args if isinstance(a, (int, float))), None)
        x = next((t for t in tensors if t is not None), None)
        if number is None or x is None:
            return None
        return self.graph.call_function(getattr(ops.quantized, f"{name}_scalar{ending}"), (x, number))

    def weighted(self, node: fx.Node, x: fx.Node, relu: bool, scale: tuple) -> fx.Node | None:
        """A linear layer or convolution with a weight of the model."""
        n = _FUNCTIONS[node.target]
        names = ("input", "weight", "bias") + (("stride", "padding", "dilation", "groups") if n else ())
        given = {**dict(zip(names, node.args)), **node.kwargs}
        weight, observer = given["weight"].args[0], self.observer(given["weight"])
        bias = given.get("bias")
        if weight.op != "get_attr" or observer is None or (bias is not None and bias.op != "get_attr"):
            return None
        value = _attribute(self.old, weight.target).detach()
        if n == 0:
            made = (nniq.LinearReLU if relu else Linear)(value.shape[1], value.shape[0])
        else:
            if isinstance(given.get("padding", 0), str):
                return None
            kind = getattr(nniq, f"ConvReLU{n}d") if relu else getattr(nnq_conv, f"Conv{n}d")
            options = {k: given.get(k, usual) for k, usual in (("stride", 1), ("padding", 0), ("dilation", 1), ("groups", 1))}
            made = kind(value.shape[1] * options["groups"], value.shape[0], tuple(value.shape[2:]), **options)
        observer(value)
        made.set_weight_bias(quantize_weight(value.float(), observer), None if bias is None else _attribute(self.old, bias.target))
        made.scale, made.zero_point = scale
        name = f"{node.name}_quantized"
        self.model.add_module(name, made)
        return self.graph.call_module(name, (x,))

    def reference(self, node: fx.Node, step: Step) -> bool:
        """A module that computes with its dequantized weight."""
        if node.op != "call_module":
            return False
        module = _get_module(self.old, node.target)
        inner = module[0] if isinstance(module, _FusedModule) and len(module) else module
        kind = tables.get_default_static_quant_reference_module_mappings().get(type(inner))
        if kind is None or not getattr(kind, "_IS_REFERENCE", False):
            return False
        observer = step.qconfig.weight()
        observer(inner.weight)
        made = kind.from_float(inner, get_qparam_dict(observer))
        if inner is not module:
            module[0] = made
            made = module
        self.floats[node] = self.put(node.target, made, fx.map_arg(node.args, self.float_of))
        return True


def _attribute(model: nn.Module, path: str) -> Any:
    parent, _, name = path.rpartition(".")
    return getattr(_get_module(model, parent) if parent else model, name)


def convert(model: fx.GraphModule, is_reference: bool) -> fx.GraphModule:
    """The converted copy of a model that prepare() returned."""
    if "quantization" not in getattr(model, "meta", {}):
        raise AssertionError("[convert_fx] expected a model of prepare_fx or prepare_qat_fx")
    plan = model.meta["quantization"]
    copied = copy.deepcopy(model)
    copied.meta["quantization"] = plan
    training = copied.training
    made = _Converter(copied, is_reference).run()
    return made.train(training)


def kinds(model: fx.GraphModule) -> list[Any]:
    """What the nodes of a graph compute, in order."""
    return [kind_of(node, model) for node in model.graph.nodes]
