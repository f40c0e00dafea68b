"""Recording: calls a function and adds a node to an fx graph for each operator that it calls.

A dispatch mode receives the operators, above autocast and the recording of gradients (teletensor/_library/dispatch.py). Tensors
are stood for by RecordedTensor. In fake mode, operators run on the meta device, which infers the results' sizes and dtypes.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ... import _C, _layouts, nn
from ..._C import Tensor
from ..._grad_mode import no_grad
from ..._library.dispatch import engine_call, in_format
from ..._library.engine_operators import operator_named
from ..._library.loaded import LoadedOverload
from ..._library.operators import OpOverload, tensors_in
from ..._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..._symbolic_bool import SymBool
from ..._torch_c_compat import _is_alias_of, _set_grad_enabled
from ...utils._python_dispatch import TorchDispatchMode
from ...utils._pytree import tree_map
from ..graph import Graph
from ..node import Node
from ._aten_names import in_aten
from ._number_mode import number_mode
from ._numbers import Condition, is_number, value_of
from ._recorded import GradientsRequestedError, ReadMode, RecordedTensor
from ._size_nodes import Layout, SizeNodes
from ._sizes import RecordedFloat, RecordedSize, SizeLog, require_arguments
from ._unbacked import DYNAMIC
from .symbolic_shapes import GuardOnDataDependentSymNode


class DynamicSizesError(NotImplementedError):
    """The sizes of an operator's results depend on values, which the recording does not have."""


class Recording(TorchDispatchMode):
    """The graph that is being recorded, and the dispatch mode that records.

    Args:
        fake: whether operators run without values.
        decompositions: functions by overload that are recorded in its place.
        log: remembers sizes and guards, if sizes may differ in other runs.
        outer: the recording of the function that calls this one as a part.
        keeps_mode_changes: whether torch.no_grad() and the like become nodes.
    """

    runs_backward = True

    def __init__(
        self, fake: bool, decompositions: dict[Any, Callable] | None = None, log: SizeLog | None = None, outer: Recording | None = None,
        keeps_mode_changes: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.graph, self.root = Graph(), nn.Module()
        self.records_operators = outer is not None  # calls of torch.ops.higher_order become nodes with graphs
        self.fake, self.decompositions, self.log, self.outer = fake, decompositions or {}, log, outer
        self.fake_mode = outer.fake_mode if outer else FakeTensorMode(allow_non_fake_inputs=True)
        self.constants: dict[int, tuple[Tensor, RecordedTensor]] = {}  # by handle
        self.captured: dict[int, tuple[RecordedTensor, RecordedTensor]] = {}  # tensors of outer recordings, and ours
        self.copies: dict[int, tuple[Tensor, RecordedTensor]] = {}  # of tensors that a part creates from numbers, by handle
        self.on_constant: Callable[[Tensor], Node] | None = None
        self.lifts_constants = False  # whether on_constant also receives tensors that the function creates from numbers
        self.unbacked = log.unbacked if log is not None else None
        if self.unbacked is not None and outer is None:
            self.unbacked.recording = self
        elif self.unbacked is not None:
            self.graph.part_name = f"{id(self)}."  # distinguishes its nodes in texts of numbers
        self.divided: list[Any] = []  # overloads whose decompositions are running
        self.module_stack: list[tuple[str, type]] = []
        self.origin: Node | None = None  # the node of another graph that is being recorded again
        self.on_node: Callable[[Node], None] | None = outer.on_node if outer else None  # receives each new call
        self.keeps_mode_changes, self.is_grad_enabled, self.mode_changes = keeps_mode_changes, _C.is_grad_enabled(), 0
        self.refused: Exception | None = None  # the last error of code that read a value
        self.notes_sizes_only = False  # whether the graph is not used, so that gradients need no operators
        self.size_nodes = SizeNodes(self)
        self.reshaped: list[tuple[RecordedTensor, Tensor]] = []  # with views or copies, as the layouts in the example decide
        self._number_modes: list[AbstractContextManager[None]] = []
        self._first_new = _C.torch.empty(0, device="meta")._handle

    def __enter__(self) -> Recording:
        super().__enter__()
        reads = self.log is not None and self.unbacked is None and not self._number_modes  # not within rules, which the package has
        self._number_modes.append(ReadMode() if reads else number_mode(self.unbacked))
        self._number_modes[-1].__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._number_modes.pop().__exit__(None, None, None)
        super().__exit__(*exc)

    # ---- Values

    def failed(self, error: Exception) -> Exception:
        """Notes the error of code that reads a value; returns it."""
        self.refused = error
        return error if self.outer is None else self.outer.failed(error)

    def check_refused(self) -> None:
        """Raises the error of code that read a value, if the function has caught it."""
        if self.refused is not None:
            raise self.refused

    def is_suspended(self) -> bool:
        """Whether another recording is active."""
        return active() not in (None, self)

    @staticmethod
    def call(name: str, *args: Any) -> Any:
        """call_one() of the active recording."""
        return call_one(name, *args)

    def unrecorded(self) -> AbstractContextManager[None]:
        """A context in which this recording is not active."""
        return suspended() if active() is self else nullcontext()

    def without_values(self, tensor: Tensor) -> Tensor:
        """A tensor on the meta device like another one."""
        with self.unrecorded(), _C.DisableTorchFunction():
            sizes, strides, offset = list(tensor.shape), list(tensor.stride()), tensor.storage_offset()
            meta = _C.torch.empty(0, dtype=tensor.dtype, device="meta").new_empty_strided(sizes, strides)
            if offset:
                span = offset + 1 + sum((n - 1) * s for n, s in zip(sizes, strides))
                meta = meta.new_empty([span if meta.numel() else offset]).as_strided(sizes, strides, offset)
            if tensor.requires_grad:
                meta.requires_grad_()
            return meta

    def wrap(self, value: Tensor, node: Node, device: Any, layout: Layout | None = None) -> RecordedTensor:
        """The recorded tensor of a node's result. `layout`: None if its sizes are the same in all runs."""
        made = RecordedTensor.wrap(value, node, self, device)
        made._layout = layout
        self.set_meta(made)
        return made

    def set_meta(self, tensor: RecordedTensor) -> None:
        """Stores the metadata of a result in its node."""
        value = tensor._value
        with self.unrecorded(), _C.DisableTorchFunction():
            meta = value if self.fake else self.without_values(value)
            tensor._node.meta["val"] = FakeTensor._of(meta.detach() if meta.requires_grad else meta, self.fake_mode, tensor.device)
        tensor._node.meta["requires_grad"] = value.requires_grad
        if self.log is not None:
            self.size_nodes.add(tensor)

    def placeholder(self, name: str, tensor: Tensor, numbers: dict[int, int] | None = None) -> RecordedTensor:
        """Adds an input to the graph. `numbers`: the sizes, by dimension, that are expressions."""
        layout = None
        if isinstance(tensor, RecordedTensor):
            value, layout = tensor._value, tensor._recording.layout_of(tensor)
        else:
            value = self.without_values(tensor) if self.fake else tensor
        node = self.graph.placeholder(name)
        node.meta["is_part"] = self.outer is not None
        if numbers:
            for dim, number in numbers.items():
                self.log.name_place(number, f"{node}.size()[{dim}]")
            sizes = [numbers.get(i, n) for i, n in enumerate(value.shape)]
            with _C.DisableTorchFunction():
                layout = Layout.given(self.log, node, value, sizes)
        made = self.wrap(value, node, tensor.device, layout)
        if self.outer is not None and isinstance(tensor, RecordedTensor):
            made._operand = tensor.source()
        return made

    def number(self, name: str, value: Any) -> Any:
        """Adds an input for an argument that is no tensor, whose value is constant in the graph; returns the value."""
        node = self.graph.placeholder(name)
        if isinstance(value, (int, float, complex)):
            node.meta["val"] = value
        return value

    def symbolic_number(self, name: str, value: int, number: int) -> RecordedSize:
        """Adds an input for an int that may differ in other runs."""
        assert self.log is not None
        node = self.graph.placeholder(name)
        node.meta["val"] = value
        self.log.name_place(number, name)
        self.size_nodes.nodes[number] = node
        return RecordedSize(number, ("input", node), self.log)

    def constant(self, tensor: Tensor, fresh: bool | None = None, detached: bool = False) -> RecordedTensor:
        """The recorded tensor of one that the function uses without having received it.

        Args:
            fresh: whether the function has created the tensor, so that each call needs a copy.
            detached: record no gradients for it.
        """
        found = self.constants.get(tensor._handle)
        if found is not None:
            return found[1]
        if _C._is_wrapper(tensor):
            raise NotImplementedError(f"[make_fx] a {type(tensor).__name__} that the function uses without having received it")
        fresh = self.is_new(tensor) if fresh is None else fresh
        value = self.without_values(tensor.detach() if detached else tensor) if self.fake else tensor
        if self.on_constant is not None and (not fresh or self.lifts_constants):
            node = self.on_constant(tensor)
        else:
            is_parameter = isinstance(tensor, nn.Parameter)
            name = f"{'_param' if is_parameter else '_tensor'}_constant{len(self.constants)}"
            with self.unrecorded():
                (self.root.register_parameter if is_parameter else self.root.register_buffer)(name, tensor)
            node = self.graph.get_attr(name)
        made = self.wrap(value, node, tensor.device)
        made = self.lifted(made) if fresh else made
        self.constants[tensor._handle] = (tensor, made)
        return made

    def lifted(self, made: RecordedTensor) -> RecordedTensor:
        """A copy of a tensor that the function creates from numbers, so that writes to it do not change the constant."""
        from ..._library import aten

        overload = aten.packet("lift_fresh_copy").default
        node = self.add(overload, (made._node,), {})
        with self.unrecorded():
            return self.wrap(made._value.clone(), node, made.device, made._layout)

    def is_new(self, tensor: Tensor) -> bool:
        """Whether the tensor was created while the function was running."""
        return tensor._handle > self._first_new

    def own(self, tensor: Tensor, fresh: bool | None = None) -> RecordedTensor:
        """The recorded tensor, in this recording, of any tensor. See constant() for `fresh`."""
        if not isinstance(tensor, RecordedTensor):
            return self.constant(tensor, fresh) if self.outer is None else self._operand(tensor, fresh)
        if tensor._recording is self:
            return tensor
        if self.outer is None:
            raise RuntimeError(f"[make_fx] {tensor!r} belongs to another recording")
        found = self.captured.get(id(tensor))
        if found is None:
            last = next((n for n in reversed(self.graph.nodes) if n.op == "placeholder"), None)
            with self.graph.inserting_after(last) if last else self.graph.inserting_before(next(iter(self.graph.nodes), None)):
                made = self.placeholder(tensor._node.name, tensor)
            found = self.captured[id(tensor)] = (tensor, made)
        return found[1]

    def _operand(self, tensor: Tensor, fresh: bool | None) -> RecordedTensor:
        """The recorded tensor of one that the function of an operator uses: an operand."""
        assert self.outer is not None
        fresh = self.is_new(tensor) if fresh is None else fresh
        if tensor._handle not in self.copies:
            with self.unrecorded():
                operand = self.own(self.outer.own(tensor, False))
            if not fresh:
                return operand
            self.copies[tensor._handle] = (tensor, self.lifted(operand))
        return self.copies[tensor._handle][1]

    # ---- Nodes

    def add(self, target: Any, args: tuple, kwargs: dict) -> Node:
        """Adds a call to the graph."""
        self._add_mode_change()
        node = self.graph.create_node("call_function", target, args, kwargs, getattr(target, "_opname", None))
        if self.log is not None:
            self.log.counts["calls"] += 1
        if self.unbacked is not None:
            self.unbacked.check_reads()
            self.unbacked.check_count(node)
        if self.module_stack:
            node.meta["nn_module_stack"] = {name: (name, kind) for name, kind in self.module_stack}
        if self.origin is not None:
            node.meta |= {k: self.origin.meta[k] for k in ("nn_module_stack", "stack_trace") if k in self.origin.meta}
        if self.on_node is not None:
            self.on_node(node)
        return node

    def _add_mode_change(self) -> None:
        if self.keeps_mode_changes and _C.is_grad_enabled() != self.is_grad_enabled:
            self.is_grad_enabled, self.mode_changes = _C.is_grad_enabled(), self.mode_changes + 1
            self.graph.call_function(_set_grad_enabled, (self.is_grad_enabled,))

    def argument(self, value: Any) -> Any:
        """An argument of a call as an argument of a node."""
        if isinstance(value, Tensor):
            return self.own(value)._node
        if isinstance(value, (list, tuple)):
            items = [self.argument(v) for v in value]
            return items if isinstance(value, list) or type(value) is not tuple else tuple(items)
        if isinstance(value, slice):
            return slice(*map(self.argument, (value.start, value.stop, value.step)))
        if is_number(value):
            return value.owner.node_of(self, value)
        if type(value) is Condition:
            return bool(value)
        return self.size_nodes.of(value) if type(value) in (RecordedSize, RecordedFloat, SymBool) else value

    def result(self, node: Node, values: Any, device: Any, layouts: Any = None) -> Any:
        """The results of a call as recorded tensors; a node for each of several."""
        if isinstance(values, RecordedTensor):
            return self.wrap(values._value, node, device, values._layout)
        if isinstance(values, Tensor):
            return self.wrap(values, node, device, layouts)
        if isinstance(values, (list, tuple)):
            import operator

            node.meta["val"] = []
            made = []
            for i, value in enumerate(values):
                item = self.graph.call_function(operator.getitem, (node, i))
                made.append(self.result(item, value, device, layouts[i] if layouts else None))
                node.meta["val"].append(item.meta.get("val"))
            return type(values)(made)
        return values

    # ---- Functions with gradients of their own

    def apply_function(self, function: Any, args: tuple) -> Any:
        """function.apply(*args) of an autograd.Function: the operators of its forward become nodes, its backward does not.

        Gradients of the graph are those of the operators, as in PyTorch; a warning says so.
        """
        return function._applied(args, self._without_gradients, self._mark_differentiable, self._alias)[0]

    def _alias(self, tensor: RecordedTensor) -> RecordedTensor:
        """The result of a function that returns its argument: a node that has the argument's gradient, and a value that has none."""
        made = tensor.view_as(tensor)
        with self.unrecorded():
            made._value = made._value.detach()
        return made

    @contextmanager
    def _without_gradients(self) -> Iterator[None]:
        """A context without gradients that adds no node."""
        self._add_mode_change()
        before, changes = self.is_grad_enabled, self.mode_changes
        with no_grad():
            self.is_grad_enabled = False
            try:
                yield
            finally:
                if self.mode_changes == changes:
                    self.is_grad_enabled = before

    def _mark_differentiable(self, inputs: list, outputs: list, _backward: Any, name: str, wants_undefined: bool) -> None:
        """Gives results of a function the history that they have outside of a recording."""
        warnings.warn(
            f"[{name.removesuffix('Backward')}] the graph contains the operators of forward(): gradients of the graph are theirs, not "
            "those of backward()", stacklevel=2,
        )  # fmt: skip
        made = [self.own(t) for t in outputs]
        with self.unrecorded():
            of = [self.own(t)._value for t in inputs]
            _C.custom_function(of, [t._value for t in made], _refuse_backward, name, wants_undefined=wants_undefined)
        for tensor in made:
            self.set_meta(tensor)

    # ---- Calls

    def rule_of(self, overload: Any) -> Callable | None:
        """The function that is recorded in place of an overload; None within that function."""
        return None if overload in self.divided else self.decompositions.get(overload)

    @contextmanager
    def within(self, overload: Any) -> Iterator[None]:
        """A context in which the overload is not divided."""
        self.divided.append(overload)
        try:
            yield
        finally:
            self.divided.pop()

    def __torch_dispatch__(self, func: Any, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
        with self._noting_failure((args, kwargs or {})):
            return self._dispatch_noted(func, args, kwargs)

    @contextmanager
    def _noting_failure(self, arguments: Any) -> Iterator[None]:
        """A context with a call. If it fails, runs are required to have the sizes of its arguments."""
        try:
            yield
        except Exception:
            if self.log is not None and self.refused is None:
                require_arguments(self.log, arguments)
            raise

    def _dispatch_noted(self, func: Any, args: tuple, kwargs: dict | None) -> Any:
        if self.unbacked is None:
            return self._dispatch(func, args, kwargs)
        call = engine_call(args)
        with self.unbacked.noting(str(func), [*args, *(kwargs or {}).values()], call is not None and call[0] in DYNAMIC):
            return self._dispatch(func, args, kwargs)

    def _dispatch(self, func: Any, args: tuple, kwargs: dict | None) -> Any:
        if _C.autocast_dtype("cpu") is not None or _C.autocast_dtype("cuda") is not None:
            raise NotImplementedError("[make_fx] autocast while operators are recorded: convert with .to() instead")
        kwargs, call = kwargs or {}, engine_call(args)
        if self.log is not None:
            args, kwargs = tuple(map(self.log.restored, args)), self.log.restored(kwargs)
            call = call and (call[0], self.log.restored(call[1]), *call[2:])
        if self.unbacked is not None:
            args, kwargs = tuple(map(self.unbacked.of_tokens, args)), {k: self.unbacked.of_tokens(v) for k, v in kwargs.items()}
            call = call and (call[0], [self.unbacked.of_tokens(v) for v in call[1]], *call[2:])
            self.unbacked.before_call(func, args)
        if call is not None and (renamed := in_aten(func, call, operator_named(call[0]).names)):
            func, args, kwargs = renamed
        rule = self.rule_of(func)
        if rule is not None:
            with self, self.within(func):
                result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        leaves = [t for t in tensors_in([*args, *kwargs.values()])]
        for tensor in leaves:
            self.own(tensor)
        node = self.add(func, tuple(map(self.argument, args)), {k: self.argument(v) for k, v in kwargs.items()})
        with self._removing(node):
            return self._record(node, func, args, kwargs, call, leaves)

    @contextmanager
    def _removing(self, node: Node) -> Iterator[None]:
        """A context that computes a call. Removes its node if it fails."""
        try:
            yield
        except Exception:
            if not node.users:
                node.graph.erase_node(node)
            raise

    def one(self, overload: Any, args: tuple, kwargs: dict) -> Any:
        """Calls an overload and adds one node for it, even if it calls several operators here."""
        if any(type(v) is SymBool for v in (*args, *kwargs.values())):
            kinds = {a.name: str(a.type) for a in overload._schema.arguments}
            args = tuple(bool(v) if kind == "bool" else v for kind, v in zip(kinds.values(), args))
            kwargs = {k: bool(v) if kinds.get(k) == "bool" else v for k, v in kwargs.items()}
        with self._noting_failure((args, kwargs)):
            if self.unbacked is None:
                return self._one(overload, args, kwargs)
            with self.unbacked.noting(str(overload), [*args, *kwargs.values()]):
                return self._one(overload, args, kwargs)

    def _one(self, overload: Any, args: tuple, kwargs: dict) -> Any:
        if self.unbacked is not None:
            self.unbacked.before_call(overload, args)
        rule = self.rule_of(overload)
        if rule is not None and active() is self:
            with self.within(overload):
                result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        with self.unrecorded():
            leaves = list(tensors_in([*args, *kwargs.values()]))
            for tensor in leaves:
                self.own(tensor)
            node = self.add(overload, tuple(map(self.argument, args)), {k: self.argument(v) for k, v in kwargs.items()})
            if any(a.is_write for a in overload._schema.arguments):
                self._note_write([v for a, v in zip(overload._schema.arguments, args) if a.is_write])
            with self._removing(node):
                values = self._called(overload, args, kwargs, bool(leaves))
            made = self.result(node, values, _device_of(leaves, kwargs.get("device")))
            if self.unbacked is not None:
                names = [a.name for a in overload._schema.arguments]
                self.unbacked.note_sizes(self, overload._opname, names, list(args), made)
            return made

    def _record(self, node: Node, func: Any, args: tuple, kwargs: dict, call: Any, leaves: list[Tensor]) -> Any:
        if call is None:  # an operator whose kernel is a Python function
            values, layouts = self._run_kernel(func, args, kwargs)
            written = [v for a, v in zip(func._schema.arguments, args) if a.is_write]
            if written:
                self._note_write(written)
            if written and values is None:
                return None
            return self.result(node, values, _device_of(leaves, None), layouts)
        name, arguments, into = call
        operator = operator_named(name)
        requested = next((a for n, a in zip(operator.names, arguments) if n == "device" and a is not None), None)
        values, layouts = self._compute(operator, arguments, into)
        if into is not None or any(operator.written):
            self._note_write([*(into or ()), *(a for a, is_written in zip(arguments, operator.written) if is_written)])
        if into is not None:
            for target, item in zip(into, self._nodes(node, len(into))):
                recorded = self.own(target)
                if self.unbacked is not None:
                    self.unbacked.note_write(operator.name, func, recorded._node, item)
                recorded._node = item
                self._follow(recorded, target)
                if layouts is not None:
                    self._check_written(recorded, layouts.pop(0))
                self.set_meta(recorded)
            return into[0] if len(into) == 1 else tuple(into)
        count = operator.num_outputs
        if count == 0:
            return None
        if (memory_format := kwargs.get("memory_format")) not in (None, _layouts.preserve_format):
            with self.unrecorded():
                values = [in_format(values[0], memory_format)]
            if layouts is not None and layouts[0] is not None:
                layouts = [Layout.dense(self.log.facts, values[0], layouts[0].sizes)]
        if count == 1:
            made = self.result(node, values[0], _device_of(leaves, requested), layouts and layouts[0])
        else:
            made = self.result(node, tuple(values), _device_of(leaves, requested), layouts)
        if self.unbacked is not None:
            self.unbacked.note_sizes(self, operator.name, operator.names, arguments, made)
        return made

    def _nodes(self, node: Node, count: int) -> list[Node]:
        import operator

        return [node] if count == 1 else [self.graph.call_function(operator.getitem, (node, i)) for i in range(count)]

    def _follow(self, recorded: RecordedTensor, target: Tensor) -> None:
        """Gives an object the sizes that a call in place has changed."""
        value = recorded._value
        if not isinstance(target, RecordedTensor):
            return
        with _C.DisableTorchFunction():
            changed = tuple(value.shape) != tuple(Tensor.size(recorded))
        if changed:
            like = RecordedTensor.wrap(value, recorded._node, self, recorded.device)
            _C._set_wrapper(recorded, like)

    def _check_written(self, recorded: RecordedTensor, layout: Layout | None) -> None:
        """Requires that what a call writes has the sizes of its target, or follows a target that the call has resized."""
        if self.numbers_of(recorded) == (layout.sizes if layout else list(recorded._value.shape)):
            return
        old, new = self.numbers_of(recorded), layout.sizes if layout else list(recorded._value.shape)
        facts = self.log.facts
        if len(old) == len(new) and all(facts.example(a) == facts.example(b) for a, b in zip(old, new)):
            for a, b in zip(old, new):
                facts.decide("==", a, b)
            self.log.note_guards()
        else:
            recorded._layout = layout

    def numbers_of(self, tensor: RecordedTensor) -> list[int]:
        """The sizes of a tensor as numbers."""
        layout = self.layout_of(tensor)
        return layout.sizes if layout else list(tensor._value.shape)

    def _compute(self, operator: Any, arguments: list, into: list | None) -> tuple[list, list | None]:
        values = [self._unwrapped(v) for v in arguments]
        if self.fake:
            values = [_C.device("meta") if n == "device" and v is not None else v for n, v in zip(operator.names, values)]
            if "device" in operator.names and not any(True for _ in tensors_in(values)):
                values[operator.names.index("device")] = _C.device("meta")
            if into is None and operator.num_outputs != 0 and operator.result_sizes(values) is None:
                if operator.name in DYNAMIC and self.unbacked is not None and self.outer is None:
                    found = self.unbacked.results(self, operator.name, arguments, values)
                    return found, self.unbacked.layouts(self, operator.name, arguments, found)
                text = f"[{operator.name}] the sizes of its results depend on values, which a recording without values does not have"
                raise self.failed(DynamicSizesError(text))
        found = operator.call(values, None if into is None else [self._unwrapped(t) for t in into])
        return found, self._layouts(operator, arguments, values, found)

    def _layouts(self, operator: Any, arguments: list, values: list, found: list) -> list[Layout | None] | None:
        """The layouts of a call's results; None if all are the same in all runs."""
        if self.log is None or not any(map(self._is_sized, arguments)):
            return None
        given = [self._stand_in(a) if self._is_sized(a) else v for a, v in zip(arguments, values)]
        is_guess = any(layout is not None and layout.is_guess for layout in map(self.layout_of, map(self.own, tensors_in(arguments))))
        self.log.facts.take_hinted()
        try:
            made = operator.layouts(self.log.facts, given)
        except Exception as e:
            if any(map(_has_float, arguments)):  # the rule needs the float: the sizes of the results follow from it
                return [self._unknown_layout(value) for value in found]
            if not isinstance(e, (NotImplementedError, OverflowError)):
                raise
            require_arguments(self.log, arguments)  # no rule, or a number that is none for other sizes: the sizes are constants
            return None
        self.log.note_guards()
        is_guess = self.log.facts.take_hinted() or is_guess
        with self.unrecorded(), _C.DisableTorchFunction():
            return [Layout.of(self.log.facts, value, is_guess, *numbers) for value, numbers in zip(found, made)]

    def _is_sized(self, value: Any) -> bool:
        """Whether an argument depends on sizes."""
        if isinstance(value, Tensor):
            return self.layout_of(self.own(value)) is not None
        return any(map(self._is_sized, value)) if isinstance(value, (list, tuple)) else type(value) in (RecordedSize, RecordedFloat)

    def _unknown_layout(self, value: Tensor) -> Layout:
        """The layout of a result whose sizes are no expressions of others: new symbols, which the graph reads of the result."""
        with self.unrecorded(), _C.DisableTorchFunction():
            return Layout.dense(self.log.facts, value, [self.log.unknown_size(n) for n in value.shape])

    def layout_of(self, tensor: RecordedTensor) -> Layout | None:
        """The layout of a tensor, in which sizes that depend on values of tensors are symbols."""
        if tensor._layout is None and tensor.depends_on_values():
            dims = self.log.unbacked.dims_of(tensor._node)
            sizes = [self.log.value_symbol(n) if d in dims else n for d, n in enumerate(tensor._value.shape)]
            tensor._layout = Layout.dense(self.log.facts, tensor._value, sizes)
        return tensor._layout

    def _stand_in(self, value: Any) -> Any:
        """An argument for the rules of sizes."""
        if isinstance(value, Tensor):
            own = self.own(value)
            layout = self.layout_of(own)
            return own._value if layout is None else layout.stand_in(own._value)
        if type(value) is RecordedSize:
            return self.log.facts.simplified(value.number)
        if type(value) is RecordedFloat:
            return math.nan  # which a rule refuses if sizes follow from it
        return type(value)(map(self._stand_in, value)) if isinstance(value, (list, tuple)) else value_of(value)

    def _called(self, overload: Any, args: tuple, kwargs: dict, has_tensors: bool) -> Any:
        """The results of an overload, whose node is in the graph, for all operators that it calls."""
        if self.log is not None and not self.log.constant:
            shadow = _Shadow(self)
            positional, keyword = shadow.arguments(args, kwargs)
            with shadow:
                return overload(*positional, **keyword)
        positional, keyword = tree_map(self._unwrapped, (args, dict(kwargs)))
        takes_device = any(a.name == "device" for a in overload._schema.arguments)
        if self.fake and ("device" in keyword or (not has_tensors and takes_device)):
            keyword["device"] = _C.device("meta")
        return overload(*positional, **keyword)

    def _run_kernel(self, func: Any, args: tuple, kwargs: dict) -> tuple[Any, Any]:
        """The results of an operator whose kernel is a Python function, and their layouts."""
        positional, keyword = tree_map(self._unwrapped, (args, kwargs))
        if type(func) not in (OpOverload, LoadedOverload):
            if self.log is not None:
                require_arguments(self.log, (args, kwargs))
            return func(*positional, **keyword), None
        values = func.run(*func._schema.bind(positional, keyword))
        if self.log is None or not any(map(self._is_sized, (*args, *kwargs.values()))):
            return values, None
        try:
            shadow = _Shadow(self)
            with self.unrecorded():
                bound = func._schema.bind(*shadow.arguments(args, kwargs))
                with no_grad(), shadow:
                    found = func._kernel("meta")(*bound[0], **bound[1])
        except GuardOnDataDependentSymNode:
            raise
        except Exception:  # noqa: BLE001 - a kernel that takes no tensors of a recording
            require_arguments(self.log, (args, kwargs))
            return values, None
        if isinstance(found, Tensor):
            return values, getattr(found, "_layout", None)
        return values, [getattr(v, "_layout", None) for v in found] if isinstance(found, (list, tuple)) else None

    def _note_write(self, written: list) -> None:
        """What depends on values of tensors may differ from what it was before, and other layouts may have made views of copies."""
        if self.unbacked is not None:
            self.unbacked.writes += 1
        if not self.reshaped:
            return
        targets = [self.own(t)._value for t in written if isinstance(t, Tensor)]
        with self.unrecorded(), _C.DisableTorchFunction():
            found = [s for s, r in self.reshaped if any(_is_alias_of(v, t) for v in (s._value, self.own(r)._value) for t in targets)]
        for source in found:
            source.require_joins()

    def _unwrapped(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.own(value)._value
        if isinstance(value, list):
            return [self._unwrapped(v) for v in value]
        return tuple(map(self._unwrapped, value)) if type(value) is tuple else value_of(value)


def _refuse_backward(_gradients: list, _create_graph: bool) -> None:
    raise GradientsRequestedError("[backward] a recording does not call the backward of an autograd.Function")


def _has_float(value: Any) -> bool:
    return any(map(_has_float, value)) if isinstance(value, (list, tuple)) else type(value) is RecordedFloat


def _plain_values(value: Any) -> Any:
    """An argument without numbers that depend on values, and without bools of sizes, of which no size depends."""
    return value_of(value) if is_number(value) or type(value) in (Condition, SymBool) else value


class _Shadow(Recording):
    """Calls an overload that is one node of another recording, to find the sizes of its results. Its graph is not used."""

    def __init__(self, outer: Recording) -> None:
        super().__init__(True, None, outer.log.without_values(), outer)
        self.records_operators, self.on_node = False, None

    def arguments(self, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        """The arguments of a call in this recording."""
        return tree_map(lambda v: self.own(v) if isinstance(v, Tensor) else _plain_values(v), (args, dict(kwargs)))

    def argument(self, value: Any) -> Any:
        """An argument of a node, which nothing reads."""
        return self.own(value)._node if isinstance(value, Tensor) else None

    def own(self, tensor: Tensor, fresh: bool | None = None) -> RecordedTensor:
        """The tensor in this recording; of a tensor that was not recorded, a constant."""
        if not isinstance(tensor, RecordedTensor):
            return self.constant(tensor, fresh)
        if tensor._recording is self:
            return tensor
        if id(tensor) not in self.captured:
            self.captured[id(tensor)] = (tensor, self.placeholder("given", tensor))
        return self.captured[id(tensor)][1]


def _device_of(leaves: list[Tensor], requested: Any) -> Any:
    """The device of a call's results in the program."""
    if requested is not None:
        return _C.device(requested)
    first = next((t for t in leaves if t.dim()), leaves[0] if leaves else None)
    return _C.device("cpu") if first is None else first.device


@contextmanager
def suspended() -> Iterator[None]:
    """Calls within the block are not recorded."""
    mode = _C._pop_torch_dispatch_stack()
    try:
        yield
    finally:
        _C._push_on_torch_dispatch_stack(mode)


def active() -> Recording | None:
    """The recording of this thread's innermost dispatch mode."""
    count = _C._len_torch_dispatch_stack()
    mode = _C._get_dispatch_stack_at(count - 1) if count else None
    return mode if isinstance(mode, Recording) else None


def call_one(name: str, *args: Any, **kwargs: Any) -> Any:
    """Calls an overload of aten, such as "view.default", as one node of the active recording."""
    from ..._library import aten

    base, _, overload = name.partition(".")
    recording = active()
    assert recording is not None
    return recording.one(getattr(aten.packet(base), overload), args, kwargs)


def can_view(tensor: Tensor, shape: list[int]) -> bool:
    """Whether a tensor has a view of these sizes in the example."""
    recording = active()
    assert recording is not None
    own = recording.own(tensor)
    with recording.unrecorded():
        try:
            own._value.detach().view(list(map(value_of, shape)))
        except RuntimeError:
            return False
    return True


def note_reshape(tensor: Tensor, made: Tensor) -> None:
    """Notes a view or copy, which can_view() has chosen: a later write to either makes guards of the layout."""
    recording = active()
    assert recording is not None
    if recording.log is not None and (own := recording.own(tensor))._layout is not None:
        recording.reshaped.append((own, made))
