"""The joint graph of a function: its results, and the gradients of its inputs for given gradients of the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _C
from .._C import Tensor
from ..autograd import gradients
from ..fx.experimental._composites import COMPOSITES
from ..fx.experimental._expanded import Expanded
from ..fx.experimental._functional import functional
from ..fx.experimental._merge import Family, Point, captured_of, resized, sizes_at
from ..fx.experimental._recording import Recording
from ..fx.experimental._sizes import Symbol
from ..fx.experimental._symbolic import fitted_symbols, noted, remove_unused_items, symbols_of_example
from ..fx.graph_module import GraphModule
from ..utils import _pytree as pytree


class Joint(NamedTuple):
    """The graph of forward and backward. Its inputs are `primals`, then `tangents`.

    Attributes:
        module: returns the new values of written inputs, the results that are tensors, and the gradients of `primals`.
        primals: the tensors that the graph has as inputs.
        written: positions among `primals` of the inputs that the function writes.
        results: leaves of the function's result: its position among the tensors, or the value itself for others.
        num_results: how many of them are tensors.
        spec: the structure of the result.
        differentiable: positions among the tensors of the results that require grad.
        needs_grad: by primal: whether it receives a gradient.
    """

    module: GraphModule
    primals: list[Tensor]
    written: list[int]
    results: list[Any]
    num_results: int
    spec: Any
    differentiable: list[int]
    needs_grad: list[bool]


class Place(int):
    """A position among the tensors of a result."""


def _metadata(f: Callable, args: tuple) -> list[tuple]:
    """Sizes, dtype, device and requires_grad of the tensors that the function returns. Computes nothing."""
    leaves, spec = pytree.tree_flatten(args)
    tracing = _C.ProgramTrace([x for x in leaves if isinstance(x, Tensor)])
    try:
        stand_ins = iter(tracing.inputs)
        result = f(*pytree.tree_unflatten([next(stand_ins) if isinstance(x, Tensor) else x for x in leaves], spec))
        return [(tuple(t.shape), t.dtype, t.device, t.requires_grad) for t in pytree.tree_leaves(result) if isinstance(t, Tensor)]
    finally:
        tracing.stop()


def _undetached(module: GraphModule, places: list[int]) -> None:
    """Removes the calls of detach() that tracing adds to results that require grad."""
    output = next(n for n in reversed(module.graph.nodes) if n.op == "output")
    results = list(output.args[0])
    for place in places:
        node = results[place]
        if getattr(node.target, "_opname", "") == "detach" and node.args[0].op == "call_function":
            results[place] = node.args[0]
    output.args = (type(output.args[0])(results),)
    module.graph.eliminate_dead_code()
    module.recompile()


def joint_graph(f: Callable, args: tuple, states: list[Tensor], decompositions: dict[Any, Callable] | None) -> Joint:
    """Traces a function and its backward pass.

    Args:
        args: the arguments; tensors in containers are inputs of the graph.
        states: tensors that the function uses without receiving them, which become the first inputs.
        decompositions: functions by overload that are recorded in place of the overload.

    Raises:
        NotImplementedError: the function cannot be traced, or the engine cannot expand its backward pass.
    """
    leaves, _ = pytree.tree_flatten(args)
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    primals = [*states, *tensors]
    found = _metadata(f, args) if _C.is_grad_enabled() else [(*m[:3], False) for m in _metadata(f, args)]
    differentiable = [i for i, m in enumerate(found) if m[3]]
    targets = [i for i, t in enumerate(primals) if t.requires_grad] if differentiable else []
    tangents = [_C.torch.ones(found[i][0], dtype=found[i][1], device=found[i][2]) for i in differentiable]
    spec_box: list[Any] = []

    def joint(given: tuple, tangents: list[Tensor]) -> list[Any]:
        result = f(*given)
        values, spec = pytree.tree_flatten(result)
        spec_box[:] = [spec, values]
        outputs = [v for v in values if isinstance(v, Tensor)]
        inputs = [*states, *(x for x in pytree.tree_leaves(given) if isinstance(x, Tensor))]
        found: list[Any] = [None] * len(inputs)
        if targets:
            roots = [outputs[i] for i in differentiable]
            grads = gradients.grad(roots, [inputs[i] for i in targets], tangents, allow_unused=True)
            for i, g in zip(targets, grads):
                found[i] = g
        return [*outputs, *found]

    expanded = Expanded(joint, (args, tangents))
    spec, values = spec_box
    recording = Recording(True, {**COMPOSITES, **(decompositions or {})})
    placed = {t._handle: recording.placeholder(f"primals_{i}", t.detach()) for i, t in enumerate(primals, 1)}
    placed |= {t._handle: recording.placeholder(f"tangents_{i}", t) for i, t in enumerate(tangents, 1)}
    if _C.is_grad_enabled() and any(t.requires_grad and t._handle not in placed for t in expanded.sources):
        raise NotImplementedError(
            "[aot_function] the function uses a tensor that requires grad without receiving it, so that it would get no gradient: pass it "
            "as an argument, or use aot_module()"
        )
    made = [placed[t._handle] if t._handle in placed else recording.constant(t, fresh=False, detached=True) for t in expanded.sources]
    with recording:
        outputs = expanded.replay(made)
    recording.graph.output([recording.own(v)._node if isinstance(v, Tensor) else v for v in outputs])
    module, written = functional(GraphModule(recording.root, recording.graph))
    _undetached(module, [len(written) + i for i in differentiable])
    names = [f"primals_{i}" for i in range(1, len(primals) + 1)]
    places = iter(range(len(found)))
    results = [Place(next(places)) if isinstance(v, Tensor) else v for v in values]
    needs = [i in targets for i in range(len(primals))]
    return Joint(module, primals, [names.index(w) for w in written], results, len(found), spec, differentiable, needs)


def symbolic_joint(
    f: Callable, args: tuple, states: list[Tensor], decompositions: dict[Any, Callable] | None, fixed: int = 0
) -> tuple[Joint, list[Symbol]]:
    """joint_graph() for many sizes of the tensors in `args`, and the symbols that their sizes are.

    A symbol's places are positions among the leaves of `args`. Sizes of 0 and 1 in the example, and those of
    the first `fixed` leaves, are constants.
    """
    leaves, spec = pytree.tree_flatten(args)
    structure: list[Any] = []

    def record(symbols: list[Symbol], point: Point) -> Any:
        given = resized(leaves, sizes_at(leaves, symbols, point))
        joint = joint_graph(f, pytree.tree_unflatten(given, spec), states, decompositions)
        made: Any = captured_of(joint.module)
        structure[:] = [made.out_spec]
        others = [None if isinstance(r, Place) else r for r in joint.results]
        made.out_spec = (made.out_spec, joint.written, joint.num_results, joint.differentiable, joint.needs_grad, joint.spec, others)
        made.joint = joint
        return made

    declared = symbols_of_example([*[None] * fixed, *leaves[fixed:]], False)
    made, symbols = Family(record, fitted_symbols(noted(f, leaves, spec, declared), declared)).run()
    graph = made.recording.graph
    graph.output(pytree.tree_unflatten(made.outputs, structure[0]))
    remove_unused_items(graph)
    return made.joint._replace(module=GraphModule(made.recording.root, graph)), symbols
