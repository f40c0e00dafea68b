"""make_fx: a graph of the operators that a function calls, by PyTorch's names (torch.ops.aten)."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any, Callable

from ... import nn
from ..._C import Tensor
from ..._higher_order_ops._operator import set_recorder
from ...utils import _pytree as pytree
from ..graph_module import GraphModule
from ._composites import COMPOSITES
from ._expanded import expanded_graph
from ._recorded import GradientsRequestedError, RecordedTensor
from ._recording import DynamicSizesError, Recording, active, suspended
from ._regions import ValuesError, record_operator
from ._sizes import SizeLog
from ._symbolic import remove_unused_items, set_arguments, symbolic_expansion, symbolic_graph
from .symbolic_shapes import GuardOnDataDependentSymNode

__all__ = ["disable_proxy_modes_tracing", "get_proxy_mode", "make_fx"]

_MODES = ("real", "fake", "symbolic")


def get_proxy_mode() -> Recording | None:
    """The active recording of make_fx in this thread, or None."""
    return active()


@contextlib.contextmanager
def disable_proxy_modes_tracing() -> Iterator[None]:
    """Calls within the block are not recorded."""
    if active() is None:
        yield
        return
    with suspended():
        yield


def make_fx(
    f: Callable, decomposition_table: dict[Any, Callable] | None = None, tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False, *, pre_dispatch: bool = False, record_module_stack: bool = False,
    _allow_fake_constant: bool = False, _error_on_data_dependent_ops: bool = True, record_stack_traces: bool = False,
) -> Callable[..., GraphModule]:  # fmt: skip
    """Returns a function that calls f and returns a GraphModule of the operators that f called.

    Nodes call overloads of torch.ops.aten, and have a FakeTensor like their result in ``meta["val"]``. Tensors among the arguments,
    in nested lists, tuples and dicts, are inputs; so are other arguments, but the graph uses the values that they had. Tensors
    that f uses without having received them are attributes of the module. If f calls autograd.grad(), the graph contains the
    operators of forward and backward, as the engine executes them, in functional form.

    Args:
        f: a function or module.
        decomposition_table: functions by overload, which are recorded in place of the overload; they may return NotImplemented.
        tracing_mode: "real" computes values while recording, "fake" infers sizes and dtypes only. "symbolic" also computes in
            the graph what follows from sizes of at least 2 and from ints among the arguments, as far as f permits other ones:
            it is called for several (fx/experimental/_symbolic.py). The graph's module has an attribute `shape_env` then.
        pre_dispatch: record functions such as linear() as they are called, and torch.no_grad(), instead of their parts.
        record_module_stack: whether nodes have the modules that called them in meta["nn_module_stack"].

    Raises:
        RuntimeError: f reads a value that it computes.
        NotImplementedError: another argument is not supported, or f does what cannot be recorded.
    """
    if tracing_mode not in _MODES:
        raise ValueError(f"[make_fx] expected tracing_mode to be one of {_MODES}, got {tracing_mode!r}")
    if _allow_non_fake_inputs or _allow_fake_constant or not _error_on_data_dependent_ops or record_stack_traces:
        raise NotImplementedError("[make_fx] expected the defaults of the private options and of record_stack_traces")

    def call(recording: Recording, given: tuple) -> Any:
        recording.records_operators = True
        stack = module_stack(f, recording) if record_module_stack and isinstance(f, nn.Module) else contextlib.nullcontext()
        with stack, recording:
            return f(*given)

    def symbolic(args: tuple, names: list[str], table: dict, dynamic: bool) -> GraphModule:
        def recording(log: SizeLog) -> Recording:
            return Recording(True, table, log, keeps_mode_changes=pre_dispatch)

        return symbolic_graph(recording, call, args, names, dynamic)

    def once(args: tuple, names: list[str], table: dict, fake: bool) -> GraphModule:
        recording = Recording(fake, table, keeps_mode_changes=pre_dispatch)
        leaves, spec = pytree.tree_flatten(args)
        made = [recording.placeholder(n, x) if isinstance(x, Tensor) else recording.number(n, x) for n, x in zip(names, leaves)]
        result = call(recording, pytree.tree_unflatten(made, spec))
        if fake:
            recording.check_refused()
        return finished(recording, result, args)

    def record(*args: Any) -> GraphModule:
        set_recorder(record_operator)
        names = [f"{name}_1" for name in _input_names(f, args)]
        table = {**({} if pre_dispatch else COMPOSITES), **_by_overload(decomposition_table)}
        try:
            if tracing_mode == "symbolic":
                return symbolic(args, names, table, True)
            try:
                try:
                    return once(args, names, table, tracing_mode == "fake")
                except ValuesError:  # branches are recorded without values
                    return once(args, names, table, True)
            except (GuardOnDataDependentSymNode, DynamicSizesError):
                if tracing_mode == "real":
                    raise
                return symbolic(args, names, table, False)  # numbers depend on values
        except (GradientsRequestedError, NotImplementedError) as e:
            # A transform of torch.func asks which leaves a recorded tensor has.
            if not isinstance(e, GradientsRequestedError) and "[a root]" not in str(e):
                raise
            if tracing_mode == "symbolic":
                return symbolic_expansion(f, args, table)
            return expanded_graph(f, args, table)

    return record


def _by_overload(table: dict[Any, Callable] | None) -> dict[Any, Callable]:
    """The table with the overloads of packets in place of the packets."""
    found: dict[Any, Callable] = {}
    for key, function in (table or {}).items():
        if hasattr(key, "overloads"):
            found |= {getattr(key, name): function for name in key.overloads()}
        else:
            found[key] = function
    return found


def _input_names(f: Callable, args: tuple) -> list[str]:
    """A name for each leaf of the arguments: that of the parameter if no argument is a container."""
    leaves = pytree.tree_leaves(args)
    try:
        parameters = list(inspect.signature(f.forward if isinstance(f, nn.Module) else f).parameters)
    except (TypeError, ValueError):
        parameters = []
    if len(leaves) != len(args) or len(parameters) < len(args):
        return [f"arg{i}" for i in range(len(leaves))]
    return parameters[: len(leaves)]


@contextlib.contextmanager
def module_stack(root: nn.Module, recording: Recording) -> Iterator[None]:
    """Keeps the names and types of the modules that are being called in the recording."""
    handles = []
    for name, module in root.named_modules():
        entry = (name, type(module))
        handles.append(module.register_forward_pre_hook(lambda *_, entry=entry: recording.module_stack.append(entry)))
        handles.append(module.register_forward_hook(lambda *_: recording.module_stack.pop() and None, always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
        recording.module_stack.clear()


def finished(recording: Recording, result: Any, args: tuple) -> GraphModule:
    """The module of a recording, whose output is the structure of the function's result."""

    def output(value: Any) -> Any:
        return recording.own(value)._node if isinstance(value, Tensor) else value

    leaves, spec = pytree.tree_flatten(result)
    recording.graph.output(pytree.tree_unflatten([output(v) for v in leaves], spec))
    return module_of(recording, args)


def module_of(recording: Recording, args: tuple) -> GraphModule:
    """The module of a finished graph, without results that nothing uses."""
    remove_unused_items(recording.graph)
    set_arguments(recording.graph, args)
    return GraphModule(recording.root, recording.graph)


def is_recorded(tensor: Any) -> bool:
    """Whether an object stands for a tensor of a recording."""
    return isinstance(tensor, RecordedTensor)
