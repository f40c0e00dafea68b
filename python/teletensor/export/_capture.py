"""One recording of a module's forward for arguments of given sizes."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from .._C import Tensor
from .._higher_order_ops._operator import set_recorder
from ..fx.experimental import _merge
from ..fx.experimental._numbers import PACKAGES
from ..fx.experimental._recorded import GradientsRequestedError, RecordedTensor
from ..fx.experimental._recording import Recording
from ..fx.experimental._regions import record_operator
from ..fx.experimental._sizes import SizeLog
from ..fx.experimental.proxy_tensor import module_stack
from ..fx.node import Node
from ..nn import Module
from ..utils import _pytree as pytree
from ._preserved import recorded_calls
from .graph_signature import ConstantArgument, InputKind, InputSpec, TensorArgument


class Captured(_merge.Captured):
    """A recorded call of a module, with the specifications of its placeholders, in order."""

    input_specs: list[InputSpec]
    calls: list[Any]  # of submodules whose signatures are preserved


def _identifier(text: str) -> str:
    name = re.sub(r"[^0-9a-zA-Z_]", "_", text)
    return f"_{name}" if name[:1].isdigit() else name


def input_names(module: Module, args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """A name for each leaf of (args, kwargs): the parameter's, with the keys of containers."""
    combined = inspect.signature(module.forward).bind(*args, **kwargs)
    combined_values = []
    for name, value in combined.arguments.items():
        kind = combined.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            combined_values += list(value.items())
        else:
            combined_values.append((name, value))
    found = []
    for name, value in combined_values:
        for path, _ in pytree.tree_flatten_with_path(value)[0]:
            keys = [str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in path]
            found.append(_identifier("_".join([name, *keys])))
    return found


@contextlib.contextmanager
def _swapped(module: Module, values: Mapping[str, Tensor], recording: Recording) -> Iterator[None]:
    """The module with other tensors as parameters and buffers. A buffer that forward assigns is written at the end."""
    places = []
    for path, owner in module.named_modules(remove_duplicate=False):
        for registry in (owner._parameters, owner._buffers):
            for name, tensor in registry.items():
                if tensor is not None:
                    places.append((registry, name, tensor, values[f"{path}.{name}" if path else name]))
    for registry, name, _, value in places:
        registry[name] = value
    try:
        yield
        done: set[int] = set()
        for registry, name, _, value in places:
            new = registry.get(name)
            if new is not value and isinstance(new, Tensor) and id(value) not in done:
                done.add(id(value))
                with recording:
                    value.copy_(new)
    finally:
        for registry, name, tensor, _ in places:
            registry[name] = tensor


def _attribute_names(module: Module) -> dict[int, str]:
    """The paths of tensors that are attributes of modules, but neither parameters nor buffers, by handle."""
    found: dict[int, str] = {}
    for path, owner in module.named_modules():
        for name, value in vars(owner).items():
            if isinstance(value, Tensor):
                found.setdefault(value._handle, f"{path}.{name}" if path else name)
    return found


class _Constants:
    """Placeholders of constant tensors, before those of the user's inputs."""

    def __init__(self, captured: Captured, module: Module) -> None:
        self.captured, self.names = captured, _attribute_names(module)
        self.before: Node | None = None

    def __call__(self, tensor: Tensor) -> Node:
        """Adds the placeholder of a constant."""
        captured = self.captured
        count = sum(name.startswith("lifted_tensor_") for name in captured.constants)
        target = self.names.get(tensor._handle, f"lifted_tensor_{count}")
        graph = captured.recording.graph
        first = self.before or next(iter(graph.nodes), None)
        with graph.inserting_before(first):
            node = graph.placeholder(f"c_{_identifier(target)}")
        captured.constants[target] = tensor
        place = sum(s.kind != InputKind.USER_INPUT for s in captured.input_specs)
        captured.input_specs.insert(place, InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target))
        return node


def _store_lines(until: FrameType) -> Callable[[Node], None]:
    """A function that stores in a node's metadata the lines of the user's code that call the operator, as in a traceback."""

    def store(node: Node) -> None:
        frame: FrameType | None = sys._getframe(2)
        lines: list[str] = []
        while frame is not None and frame is not until:
            file = frame.f_code.co_filename
            if not file.startswith(PACKAGES):
                code = linecache.getline(file, frame.f_lineno).strip()
                lines.append(f'  File "{file}", line {frame.f_lineno}, in {frame.f_code.co_name}\n' + (f"    {code}\n" if code else ""))
            frame = frame.f_back
        if lines:
            node.meta["stack_trace"] = "".join(reversed(lines))

    return store


def capture(
    module: Module, args: tuple, kwargs: dict[str, Any], numbers: dict[int, dict[int, int]], log: SizeLog, stores_lines: bool = False,
    preserved: tuple[str, ...] = (),
) -> Captured:  # fmt: skip
    """Records module(*args, **kwargs).

    Args:
        numbers: sizes of tensors that are symbols, by the position among the leaves of (args, kwargs) and the dimension.
        log: receives the sizes that the program computes.
        stores_lines: whether nodes have the user's lines of code as meta["stack_trace"].
        preserved: the names of submodules whose calls are noted.
    """
    made = Captured()
    recording = made.recording = Recording(True, log=log, keeps_mode_changes=True)
    if stores_lines:
        recording.on_node = _store_lines(sys._getframe())
    made.input_specs, made.constants, made.calls = [], {}, []
    values = _add_states(module, made)
    leaves, spec = pytree.tree_flatten((args, kwargs))
    constants = recording.on_constant = _Constants(made, module)
    recording.lifts_constants = True
    given = []
    for i, (name, leaf) in enumerate(zip(input_names(module, args, kwargs), leaves, strict=True)):
        if isinstance(leaf, Tensor):
            given.append(recording.placeholder(name, leaf, numbers.get(i)))
            node = given[-1]._node
            made.input_specs.append(InputSpec(InputKind.USER_INPUT, TensorArgument(node.name), None))
        else:
            node = recording.graph.placeholder(name)
            node.meta["val"] = leaf
            given.append(leaf)
            made.input_specs.append(InputSpec(InputKind.USER_INPUT, ConstantArgument(node.name, leaf), None))
        constants.before = constants.before or node
    given_args, given_kwargs = pytree.tree_unflatten(given, spec)
    recording.records_operators = True
    set_recorder(record_operator)
    try:
        with _swapped(module, values, recording):
            calls = recorded_calls(module, preserved, lambda t: recording.own(t)._node, made.calls)
            with module_stack(module, recording), calls, recording:
                result = module(*given_args, **given_kwargs)
            _check_attributes(module)
        for value in values.values():
            value.check_read_state()
    except GradientsRequestedError as e:
        raise NotImplementedError(f"[export] gradients within forward: {e}") from e
    recording.check_refused()
    leaves, made.out_spec = pytree.tree_flatten(result)
    made.outputs = [recording.own(v)._node if isinstance(v, Tensor) else recording.argument(v) for v in leaves]
    return made


def _check_attributes(module: Module) -> None:
    for path, owner in module.named_modules():
        for name, value in list(vars(owner).items()):
            if isinstance(value, RecordedTensor):
                del vars(owner)[name]
                raise RuntimeError(
                    f"The tensor attribute self.{f'{path}.{name}' if path else name} was assigned during export. Such attributes must be "
                    "registered as buffers using the `register_buffer` API"
                )


def state_of(module: Module) -> dict[str, Tensor]:
    """The parameters and persistent buffers by name: state_dict() without its hooks."""
    return {
        f"{prefix}.{name}" if prefix else name: tensor
        for prefix, part in module.named_modules(remove_duplicate=False)
        for name, tensor in (*part._parameters.items(), *part._buffers.items())
        if tensor is not None and name not in part._non_persistent_buffers_set
    }


def _add_states(module: Module, made: Captured) -> dict[str, RecordedTensor]:
    """Adds the placeholders of parameters and buffers; returns their recorded tensors by name."""
    recording = made.recording
    values: dict[str, RecordedTensor] = {}
    seen: dict[int, RecordedTensor] = {}
    persistent = state_of(module)
    for kind, prefix, found in (
        (InputKind.PARAMETER, "p", module.named_parameters(remove_duplicate=False)),
        (InputKind.BUFFER, "b", module.named_buffers(remove_duplicate=False)),
    ):
        for name, tensor in found:
            if id(tensor) not in seen:
                seen[id(tensor)] = value = recording.placeholder(f"{prefix}_{_identifier(name)}", tensor)
                value._state = tensor
                keep = name in persistent if kind == InputKind.BUFFER else None
                made.input_specs.append(InputSpec(kind, TensorArgument(value._node.name), name, keep))
            values[name] = seen[id(tensor)]
    return values
