"""Entries of a served model: functions of tensors as Programs with names (proto/teletensor/v1/model.proto)."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .. import _C
from .._C import Tensor
from ..autograd import no_grad
from ..compiler.programs import trace
from ..nn import Module
from ..utils import _pytree as pytree

_MAX_PORTS = 256
_PROBED = (1, 2, 3, 4, 5, 7, 8, 16, 31, 64)  # sizes of dynamic dimensions that show which sizes of outputs depend on them


@dataclasses.dataclass
class Entry:
    """What an entry of a model calls, and how its Program is traced.

    Attributes:
        fn: a function or module. It receives the inputs, then the states, and returns a tensor or nested containers of
            tensors, whose order is that of the outputs. It changes states in place.
        example_inputs: tensors; their dtypes and static sizes are those of requests.
        dynamic_shapes: by input, in order or by name: the names of its dynamic dimensions by number, ``{1: "length"}``, or
            torch.export's Dim, whose range is not checked. Dimensions of one name have one size in a request.
        input_names, output_names: None: the parameters of the function, and "output" or "output_0", "output_1", ...
        states: tensors that the engine keeps between the requests of a sequence, zero at first: examples of them by name. Or
            names of the module's buffers: these are its states instead of weights, and the module reads and changes them, in
            place or by assignment. Their values now do not matter.
    """

    fn: Callable
    example_inputs: Sequence[Tensor]
    dynamic_shapes: Mapping[str, Mapping[int, str]] | Sequence[Mapping[int, str]] = ()
    input_names: Sequence[str] | None = None
    output_names: Sequence[str] | None = None
    states: Mapping[str, Tensor] | Sequence[str] = ()


@dataclasses.dataclass
class TracedEntry:
    """An entry in the form of the protocol. `weights` are its captured tensors by name."""

    message: dict[str, Any]
    definition: bytes
    weights: dict[str, Tensor]


def parameter_names(fn: Callable, count: int) -> list[str]:
    """Names of the first positional parameters of a function or module; "input_0", ... where it has no names."""
    import inspect

    try:
        parameters = list(inspect.signature(fn.forward if isinstance(fn, Module) else fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in parameters if p.kind in kinds][:count]
    return names + [f"input_{i}" for i in range(len(names), count)]


def _checked_names(what: str, names: Sequence[str], count: int) -> list[str]:
    names = list(names)
    if len(names) != count or len(set(names)) != count or not all(isinstance(name, str) and name for name in names):
        raise ValueError(f"[serving] expected {count} different {what}, got {names!r}")
    return names


def _names_of_sizes(name: str, given: Any) -> dict[int, Any]:
    """The names of an input's dynamic dimensions, of which PyTorch's forms may be given: Dim, Dim.DYNAMIC, a list with None."""
    dims = dict(enumerate(given) if isinstance(given, (list, tuple)) else given)
    kinds = {d: getattr(n, "kind", None) for d, n in dims.items()}  # of Dim.AUTO and others
    names = {d: n for d, n in dims.items() if n is not None and kinds[d] != "STATIC"}
    return {
        d: f"{name}_{d}" if kinds[d] else n.__name__ if getattr(n, "root", None) is n else n for d, n in names.items()
    }  # fmt: skip


def _dynamic_sizes(entry: Entry, names: Sequence[str], dynamic_batch: bool) -> list[dict[int, str]]:
    """By input: the names of its dynamic dimensions."""
    given = entry.dynamic_shapes
    if isinstance(given, Mapping):
        if unknown := set(given) - set(names):
            raise ValueError(f"[serving] expected dynamic_shapes of the inputs {', '.join(names)}, got {sorted(unknown)[0]!r}")
        given = [given.get(name, {}) for name in names]
    if given and len(given) != len(names):
        raise ValueError(f"[serving] expected dynamic_shapes of {len(names)} inputs, got {len(given)}")
    result = []
    for name, example, dims in zip(names, entry.example_inputs, given or [{}] * len(names)):
        dims = _names_of_sizes(name, dims or {})
        if dynamic_batch:
            if example.dim() == 0:
                raise ValueError(f"[serving] expected at least one dimension of {name!r} for dynamic_batch=True, got a scalar")
            dims.setdefault(0, "batch")
        if any(not isinstance(d, int) or not 0 <= d < example.dim() or not isinstance(n, str) or not n for d, n in dims.items()):
            raise ValueError(f"[serving] expected names of dimensions 0 to {example.dim() - 1} of {name!r}, got {dims!r}")
        result.append(dims)
    return result


def _traced_sizes(examples: Sequence[Tensor], dynamic: Sequence[dict[int, str]]) -> dict[str, int]:
    """The size of each dynamic dimension in the trace: that of the examples, but at least 2."""
    sizes: dict[str, int] = {}
    for example, dims in zip(examples, dynamic):
        for dim, name in dims.items():
            size = max(example.shape[dim], 2)
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"[serving] expected one size of {name!r} in the example inputs, got {sizes[name]} and {size}")
    # Sizes of different names differ, because the trace takes equal ones for one size.
    taken: set[int] = set()
    for name, size in sizes.items():
        sizes[name] = next(n for n in range(size, size + len(sizes)) if n not in taken)
        taken.add(sizes[name])
    return sizes


def _stand_ins(examples: Sequence[Tensor], dynamic: Sequence[dict[int, str]], sizes: Mapping[str, int]) -> list[Tensor]:
    """Tensors like the examples, with other sizes of dynamic dimensions. Their values do not matter."""
    made = []
    for example, dims in zip(examples, dynamic):
        shape = [sizes[dims[d]] if d in dims else n for d, n in enumerate(example.shape)]
        made.append(_C.torch.empty(shape, dtype=example.dtype, device=example.device))
        made[-1]._dynamo_static_indices = {d for d in range(example.dim()) if d not in dims}
    return made


def _of_static_sizes(tensor: Tensor) -> Tensor:
    alias = tensor.detach()
    alias._dynamo_static_indices = set(range(tensor.dim()))
    return alias


def _infer(program: _C.Program, inputs: Sequence[Tensor]) -> list[tuple[Any, list[int]]]:
    """dtype and sizes of each output."""
    results = program.infer(inputs)
    return [results[index] for _, index in program.outputs]


def _assignments(sizes: Mapping[str, int]) -> Iterator[tuple[str, dict[str, int]]]:
    """Sizes of the dynamic dimensions, one of them changed at a time."""
    for name in sizes:
        for size in _PROBED:
            if size != sizes[name]:
                yield name, {**sizes, name: size}


def _output_ports(
    program: _C.Program, entry: Entry, dynamic: Sequence[dict[int, str]], sizes: Mapping[str, int], states: Sequence[Tensor]
) -> list[tuple[Any, list[int], list[str]]]:
    """dtype, sizes and names of sizes of each output, found by inference for other sizes of the dynamic dimensions."""
    base = _infer(program, [*_stand_ins(entry.example_inputs, dynamic, sizes), *states])
    ports = [(dtype, list(shape), [{name for name in sizes if sizes[name] == size} for size in shape]) for dtype, shape in base]
    refused: dict[str, Exception] = {}
    accepted = set()
    for name, assignment in _assignments(sizes):
        try:
            found = _infer(program, [*_stand_ins(entry.example_inputs, dynamic, assignment), *states])
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            refused[name] = error
            continue
        accepted.add(name)
        for (_, shape, names), (_, other), (_, first) in zip(ports, found, base):
            for d, size in enumerate(other):
                names[d] = {candidate for candidate in names[d] if assignment[candidate] == size}
                if size != first[d]:
                    shape[d] = -1
    for name in set(refused) - accepted:
        raise ValueError(f"[serving] the function accepts only {name} = {sizes[name]}: {refused[name]}") from refused[name]
    return [
        (dtype, shape, [min(found) if size == -1 and found else "" for size, found in zip(shape, names)])
        for dtype, shape, names in ports
    ]


def _port(name: str, dtype: Any, shape: Sequence[int], size_names: Sequence[str]) -> dict[str, Any]:
    port: dict[str, Any] = {"name": name, "dtype": _C.dtype_number(dtype), "sizes": list(shape)}
    if any(size_names):
        port["size_names"] = list(size_names)
    return port


def _flat(fn: Callable) -> Callable:
    """The function with a tuple of tensors as its result."""

    def forward(*tensors: Tensor) -> tuple[Tensor, ...]:
        leaves = pytree.tree_leaves(fn(*tensors))
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise TypeError(f"[serving] expected tensors as results of the function, got {type(leaf).__name__}")
        if not 1 <= len(leaves) <= _MAX_PORTS:
            raise ValueError(f"[serving] expected 1 to {_MAX_PORTS} results of the function, got {len(leaves)}")
        return tuple(leaves)

    forward.__name__ = getattr(fn, "__name__", type(fn).__name__)
    return forward


def _trace(fn: Callable, inputs: Sequence[Tensor]) -> _C.Program:
    """The Program of a function. Outputs that share memory with others, or are arguments, are copied."""

    def with_copies(*tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(output.clone() for output in fn(*tensors))

    with no_grad():
        try:
            program = trace(fn, *inputs)._program
            places = program.outputs
            if all(source == "result" for source, _ in places) and len({index for _, index in places}) == len(places):
                return program
        except NotImplementedError as error:
            if "output" not in str(error):
                raise
        return trace(with_copies, *inputs)._program


class _WithBuffersAsStates:
    """Calls a module or a method of it with the values of some buffers as the last arguments, which receive the new values."""

    def __init__(self, fn: Callable, names: Sequence[str]):
        self.fn, self.names = fn, names
        self.__name__ = getattr(fn, "__name__", type(fn).__name__)
        owner = fn if isinstance(fn, Module) else getattr(fn, "__self__", None)
        if not isinstance(owner, Module):
            raise TypeError(f"[serving] expected a module, or a method of one, whose buffers are states, got {self.__name__}")
        self.__self__ = owner  # _modules_of() finds the names of the other tensors by it
        self.places = [(owner.get_submodule(path), name) for path, _, name in (each.rpartition(".") for each in names)]

    def buffers(self) -> list[Tensor]:
        return [module._buffers[name] for module, name in self.places]

    def __call__(self, *tensors: Tensor) -> Any:
        count = len(tensors) - len(self.places)
        kept = self.buffers()
        try:
            for (module, name), state in zip(self.places, tensors[count:]):
                module._buffers[name] = state
            result = self.fn(*tensors[:count])
            for new, state in zip(self.buffers(), tensors[count:]):
                if new is not state:
                    state.copy_(new)
        finally:
            for (module, name), buffer in zip(self.places, kept):
                module._buffers[name] = buffer
        return result


def _with_named_states(entry: Entry) -> Entry:
    """The entry with tensors as its states, if these are names of buffers."""
    if isinstance(entry.states, Mapping):
        for name, state in entry.states.items():
            if not isinstance(state, Tensor):
                raise TypeError(f"[serving] expected a tensor as an example of the state {name!r}, got {type(state).__name__}")
        return entry
    names = list(entry.states)
    if not names:
        return dataclasses.replace(entry, states={})
    owner = entry.fn if isinstance(entry.fn, Module) else getattr(entry.fn, "__self__", None)
    known = dict(owner.named_buffers()) if isinstance(owner, Module) else {}
    if len(set(names)) != len(names) or (isinstance(owner, Module) and not known.keys() >= set(names)):
        raise ValueError(f"[serving] expected different names of the module's buffers ({', '.join(known)}) as states, got {names!r}")
    fn = _WithBuffersAsStates(entry.fn, names)
    inputs = entry.input_names or parameter_names(entry.fn, len(entry.example_inputs))
    return dataclasses.replace(entry, fn=fn, input_names=inputs, states=dict(zip(names, fn.buffers())))


def _weight_names(fn: Callable, captured: Sequence[Tensor], number: Iterator[int]) -> list[str]:
    """The names in a module's state of captured tensors; "constant_0", ... for others."""
    names: dict[int, str] = {}
    taken: set[str] = set()
    for prefix, module in _modules_of(fn):
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            handle = _C.handle_number(tensor)
            if handle not in names and prefix + name not in taken:
                names[handle] = prefix + name
                taken.add(prefix + name)
    return [names.get(_C.handle_number(tensor)) or f"constant_{next(number)}" for tensor in captured]


def _modules_of(fn: Callable) -> list[tuple[str, Module]]:
    """The modules that a function calls, with prefixes of their parameters' names: itself, its object, and variables that it
    uses."""
    owner = fn if isinstance(fn, Module) else getattr(fn, "__self__", None)
    if isinstance(owner, Module):
        return [("", owner)]
    code = getattr(fn, "__code__", None)
    if code is None:
        return []
    cells = {}
    for name, cell in zip(code.co_freevars, fn.__closure__ or ()):
        with contextlib.suppress(ValueError):  # an empty cell
            cells[name] = cell.cell_contents
    used = {name: fn.__globals__[name] for name in code.co_names if name in fn.__globals__}
    return [(f"{name}.", value) for name, value in {**used, **cells}.items() if isinstance(value, Module)]


def trace_entry(name: str, entry: Entry, dynamic_batch: bool, numbers: Iterator[int]) -> TracedEntry:
    """Traces an entry. `numbers` count the tensors without a name, of all entries of a model.

    Raises:
        ValueError: names or examples are invalid, the function writes to a tensor that is not a state, or it requires of
            sizes what requests with other dynamic sizes would not fulfil.
        What trace() raises.
    """
    entry = _with_named_states(entry)
    examples = list(entry.example_inputs)
    if not all(isinstance(example, Tensor) for example in examples) or len(examples) > _MAX_PORTS:
        raise TypeError(f"[serving] expected at most {_MAX_PORTS} tensors as example inputs")
    states = dict(entry.states)
    names = _checked_names("names of inputs", entry.input_names or parameter_names(entry.fn, len(examples)), len(examples))
    dynamic = _dynamic_sizes(entry, names, dynamic_batch)
    sizes = _traced_sizes(examples, dynamic)
    stand_ins = [*_stand_ins(examples, dynamic, sizes), *map(_of_static_sizes, states.values())]
    program = _trace(_flat(entry.fn), stand_ins)
    if program.written != len(states) or program.order[len(program.order) - program.written :] != list(
        range(len(examples), len(examples) + len(states))
    ):
        raise ValueError(
            f"[serving] expected a function that changes its {len(states)} states in place and no other tensor, got one that "
            f"changes {program.written} tensors; call eval() of a module that updates statistics"
        )
    ports = _output_ports(program, entry, dynamic, sizes, list(states.values()))
    default = ["output"] if len(ports) == 1 else [f"output_{i}" for i in range(len(ports))]
    outputs = _checked_names("names of outputs", entry.output_names or default, len(ports))
    weights = dict(zip(_weight_names(entry.fn, program.captured, numbers), program.captured))
    for weight, tensor in weights.items():
        if not tensor.is_contiguous() and "as_strided" in program.text:
            raise ValueError(f"[serving] expected a contiguous tensor {weight!r}, because the function reads strides")
    inputs = []
    for port, example, dims in zip(names, examples, dynamic):
        shape = [-1 if d in dims else n for d, n in enumerate(example.shape)]
        inputs.append(_port(port, example.dtype, shape, [dims.get(d, "") for d in range(example.dim())]))
    message = {
        "name": name,
        "inputs": inputs,
        "outputs": [_port(port, *found) for port, found in zip(_in_order(outputs, program), _in_order(ports, program))],
        "weights": list(weights),
        "states": [
            {"name": state, "dtype": _C.dtype_number(t.dtype), "sizes": list(t.shape), "in_place": True} for state, t in states.items()
        ],
        "exact": program.is_exact,
        "requirements": [
            {"left": left, "right": right, "relation": relation, "expected": expected, "where": where}
            for left, right, relation, expected, where in program.requirements
        ],
    }
    return TracedEntry(message, program.definition, weights)


def _in_order(values: Sequence, program: _C.Program) -> list:
    """Values of the function's outputs in the order of the Program's results."""
    places = [index for _, index in program.outputs]
    return [value for _, value in sorted(zip(places, values), key=lambda pair: pair[0])]


def model_bytes(entries: Sequence[TracedEntry], attributes: Mapping[str, str], producer: str) -> bytes:
    """A serialized teletensor.v1.Model."""
    message = {
        "format": 1, "producer": producer, "entries": [entry.message for entry in entries], "attributes": dict(attributes),
    }  # fmt: skip
    return _C.model_bytes(json.dumps(message), [entry.definition for entry in entries])
