"""aot_export_module(): the graph of a module without writes, or of its forward and backward, whose inputs are its tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from .._C import Tensor
from .._library import aten
from ..export import Dim, export
from ..export._decompose import decomposed
from ..export.graph_signature import InputKind, OutputKind
from ..fx.experimental._composites import COMPOSITES
from ..fx.graph import CodeGen, _PyTreeCodeGen, _PyTreeInfo
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ..nn import Module
from ..utils import _pytree as pytree
from ._joint import Place, joint_graph


@dataclasses.dataclass
class BackwardSignature:
    """The names of results that are gradients, and of the result that is the loss."""

    gradients_to_parameters: dict[str, str]
    gradients_to_user_inputs: dict[str, str]
    loss_output: str


@dataclasses.dataclass
class GraphSignature:
    """What the inputs and results of an exported graph are. Inputs: parameters, buffers, then the user's. Results: new values, then
    the user's, then gradients. Parameters and buffers have their names in the module, others those of nodes."""

    parameters: list[str]
    buffers: list[str]
    user_inputs: list[str]
    user_outputs: list[str]
    inputs_to_parameters: dict[str, str]
    inputs_to_buffers: dict[str, str]
    buffers_to_mutate: dict[str, str]
    parameters_to_mutate: dict[str, str]
    user_inputs_to_mutate: dict[str, str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    backward_signature: BackwardSignature | None
    input_tokens: list[str]
    output_tokens: list[str]


def aot_export_module(
    mod: Module, args: Iterable[Any], *, decompositions: dict[Any, Callable] | None = None, trace_joint: bool,
    output_loss_index: int | None = None, pre_dispatch: bool = False, dynamic_shapes: bool | None = None,
    kwargs: dict[str, Any] | None = None,
) -> tuple[GraphModule, GraphSignature]:  # fmt: skip
    """Returns the graph of a module's operators in functional form, and its signature. Its inputs and results are flat.

    Args:
        args, kwargs: example arguments.
        decompositions: functions by overload that are recorded in place of the overload.
        trace_joint: whether the graph also computes the gradients of the parameters, and of the arguments that require grad.
        output_loss_index: with trace_joint, which of the results is the loss, a tensor with one element.
        pre_dispatch: keep functions such as linear() instead of their parts.
        dynamic_shapes: whether sizes of the arguments may differ in other calls.

    Raises:
        RuntimeError: with trace_joint, the loss's index is missing, the result at it is no scalar that requires grad, or another
            result requires grad.
        NotImplementedError: the module cannot be recorded, or the options exclude each other here.
    """
    if pre_dispatch and trace_joint:
        raise RuntimeError("pre_dispatch is not supported when trace_joint is True.")
    if trace_joint and output_loss_index is None:
        raise RuntimeError(
            "If trace_joint=Trueit is required that one of your forward outputs must be a scalar loss. You must specify the which (index) "
            "output is the loss with output_loss_index."
        )
    if trace_joint:
        if dynamic_shapes or kwargs:
            raise NotImplementedError("[aot_export_module] dynamic_shapes and kwargs with trace_joint: use aot_function(dynamic=True)")
        assert output_loss_index is not None
        return _joint(mod, tuple(args), decompositions or {}, output_loss_index)
    table = {**({} if pre_dispatch else COMPOSITES), **(decompositions or {})}
    return _inference(mod, tuple(args), kwargs or {}, table, bool(dynamic_shapes))


def _flat_spec(count: int, others: bool) -> Any:
    leaves = tuple(range(count))
    return pytree.tree_flatten((leaves, {}) if others else leaves)[1]


def _inference(mod: Module, args: tuple, kwargs: dict, table: dict, dynamic: bool) -> tuple[GraphModule, GraphSignature]:
    program = decomposed(export(mod, args, kwargs, dynamic_shapes=_automatic(args, kwargs, mod) if dynamic else None), table)
    module, found = program.graph_module, program.graph_signature
    graph = module.graph
    nodes = {n.name: n for n in graph.nodes}
    kept = []
    for spec in found.input_specs:
        node = nodes[spec.arg.name]
        if spec.kind == InputKind.CONSTANT_TENSOR:  # PyTorch's graph has constants as attributes
            name = f"_tensor_constant{sum(n.startswith('_tensor_constant') for n in module._buffers)}"
            module.register_buffer(name, program.tensor_of(spec.kind, spec.target))
            with graph.inserting_before(node):
                attribute = graph.get_attr(name)
            attribute.meta = dict(node.meta)
            node.replace_all_uses_with(attribute)
            graph.erase_node(node)
        else:
            kept.append((spec, node))
    renamed = {}
    for i, (_, node) in enumerate(kept):
        renamed[node.name] = f"arg{i}_1"
        node._rename(f"arg{i}_1")
        node.target = node.name
    graph.set_codegen(CodeGen())
    module.recompile()
    named = {k: {node.name: spec.target for spec, node in kept if spec.kind == k} for k in (InputKind.PARAMETER, InputKind.BUFFER)}
    mutated = {k: {} for k in OutputKind}
    for spec in found.output_specs:
        mutated[spec.kind][getattr(spec.arg, "name", "")] = renamed.get(spec.target, spec.target)
    users = [s.arg.name for s in found.output_specs if s.kind == OutputKind.USER_OUTPUT]
    signature = GraphSignature(
        list(named[InputKind.PARAMETER].values()), list(named[InputKind.BUFFER].values()),
        [n.name for s, n in kept if s.kind == InputKind.USER_INPUT], users, named[InputKind.PARAMETER], named[InputKind.BUFFER],
        mutated[OutputKind.BUFFER_MUTATION], mutated[OutputKind.PARAMETER_MUTATION], mutated[OutputKind.USER_INPUT_MUTATION],
        _flat_spec(len(kept), True), _flat_spec(len(users), False), None, [], [],
    )  # fmt: skip
    return module, signature


def _automatic(args: tuple, kwargs: dict, mod: Module) -> Any:
    from ..export.dynamic_shapes import combined_args

    return pytree.tree_map(lambda x: Dim.AUTO if isinstance(x, Tensor) else None, combined_args(mod, args, kwargs))


def _joint(mod: Module, args: tuple, decompositions: dict, loss: int) -> tuple[GraphModule, GraphSignature]:
    parameters, buffers = dict(mod.named_parameters()), dict(mod.named_buffers())
    states = [*parameters.values(), *buffers.values()]
    joint = joint_graph(lambda a: mod(*a), (list(args),), states, decompositions)
    _check_loss(joint, loss)
    module = joint.module
    graph = module.graph
    placeholders = [n for n in graph.nodes if n.op == "placeholder"]
    output = next(n for n in reversed(graph.nodes) if n.op == "output")
    results = list(output.args[0])
    first = len(joint.written)
    tangent = next(n for n in placeholders if n.name.startswith("tangents"))
    with graph.inserting_after(results[first + loss]):
        ones = graph.call_function(aten.packet("ones_like").default, (results[first + loss],))
    ones.meta["val"] = tangent.meta["val"]
    tangent.replace_all_uses_with(ones)
    graph.erase_node(tangent)
    inputs = [n for n in placeholders if n is not tangent]
    for i, node in enumerate(inputs):
        node._rename(f"arg{i}_1")
        node.target = node.name
    count = first + len(joint.results)
    gradients = [results[count + i] for i, needed in enumerate(joint.needs_grad) if needed]
    output.args = ((*results[:count], *gradients),)
    module.recompile()
    return module, _joint_signature(joint, inputs, list(parameters), list(buffers), results[:count], gradients, loss)


def _check_loss(joint: Any, loss: int) -> None:
    if any(not isinstance(r, Place) for r in joint.results):
        raise RuntimeError("[aot_export_module] expected results that are tensors")
    if not 0 <= loss < len(joint.results) or joint.results[loss] not in joint.differentiable:
        raise RuntimeError(f"Could not find an output at index {loss} that requires grad, for the loss")
    if len(joint.differentiable) > 1:
        raise RuntimeError(
            "Found an output of the forward that requires gradients, that was not a scalar loss: "
            f"{[i for i in joint.differentiable if i != joint.results[loss]]}. detach() the others"
        )


def _joint_signature(
    joint: Any, inputs: list[Node], parameters: list[str], buffers: list[str], results: list[Any], gradients: list[Any], loss: int
) -> GraphSignature:
    names = [n.name for n in inputs]
    owners = dict(zip(names, [*parameters, *buffers]))
    first = len(joint.written)
    stored: list[dict[str, str]] = [{}, {}, {}]  # parameters, buffers, arguments
    for place, value in zip(joint.written, results):
        kind = 0 if place < len(parameters) else 1 if place < len(owners) else 2
        stored[kind][value.name] = owners.get(names[place], names[place])
    needed = [names[i] for i, n in enumerate(joint.needs_grad) if n]
    found = dict(zip((g.name for g in gradients if isinstance(g, Node)), (n for g, n in zip(gradients, needed) if isinstance(g, Node))))
    value = results[first + loss]
    if value.meta["val"].numel() != 1:
        raise RuntimeError(
            f"We require the output marked as the loss (at index {loss}) to be a scalar, but it has shape {tuple(value.meta['val'].shape)}"
        )
    backward = BackwardSignature(
        {g: owners[n] for g, n in found.items() if n in owners}, {g: n for g, n in found.items() if n not in owners}, value.name
    )
    users = [r.name for r in results[first:]]
    return GraphSignature(
        parameters, buffers, names[len(owners) :], users, dict(zip(names, parameters)), dict(zip(names[len(parameters) :], buffers)),
        stored[1], stored[0], stored[2], _flat_spec(len(inputs), True), _flat_spec(len(users), False), backward, [], [],
    )  # fmt: skip


def aot_export_joint_simple(
    func: Callable, args: tuple, *, trace_joint: bool, num_params_buffers: int = 0, decompositions: dict[Any, Callable] | None = None
) -> GraphModule:  # fmt: skip
    """Returns the graph of a function of flat tensors, or of its forward and backward: `(primals, tangents)` gives its results and
    the gradients of the primals, None for those that need none.

    Args:
        num_params_buffers: how many arguments are parameters and buffers, which makes no difference to the graph.

    Raises:
        RuntimeError: the function writes to its arguments, or its arguments or results are no flat tensors.
    """
    if not 0 <= num_params_buffers <= len(args):
        raise ValueError(f"[aot_export_joint_simple] expected at most {len(args)} parameters and buffers, got {num_params_buffers}")
    if any(not isinstance(a, Tensor) for a in args):
        raise RuntimeError(f"[aot_export_joint_simple] expected tensors, got {[type(a).__name__ for a in args]}")
    joint = joint_graph(lambda a: func(*a), (list(args),), [], decompositions)
    if joint.written:
        raise RuntimeError(f"aot_export_joint_simple does not support input mutations. {joint.written}")
    graph = joint.module.graph
    output = next(n for n in reversed(graph.nodes) if n.op == "output")
    results = list(output.args[0])
    primals = [n for n in graph.nodes if n.op == "placeholder" and n.name.startswith("primals")]
    tangents = [n for n in graph.nodes if n.op == "placeholder" and n.name.startswith("tangents")]
    if not trace_joint:
        output.args = (results[: joint.num_results],)
        for node in tangents:
            node.replace_all_uses_with(None)
        graph.eliminate_dead_code()
        for node in tangents:
            graph.erase_node(node)
    else:
        _, spec = pytree.tree_flatten(((primals, tangents), {}))
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(["primals", "tangents"], spec, None)))
    joint.module.recompile()
    return joint.module
