"""ExportedProgram: the graph of a module's operators with the module's tensors."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from .._C import Tensor
from .._lazy import set_module
from ..fx.experimental._functional import check_apart
from ..fx.graph import CodeGen, Graph, _PyTreeCodeGen, _PyTreeInfo
from ..fx.graph_module import GraphModule
from ..nn import Module, Parameter
from ..utils import _pytree as pytree
from . import _decompose
from ._checks import InputCheck, ValueRange
from .graph_signature import ExportGraphSignature, InputKind, OutputKind

__all__ = ["ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "default_decompositions"]


@dataclasses.dataclass
class ModuleCallSignature:
    """The arguments and results of a module's call."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    forward_arg_names: list[str] | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    """A module, by its name, and the signature of its call if it is known."""

    fqn: str
    signature: ModuleCallSignature | None = None


class ExportedProgram:
    """The operators of a module's forward as an fx graph, whose inputs are the module's tensors and then the user's.

    Attributes:
        graph_module, graph: the graph.
        graph_signature: what each input and result is.
        state_dict: the parameters and persistent buffers.
        constants: other tensors by name: non-persistent buffers and constants.
        range_constraints: ranges of the sizes that may differ between calls, by symbol.
        module_call_graph: the modules; the first entry is the whole program.
        example_inputs: the arguments that were exported.
    """

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, graph_signature: ExportGraphSignature, state_dict: dict[str, Tensor],
        range_constraints: dict[str, ValueRange], module_call_graph: list[ModuleCallEntry],
        example_inputs: tuple[tuple, dict[str, Any]] | None = None, constants: dict[str, Tensor] | None = None,
        *, input_check: InputCheck | None = None, verifier: str = "TRAINING",
    ) -> None:  # fmt: skip
        graph.set_codegen(CodeGen())
        self._graph_module = GraphModule(root, graph)
        self._graph_signature, self._state_dict = graph_signature, state_dict
        self._range_constraints, self._module_call_graph = range_constraints, module_call_graph
        self._example_inputs, self._constants = example_inputs, constants or {}
        self._input_check, self._dialect = input_check, verifier

    graph_module = property(lambda self: self._graph_module, doc="The module of the graph.")
    graph = property(lambda self: self._graph_module.graph, doc="The graph.")
    graph_signature = property(lambda self: self._graph_signature, doc="What each input and result is.")
    state_dict = property(lambda self: self._state_dict, doc="Parameters and persistent buffers by name.")
    constants = property(lambda self: self._constants, doc="Other tensors by name.")
    tensor_constants = constants
    range_constraints = property(lambda self: self._range_constraints, doc="Ranges by symbol.")
    module_call_graph = property(lambda self: self._module_call_graph, doc="The modules of the program.")
    dialect = property(lambda self: self._dialect, doc="The dialect of the graph.")

    @property
    def example_inputs(self) -> Any:
        """The arguments that were exported: (args, kwargs)."""
        return self._example_inputs

    @example_inputs.setter
    def example_inputs(self, value: Any) -> None:
        is_pair = isinstance(value, tuple) and len(value) == 2
        if value is not None and not (is_pair and isinstance(value[0], tuple) and isinstance(value[1], dict)):
            raise ValueError("[ExportedProgram] expected example inputs as a tuple of a tuple and a dict")
        self._example_inputs = value

    @property
    def call_spec(self) -> Any:
        """The structures of the arguments and of the result."""
        signature = self._module_call_graph[0].signature
        return signature and CallSpec(signature.in_spec, signature.out_spec)

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names."""
        for name in self._graph_signature.parameters:
            yield name, self._state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        hidden = set(self._graph_signature.non_persistent_buffers)
        for name in self._graph_signature.buffers:
            yield name, (self._constants if name in hidden else self._state_dict)[name]

    def tensor_of(self, kind: InputKind, target: str) -> Tensor:
        """The tensor of an input that is not the user's."""
        hidden = kind == InputKind.CONSTANT_TENSOR or target in self._graph_signature.non_persistent_buffers
        return (self._constants if hidden else self._state_dict)[target]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.")

    def __str__(self) -> str:
        text = self._graph_module.print_readable(print_output=False, colored=False).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {text}\nGraph signature: {str(self._graph_signature).strip()}\n"
            f"Range constraints: {self._range_constraints}\n"
        )

    def print_readable(self) -> str:
        """Prints the graph as code, and returns the text."""
        return self._graph_module.print_readable()

    def validate(self) -> None:
        """Raises an error if the graph and its signature do not fit."""
        self.graph.lint()
        names = [n.name for n in self.graph.nodes if n.op == "placeholder"]
        if names != [s.arg.name for s in self._graph_signature.input_specs]:
            raise ValueError(f"[ExportedProgram] expected the inputs {names}, got the signature {self._graph_signature}")

    def module(self, check_guards: bool = True) -> GraphModule:
        """A module that computes the graph, with the program's parameters and buffers, which it shares.

        Args:
            check_guards: whether a call checks the sizes, dtypes and structure of its arguments.
        """
        return _Unlifted(self).module(check_guards)

    def run_decompositions(
        self, decomp_table: dict[Any, Callable] | None = None, decompose_custom_triton_ops: bool = False
    ) -> ExportedProgram:
        """The program without writes, divided into operators that PyTorch's core set contains as far as rules exist.

        New values of buffers and of the user's inputs are results of the graph, which the program's module() stores.

        Args:
            decomp_table: functions by overload, by default default_decompositions().

        Raises:
            NotImplementedError: a write has no form that returns a new value.
        """
        if decompose_custom_triton_ops:
            raise NotImplementedError("[run_decompositions] there are no operators of Triton")
        return _decompose.decomposed(self, default_decompositions() if decomp_table is None else decomp_table)


@dataclasses.dataclass
class CallSpec:
    """The structures of a program's arguments and result."""

    in_spec: pytree.TreeSpec | None
    out_spec: pytree.TreeSpec | None


class CustomDecompTable(dict):
    """The decompositions of default_decompositions(), which a program may change before run_decompositions()."""

    def __init__(self) -> None:
        super().__init__(default_decompositions())

    def materialize(self) -> dict[Any, Callable]:
        """A plain dict of the functions by overload."""
        return dict(self)


def default_decompositions() -> dict[Any, Callable]:
    """A new dict of the decompositions that run_decompositions() applies, by overload."""
    from .. import ops
    from .._decomp import core_aten_decompositions
    from .._decomp.arithmetic import multi_margin_loss, multilabel_margin_loss
    from .._library import aten
    from ..fx.experimental._composites import COMPOSITES
    from ..fx.experimental._numbers import is_number
    from ..fx.experimental._recording import call_one

    def batch_norm(x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float, eps: float, *_: Any) -> Any:
        if training or mean is None:
            return NotImplemented
        return call_one("_native_batch_norm_legit_no_training.default", x, weight, bias, mean, var, momentum, eps)[0]

    def split(self: Tensor, split_size: int, dim: int = 0) -> Any:
        size = self.size(dim)
        if is_number(size) or is_number(split_size) or split_size == 0 or size == 0:
            return NotImplemented
        rest = int(-(-size // split_size)) - 1  # of the results but the last one
        return call_one("split_with_sizes.default", self, [*[split_size] * rest, size - rest * split_size], dim)

    changed = {aten.packet("batch_norm").default: batch_norm, aten.packet("split").Tensor: split}
    # Losses whose parameters are not those of ATen's operators.
    losses = {getattr(ops.teletensor, f.__name__).default: f for f in (multi_margin_loss, multilabel_margin_loss)}
    return {**core_aten_decompositions(), **COMPOSITES, **changed, **losses}


class _Unlifted:
    """Makes a module of a program: its tensors are attributes instead of inputs."""

    def __init__(self, program: ExportedProgram) -> None:
        self.program = program
        self.root = Module()
        self.graph = Graph()

    def _attribute(self, kind: InputKind, target: str, persistent: bool | None) -> None:
        owner, name = _owner(self.root, target)
        tensor = self.program.tensor_of(kind, target)
        if kind == InputKind.PARAMETER:
            owner.register_parameter(name, tensor if isinstance(tensor, Parameter) else Parameter(tensor, tensor.requires_grad))
        else:
            owner.register_buffer(name, tensor, persistent=bool(persistent))

    def module(self, check_guards: bool) -> GraphModule:
        """The module."""
        program, graph = self.program, self.graph
        for name, child in program.graph_module.named_children():
            self.root.add_module(name, child)
        specs = {s.arg.name: s for s in program.graph_signature.input_specs}
        copies: dict[Any, Any] = {}
        for node in program.graph.nodes:
            if node.op == "placeholder" and specs[node.name].kind == InputKind.USER_INPUT:
                copies[node] = graph.placeholder(node.name)
                copies[node].meta = dict(node.meta)
            elif node.op == "placeholder":
                spec = specs[node.name]
                self._attribute(spec.kind, spec.target, spec.persistent)
                copies[node] = graph.get_attr(spec.target)
                copies[node].meta = dict(node.meta)
            elif node.op == "output":
                self._output(node, copies)
            else:
                copies[node] = graph.node_copy(node, copies.__getitem__)
        signature = program.module_call_graph[0].signature
        assert signature is not None
        names = signature.forward_arg_names or [f"arg_{i}" for i in range(signature.in_spec.child(0).num_children)]
        graph.set_codegen(_PyTreeCodeGen(_PyTreeInfo(list(names), signature.in_spec, signature.out_spec)))
        made = GraphModule(self.root, graph)
        for name, tensor in program.state_dict.items():  # other names of shared tensors
            add_tensor(made, name, tensor)
        if check_guards and program._input_check is not None:
            made.register_forward_pre_hook(program._input_check, with_kwargs=True)
        if (writes := _Writes(program)).targets:
            made.register_forward_pre_hook(writes, with_kwargs=True)
        made.train, made.eval = _refuse_mode("train"), _refuse_mode("eval")
        return made

    def _output(self, node: Any, copies: dict) -> None:
        """Stores the new values of tensors, and returns the user's results."""
        from .._library import aten

        specs = self.program.graph_signature.output_specs
        by_target = {(s.kind, s.target): s.arg.name for s in self.program.graph_signature.input_specs}
        by_name = {n.name: n for n in copies}
        results = []
        for spec, value in zip(specs, node.args[0], strict=True):
            value = copies[value] if value in copies else value
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
                kind = InputKind.BUFFER if spec.kind == OutputKind.BUFFER_MUTATION else InputKind.PARAMETER
                target = copies[by_name[by_target[kind, spec.target]]]
                self.graph.call_function(aten.packet("copy_").default, (target, value))
            elif spec.kind == OutputKind.USER_INPUT_MUTATION:
                self.graph.call_function(aten.packet("copy_").default, (copies[by_name[spec.target]], value))
            else:
                results.append(value)
        self.graph.output(tuple(results))


def _owner(root: Module, target: str) -> tuple[Module, str]:
    """The module of a tensor, which is created if it does not exist, and the tensor's name in it."""
    path, _, name = target.rpartition(".")
    for part in filter(None, path.split(".")):
        if part not in root._modules:
            root.add_module(part, Module())
        root = root._modules[part]
    return root, name


class _Writes:
    """A forward pre-hook that raises if a tensor which the program writes at its end shares memory with another one.

    Attributes:
        targets: parameters and buffers, by name, and arguments, by position.
    """

    def __init__(self, program: ExportedProgram) -> None:
        signature = program.graph_signature
        positions = {s.arg.name: i for i, s in enumerate(s for s in signature.input_specs if s.kind == InputKind.USER_INPUT)}
        call = program.module_call_graph[0].signature
        self.order: list[str] = (call.in_spec.child(1).context or []) if call is not None else []
        self.targets: list[Any] = []
        for spec in signature.output_specs:
            if spec.kind == OutputKind.USER_INPUT_MUTATION:
                self.targets.append(positions[spec.target])
            elif spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION):
                self.targets.append(spec.target)

    def __call__(self, module: Module, args: tuple, kwargs: dict[str, Any]) -> None:
        if set(kwargs) == set(self.order):
            kwargs = {k: kwargs[k] for k in self.order}
        names: dict[Any, Tensor] = {n: t for n, t in (*module.named_parameters(), *module.named_buffers())}
        inputs = {i: x for i, x in enumerate(pytree.tree_leaves((args, kwargs))) if isinstance(x, Tensor)}
        found = {**names, **inputs}
        written = [found[t] for t in self.targets if t in found]
        check_apart(written, [x for t, x in found.items() if t not in self.targets], "export")


def add_tensor(root: Module, target: str, tensor: Tensor) -> None:
    """Registers a tensor under a path, if the path has none."""
    owner, name = _owner(root, target)
    if name not in owner._parameters and name not in owner._buffers:
        if isinstance(tensor, Parameter):
            owner.register_parameter(name, tensor)
        else:
            owner.register_buffer(name, tensor)


def _refuse_mode(name: str) -> Callable:
    def refuse(mode: bool = True) -> None:
        raise NotImplementedError(f"Calling {name}({mode}) is not supported: the mode was fixed when the module was exported.")

    return refuse


def copied(program: ExportedProgram) -> ExportedProgram:
    """A program with the same tensors and a copy of the graph."""
    graph = copy.deepcopy(program.graph)
    return ExportedProgram(
        program.graph_module, graph, copy.deepcopy(program.graph_signature), dict(program.state_dict), dict(program.range_constraints),
        list(program.module_call_graph), program.example_inputs, dict(program.constants), input_check=program._input_check,
        verifier=program.dialect,
    )  # fmt: skip


set_module("teletensor.export.decomp_utils", CustomDecompTable)
