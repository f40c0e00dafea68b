"""Turns ONNX's graphs and functions into Plans: nodes in order, each with the function that computes it.

A model may come from anyone. Building a Plan takes time and memory in proportion to the model: names are defined once and
before their use (so there are no cycles), nesting and the expansion of functions are limited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _values, _weights
from ._call import Call, kept
from ._package import onnx
from ._run import Run, Step
from ._schemas import check_node
from .ops import find

MAX_DEPTH = 24  # graphs and functions within each other
EXPANDED_NODES = 20_000  # with functions expanded at each call, and one more for every 4 bytes of the model
MAX_OPSET = 28  # the newest version of ai.onnx whose operators were implemented


class Plan:
    """A graph, ready to be executed.

    Attributes:
        inputs: names.
        outputs: names.
        constants: host values by name.
        weights: keys into the model's store, by name.
        steps: nodes in order.
        captured: names of graphs around this one that it reads.
        variables: names that a Gradient differentiates with respect to.
        declared: the element type (0: unknown) and sizes (None: unknown) of each output.
    """

    def __init__(self) -> None:
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.constants: dict[str, Any] = {}
        self.weights: dict[str, str] = {}
        self.steps: list[Step] = []
        self.captured: set[str] = set()
        self.variables: frozenset[str] = frozenset()
        self.declared: list[tuple[int, tuple | None]] = []

    def run(self, call: Call, *inputs: Any) -> list[Any]:
        """Executes the graph, an attribute of a node, with these inputs."""
        if len(inputs) > len(self.inputs):
            raise ValueError(f"[{call.name}] expected a graph of {len(inputs)} inputs, got one of {len(self.inputs)}")
        run = call.run
        return Run(self, run.store, run.device, run)(dict(zip(self.inputs, inputs)))


class Builder:
    """Makes the Plans of a model.

    Args:
        model: the message ModelProto.
        store: receives the weights.
        folder: where files of external data are; None if there are none.
    """

    def __init__(self, model: Any, store: Any, folder: str | None) -> None:
        self.store, self.folder, self.nodes = store, folder, 0
        self.functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
        self.missing: set[str] = set()
        stored = model.ByteSize()
        self.budget, self.most_nodes = _weights.Budget(stored), EXPANDED_NODES + stored // 4
        self.opsets = _opsets(model.opset_import)
        if not self.opsets:
            raise ValueError(
                "[onnx.load] expected the versions of the operator sets (opset_import), the model has none"
            )

    def graph(self, graph: Any, opsets: dict[str, int], attributes: dict[str, Any], visible: list[set[str]],
              depth: int, prefix: str) -> Plan:  # fmt: skip
        """The Plan of a graph.

        Args:
            opsets: versions by domain.
            attributes: of the call of the function that the graph belongs to.
            visible: the names of each graph around this one.
        """
        if depth > MAX_DEPTH:
            raise ValueError(f"[onnx.load] expected graphs and functions nested at most {MAX_DEPTH} deep")
        plan = Plan()
        plan.inputs = [i.name for i in graph.input]
        plan.outputs = [o.name for o in graph.output]
        plan.declared = [_declared(o.type) for o in graph.output]
        if len(set(plan.inputs)) != len(plan.inputs):
            raise ValueError(f"[onnx.load] expected inputs of different names, got {plan.inputs}")
        defined = set(plan.inputs)
        tensors = [(t.name, t) for t in graph.initializer] + [(t.values.name, t) for t in graph.sparse_initializer]
        seen: set[str] = set()
        for name, tensor in tensors:
            if name in seen:
                raise ValueError(f"[onnx.load] expected initializers of different names, got {name!r} twice")
            seen.add(name)
            plan.constants[name] = _weights.read(tensor, self.folder, self.budget)
            defined.add(name)
        self._nodes(plan, graph.node, opsets, attributes, [*visible, defined], depth, prefix)
        return plan

    def function(self, proto: Any, attributes: dict[str, Any], depth: int, prefix: str) -> Plan:
        """The Plan of a function for a call with these attributes."""
        if depth > MAX_DEPTH:
            raise ValueError(f"[onnx.load] expected graphs and functions nested at most {MAX_DEPTH} deep")
        plan = Plan()
        plan.inputs, plan.outputs = list(proto.input), list(proto.output)
        given = {a.name: self._attribute(a, self.opsets, {}, [], depth, prefix) for a in proto.attribute_proto}
        given.update(attributes)
        opsets = {**self.opsets, **_opsets(proto.opset_import)}
        self._nodes(plan, proto.node, opsets, given, [set(plan.inputs)], depth, prefix)
        return plan

    def _nodes(self, plan: Plan, nodes: Any, opsets: dict[str, int], attributes: dict[str, Any],
               visible: list[set[str]], depth: int, prefix: str) -> None:  # fmt: skip
        self.nodes += len(nodes)
        if self.nodes > self.most_nodes:
            raise ValueError(f"[onnx.load] expected at most {self.most_nodes} nodes, with functions expanded")
        defined = visible[-1]
        for position, node in enumerate(nodes):
            where = f"{node.op_type} {node.name!r}" if node.name else f"{node.op_type} (number {position})"
            for name in node.input:
                if name and not any(name in names for names in visible):
                    raise ValueError(
                        f"[onnx.load] expected nodes in the order of execution, but {where} reads {name!r}, which nothing "
                        "before it computes (a cycle, or an unknown name)"
                    )
            step = self._step(node, opsets, attributes, visible, depth, prefix, where)
            for name in node.output:
                if name and (name in defined and name not in plan.inputs or name in plan.constants):
                    raise ValueError(
                        f"[onnx.load] expected every value to be computed once, but {where} computes {name!r} again"
                    )
                if name:
                    defined.add(name)
            if step is None:
                plan.constants[node.output[0]] = self._constant(node, opsets, attributes, visible, depth, prefix)
                continue
            plan.steps.append(step)
        for name in plan.outputs:
            if name and not any(name in names for names in visible):
                raise ValueError(f"[onnx.load] expected a node that computes the output {name!r}")
        plan.variables = _variables(plan)
        _finish(plan, defined)
        self._upload(plan, prefix)

    def _upload(self, plan: Plan, prefix: str) -> None:
        """Moves constants to the store, if operators of the engine read them."""
        wanted = {
            name
            for step in plan.steps
            for i, name in enumerate(step.inputs)
            if name in plan.constants and (kept(step.function) is not None and i not in kept(step.function))
        }
        for name in plan.constants:
            value = _values.plain(plan.constants[name])
            if not isinstance(value, np.ndarray) or value.dtype == object:
                continue
            if name in wanted or value.size > _weights.HOST_ELEMENTS:
                plan.weights[name] = self.store.add(f"{prefix}{name}", value)
        for name in plan.weights:
            value = plan.constants[name]
            if isinstance(value, np.ndarray) and value.size > _weights.HOST_ELEMENTS:
                del plan.constants[name]

    def _attribute(self, attribute: Any, opsets: dict[str, int], outer: dict[str, Any], visible: list[set[str]],
                   depth: int, prefix: str) -> Any:  # fmt: skip
        """The value of an attribute; graphs become Plans."""
        kind = onnx().AttributeProto
        if attribute.type == kind.GRAPH:
            return self.graph(attribute.g, opsets, outer, visible, depth + 1, f"{prefix}{attribute.name[:64]}.{self.nodes}.")
        if attribute.type == kind.GRAPHS:
            return [self.graph(g, opsets, outer, visible, depth + 1, f"{prefix}{attribute.name[:64]}.{self.nodes}.{i}.")
                    for i, g in enumerate(attribute.graphs)]  # fmt: skip
        if attribute.type == kind.TENSOR:
            return _weights.read(attribute.t, self.folder, self.budget)
        if attribute.type == kind.TENSORS:
            return [_weights.read(t, self.folder, self.budget) for t in attribute.tensors]
        if attribute.type == kind.SPARSE_TENSOR:
            return _weights.read(attribute.sparse_tensor, self.folder, self.budget)
        if attribute.type == kind.STRING:
            return attribute.s.decode("utf-8", "replace")
        if attribute.type == kind.STRINGS:
            return [s.decode("utf-8", "replace") for s in attribute.strings]
        if attribute.type == kind.TYPE_PROTO:
            return attribute.tp
        if attribute.type in (kind.FLOAT, kind.INT):
            return attribute.f if attribute.type == kind.FLOAT else attribute.i
        if attribute.type in (kind.FLOATS, kind.INTS):
            return list(attribute.floats if attribute.type == kind.FLOATS else attribute.ints)
        raise ValueError(
            f"[onnx.load] expected an attribute of a known type, got {attribute.type} of {attribute.name!r}"
        )

    def _attributes(self, node: Any, opsets: dict[str, int], outer: dict[str, Any], visible: list[set[str]],
                    depth: int, prefix: str) -> dict[str, Any]:  # fmt: skip
        found = {}
        for a in node.attribute:
            if a.ref_attr_name:
                if a.ref_attr_name in outer:
                    found[a.name] = outer[a.ref_attr_name]
                continue
            found[a.name] = self._attribute(a, opsets, outer, visible, depth, prefix)
        return found

    def _constant(self, node: Any, opsets: dict[str, int], outer: dict[str, Any], visible: list[set[str]],
                  depth: int, prefix: str) -> Any:  # fmt: skip
        attributes = self._attributes(node, opsets, outer, visible, depth, prefix)
        kinds = {
            "value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64,
            "value_string": object, "value_strings": object,
        }  # fmt: skip
        for name, value in attributes.items():
            if name in ("value", "sparse_value"):
                return value
            if name in kinds:
                return np.asarray(value, dtype=kinds[name])
        raise ValueError("[Constant] expected an attribute with the value, the node has none")

    def _step(self, node: Any, opsets: dict[str, int], outer: dict[str, Any], visible: list[set[str]],
              depth: int, prefix: str, where: str) -> Step | None:  # fmt: skip
        """The step of a node; None for a constant."""
        domain = "" if node.domain == "ai.onnx" else node.domain
        local = self.functions.get((node.domain, node.op_type, getattr(node, "overload", "")))
        if local is None and domain == "" and node.op_type == "Constant" and len(node.output) == 1:
            return None
        attributes = self._attributes(node, opsets, outer, visible, depth, prefix)
        inputs, outputs = list(node.input), list(node.output)
        if local is not None:
            body = self.function(local, attributes, depth + 1, f"{prefix}{node.op_type[:64]}.{self.nodes}.")
            return Step(node.op_type, 0, _caller(body), {}, inputs, outputs, where, False)
        version = opsets.get(domain)
        if version is None:
            version = opsets.get("ai.onnx") if domain == "" else None
        if version is None:
            raise ValueError(f"[onnx.load] expected a version of the operator set {domain!r}, which {where} belongs to")
        if domain == "" and version > MAX_OPSET:
            raise NotImplementedError(f"[onnx.load] expected an operator set of at most {MAX_OPSET}, got {version}")
        check_node(node, domain, version)
        function = find(domain, node.op_type, version)
        if function is None:
            function = self._from_schema(node, domain, version, attributes, depth, prefix)
        if function is None:
            self.missing.add(f"{domain + '.' if domain else ''}{node.op_type}-{version}")
            function = _absent
        step = Step(node.op_type, version, function, attributes, inputs, outputs, where, domain == "")
        for value in attributes.values():
            for plan in value if isinstance(value, list) else [value]:
                if isinstance(plan, Plan):
                    step.captured += plan.captured
        return step

    def _from_schema(self, node: Any, domain: str, version: int, attributes: dict[str, Any], depth: int,
                     prefix: str) -> Callable | None:  # fmt: skip
        """A function that executes the body which the schema of an operator has, if it has one."""
        defs = onnx().defs
        try:
            schema = defs.get_schema(node.op_type, version, domain)
        except defs.SchemaError:
            return None
        if schema.has_function:
            given = {n: _default(a.default_value) for n, a in schema.attributes.items() if a.default_value.type}
            given.update(attributes)
            versions = [v for v in schema.function_opset_versions if v <= version]
            text = schema.get_function_with_opset_version(max(versions)) if versions else None
            if text is None:
                return None
            proto = onnx().FunctionProto.FromString(text)
            return _caller(self.function(proto, given, depth + 1, f"{prefix}{node.op_type[:64]}.{self.nodes}."))
        if schema.has_context_dependent_function:
            return _typed_caller(self, schema, node, version, attributes, depth, prefix)
        return None


def _opsets(imports: Any) -> dict[str, int]:
    return {("" if o.domain == "ai.onnx" else o.domain): o.version for o in imports}


def _declared(proto: Any) -> tuple[int, tuple | None]:
    tensor = proto.tensor_type
    dims = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
    return tensor.elem_type, dims if tensor.HasField("shape") else None


def _default(attribute: Any) -> Any:
    kind = onnx().AttributeProto
    if attribute.type == kind.STRING:
        return attribute.s.decode()
    return onnx().helper.get_attribute_value(attribute)


def _absent(call: Call, *_inputs: Any) -> Any:
    raise NotImplementedError(f"[{call.name}] not implemented")


_absent.kept = None


def _caller(plan: Plan) -> Callable:
    """A step's function that executes the Plan of a function."""

    def call_function(call: Call, *inputs: Any) -> tuple:
        if len(inputs) > len(plan.inputs):
            raise ValueError(f"[{call.name}] expected at most {len(plan.inputs)} inputs, got {len(inputs)}")
        absent = [None] * (len(plan.inputs) - len(inputs))
        run = call.run
        return tuple(Run(plan, run.store, run.device, None, run.allowance)(dict(zip(plan.inputs, [*inputs, *absent]))))

    call_function.kept = None
    call_function.narrow = True
    return call_function


def _typed_caller(builder: Builder, schema: Any, node: Any, version: int, attributes: dict[str, Any], depth: int,
                  prefix: str) -> Callable:  # fmt: skip
    """A step's function that executes the body which a schema gives for the element types and ranks of the inputs."""
    plans: dict[tuple, Plan] = {}
    package = onnx()

    def call_function(call: Call, *inputs: Any) -> tuple:
        absent = [v is None or isinstance(v, list) for v in inputs]
        types = tuple((0, 0) if a else (_values.type_of(v), len(_values.shape_of(v))) for v, a in zip(inputs, absent))
        if types not in plans:
            make = package.helper.make_tensor_type_proto
            protos = [make(t, [None] * rank).SerializeToString() if t else b"" for t, rank in types]
            text = schema.get_context_dependent_function_with_opset_version(
                max(v for v in schema.context_dependent_function_opset_versions if v <= version),
                node.SerializeToString(), protos,
            )  # fmt: skip
            proto = package.FunctionProto.FromString(text)
            plans[types] = builder.function(proto, attributes, depth + 1, f"{prefix}{node.op_type}.{len(plans)}.")
        return _caller(plans[types])(call, *inputs)

    call_function.kept = None
    call_function.narrow = True
    return call_function


def _variables(plan: Plan) -> frozenset[str]:
    """The names that Gradient nodes differentiate with respect to.

    Raises:
        NotImplementedError: a Gradient is to be computed at other values than those of the graph.
    """
    found: set[str] = set()
    for step in plan.steps:
        if step.op == "Gradient" and step.function.__module__.endswith(".training"):
            xs, zs = step.attributes.get("xs") or [], step.attributes.get("zs") or []
            if step.inputs != [*xs, *zs]:
                raise NotImplementedError(
                    "[Gradient] inputs other than the values that xs and zs name are not implemented"
                )
            step.inputs = [*xs, *zs, step.attributes.get("y", "")]
            found.update(xs)
    return frozenset(found)


def _finish(plan: Plan, defined: set[str]) -> None:
    """Computes when each value is used last, and which names the graph reads from the graphs around it."""
    lasting = set(plan.outputs)
    for step in reversed(plan.steps):
        for name in dict.fromkeys([*step.inputs, *step.captured, *step.outputs]):
            if name and name not in lasting:
                lasting.add(name)
                if name in defined:
                    step.last_uses.append(name)
    for step in plan.steps:
        plan.captured.update(n for n in (*step.inputs, *step.captured) if n and n not in defined)
    plan.captured.update(n for n in plan.outputs if n and n not in defined)
