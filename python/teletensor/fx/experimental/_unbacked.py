"""Unbacked symbols u0, u1, ...: numbers of a recorded function that depend on values of tensors.

They are what item() returns, and sizes of results such as those of nonzero(), x[mask] and unique(). Each recording has values for them,
so that the function can run. The graph computes each number from its own origin (_numbers.py): aten.item, aten.sym_size.int of the tensor
whose size was read, or arithmetic. torch._check() becomes a node that raises at run time, and a fact of which comparisons may follow.
"""

from __future__ import annotations

import contextlib
import functools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any

from ... import _C
from ..._C import Tensor
from ..._library import aten
from ._numbers import Condition, Facts, Number, guard_error, operands_of, text_of, value_of
from ._size_nodes import Layout
from ._sizes import RecordedSize
from ._unbacked_checks import Checks, RetryError
from .symbolic_shapes import GuardOnDataDependentSymNode

# The engine's operators whose results have other sizes for other values, and that can be recorded without values.
DYNAMIC = frozenset(("bincount", "index_masked", "masked_select", "nonzero", "unique_rows", "unique_values"))

_MOST_SYMBOLS = 64
# Values of symbols without bounds. The first range for which the function can be recorded is used.
RANGES = ((2, 160), (2, 12), (0, 4), (0, 2), (0, 1))
_FLOAT_RANGES = ((1.1, 9.9), (0.05, 0.95), (0.05, 0.95), (0.05, 0.95), (0.05, 0.95))
_MISMATCH = re.compile("match|same|multiplied|broadcast|equal")  # messages about sizes that differ
_LIKE_FIRST = frozenset(("softmax", "log_softmax", "layer_norm", "cumsum", "cumprod", "dropout", "contiguous", "clone"))

_SIZED = frozenset("zeros ones empty full rand randn view reshape expand".split())  # whose results have the sizes of an argument
_COUNTED = frozenset(("chunk", "split", "tensor_split", "unbind", "unsafe_chunk", "unsafe_split", "hsplit", "vsplit", "dsplit"))
_WRITES = frozenset("copy fill zero index_put index_fill index_add index_copy masked_fill masked_scatter scatter scatter_add".split())


@functools.cache
def is_pointwise(name: str) -> bool:
    """Whether an operator has the sizes to which its arguments are broadcast, as the engine's operator of this name."""
    from ..._library.engine_operators import operator_named

    try:
        return operator_named(name).is_pointwise
    except Exception:  # noqa: BLE001 - no operator of the engine
        return False


class NotRecordedError(GuardOnDataDependentSymNode):
    """The function raises an error for all numbers that were tried."""


class PlanChangedError(BaseException):
    """All recordings are to be made again."""


class Values(Checks):
    """The symbols of one recording, and their values in it.

    Args:
        plan: what the recordings of the function have in common (_unbacked_plan.Plan).
        static: whether the sizes of the arguments are constants.

    Attributes:
        values: of the symbols.
        recording: the outermost recording, which receives the nodes of numbers.
        unused: comparisons that nothing has evaluated, by id().
    """

    def __init__(self, plan: Any, seed: int, fixed: dict[int, Any], static: bool) -> None:
        self.plan, self.seed, self.fixed, self.static = plan, seed, fixed, static
        self.recording: Any = None
        self.values: list[Any] = []
        self.most: dict[int, Any] = {}  # sizes of arguments that symbols do not exceed
        self.highs: list[Any] = []  # the largest value of a symbol; None is unbounded
        self.places: dict[tuple, int] = {}  # symbols by (node, dim) or (node,)
        self.conditions: list[Condition] = []
        self.unused: dict[int, Condition] = {}
        self.facts = Facts(static)
        self.known: dict[tuple, int] = {}  # symbols of results that have the same size
        self.pending: list[tuple[int, int, int]] = []  # of the current call: output, dimension, symbol
        self.nodes: dict[str, tuple[Any, Any]] = {}  # that compute numbers, with the number, by text
        self.sizes: dict[tuple, Number] = {}  # by node and dimension
        self.error: Exception | None = None
        self.call_error: tuple[str, Exception] | None = None  # the first error of a call with numbers, with the operator
        self.reads: list[tuple[Number, Any, int]] = []  # of values by functions in C: the caller's frame and instruction
        self.counted: int | None = None
        self.calls: list[tuple[dict, set]] = []  # running calls: numbers by token, and tokens that no operator has received yet
        self.tokens = 0  # that have been made
        self.writes = 0
        self.retry: RetryError | None = None
        self.is_closed = False

    def failed(self, error: Exception) -> Exception:
        """Notes an error, which ends the recording even if the function catches it; returns it."""
        self.error = self.error or error
        return error

    @contextlib.contextmanager
    def noting(self, name: str, arguments: list[Any], depends: bool = False) -> Iterator[None]:
        """A context that notes the error of a call whose arguments depend on values: it may not occur for other values."""
        try:
            yield
        except Exception as e:
            if self.call_error is None and (depends or self._depend(arguments)):
                self.call_error = name, e
            raise

    def _depend(self, arguments: Any) -> bool:
        """Whether there is a number that depends on values, or a tensor with such a size."""
        for value in arguments:
            if type(value) in (Number, Condition):
                return True
            if isinstance(value, Tensor):
                node = getattr(value, "_node", None)
                if node is not None and self.dims_of(node):
                    return True
            elif isinstance(value, (list, tuple)) and self._depend(value):
                return True
        return False

    def finish(self) -> None:
        """Raises an error if the function has used a number in a way that is not recorded."""
        self.is_closed = True
        self.check_reads()
        if self.retry is not None:  # the function has caught it
            raise self.retry
        if self.error is not None:
            raise self.error
        if self.call_error is not None:
            name, error = self.call_error
            text = f"whether {name} raises {type(error).__name__} ({error}), which the function catches"
            raise guard_error(text) from error
        for condition in self.unused.values():
            raise guard_error(condition.text())

    def name_of(self, *place: Any) -> str | None:
        """The symbol that item() of a node, or a size of its result, is."""
        k = self.places.get(place)
        return None if k is None else self.plan.name(k)

    def range_of(self, *place: Any) -> tuple[Any, Any]:
        """The bounds of a number that is no sum or product, before any check."""
        k = self.places.get(place)
        if k is None:
            return 0, None
        kind = self.plan.kinds[k]
        return {"bool": (0, 1), "size": (0, self.highs[k])}.get(kind, (None, None))

    # ---- Reads of values by functions in C

    def read(self, number: Number, frame: Any) -> Any:
        """The value, for a function in C that converts its arguments.

        It is an error unless the function is one of the package, which the mode of numbers (_number_mode.py) receives next, with the
        number itself.
        """
        if self.is_closed:
            raise guard_error(f"{text_of(number)}, of a recording that has ended")
        if self.counted is not None:
            self.counted += 1
        else:
            self.reads.append((number, frame, frame.f_lasti))
        return number.value

    def check_reads(self) -> None:
        """Raises an error if a value was read by a function that is not recorded."""
        if self.reads:
            number = self.reads[0][0]
            self.reads.clear()
            raise self.failed(guard_error(text_of(number)))

    def excuse_reads(self, frame: Any, numbers: list[Number], count: int) -> None:
        """Accepts the reads of a call's arguments: `count` of them, by the instruction that the frame is executing."""
        mine = [r for r in self.reads if r[1] is frame and r[2] == frame.f_lasti and any(r[0] is n for n in numbers)]
        if len(mine) == len(self.reads) == count:
            self.reads.clear()
        self.check_reads()

    def token(self, number: Number) -> Any:
        """A number that stands for another one while a function in C passes its arguments to an operator."""
        self.tokens += 1
        return 2**52 + 2 * self.tokens + 1 if type(number.value) is int else 2.0**600 * (1 + 2.0**-40 * self.tokens)

    def of_tokens(self, value: Any) -> Any:
        """An argument of an operator, with the numbers that tokens stand for."""
        if type(value) in (list, tuple):
            return type(value)(map(self.of_tokens, value))
        if not self.calls or type(value) not in (int, float) or not abs(value) > 2**45:
            return value
        for numbers, missing in self.calls:
            if value in numbers:
                missing.discard(value)
                return numbers[value]
        if type(value) is int and value not in (2**63 - 1, -(2**63)):
            raise self.failed(guard_error("a number that follows from an argument"))
        return value

    # ---- Symbols

    def new(self, kind: str, low: Any, high: Any, key: tuple | None = None) -> int:
        """A symbol, or the one that has been made for the same key."""
        if key is not None and (*key, self.writes) in self.known:
            return self.known[(*key, self.writes)]
        k = len(self.values)
        if k == _MOST_SYMBOLS:
            last = self.conditions[-1].text() if self.conditions else "a loop"
            raise GuardOnDataDependentSymNode(
                f"expected at most {_MOST_SYMBOLS} numbers that depend on values of tensors; is there a loop that ends at a value ({last})?"
            )
        plan = self.plan
        if k == len(plan.kinds):
            plan.kinds.append(kind)
            plan.bounds.append([None if kind in ("int", "float") else 0, 1 if kind == "bool" else None])
        if plan.kinds[k] != kind:
            raise GuardOnDataDependentSymNode("the function reads other values for other values")
        self.values.append(self._choose(k, kind, low, high))
        self.highs.append(high if self.static else None)
        if key is not None:
            self.known[(*key, self.writes)] = k
        return k

    def _choose(self, k: int, kind: str, low: Any, high: Any) -> Any:
        if k in self.fixed:
            return self.fixed[k]
        same = self.plan.equal.get(k)
        if same is not None:
            return self.values[same[1]] if isinstance(same, tuple) else same
        chosen = random.Random(self.seed * 1009 + k * 31 + 7)
        if kind == "float":
            return chosen.uniform(*_FLOAT_RANGES[self.plan.mode])
        first, last = RANGES[self.plan.mode]
        planned = self.plan.ranges()[f"u{k}"]
        lows = [n for n in (low, planned[0]) if n is not None]
        highs = [n for n in (high, planned[1]) if n is not None]
        least, most = max(lows, default=None), min(highs, default=None)
        if least is not None:
            first = max(first, least)
            last = max(last, first + last - RANGES[self.plan.mode][0])
        if most is not None:
            last = min(last, most)
            if first > last:
                first = max(last - 2, least if least is not None else last - 2)
        return chosen.randint(min(first, last), last)

    def number(self, k: int, recipe: tuple) -> Number:
        """The number of a symbol, whose node exists; what the graph must check of it becomes nodes."""
        place = recipe[1:]
        is_new = k not in self.places.values()
        self.places[place] = k
        made = self.sizes[place] = Number(self.values[k], recipe, self)
        if is_new:
            same = self.plan.equal.get(k)
            if same is not None:
                other = next(n for p, n in self.sizes.items() if self.places.get(p) == same[1]) if isinstance(same, tuple) else same
                self.require(Condition("==", made, other, self), None)
            if (most := self.most.get(k)) is not None:  # what the operator guarantees
                known = Condition("<=", made, most, self)
                del self.unused[id(known)]
                self.facts.add(known)
            if k in self.plan.least:
                self.require(Condition(">=", made, self.plan.least[k], self), None)
        return made

    # ---- Results of operators

    def item(self, recording: Any, tensor: Tensor) -> Any:
        """tensor.item(); None if it is no int, float or bool."""
        self.check_reads()
        with _C.DisableTorchFunction():
            dtype = tensor.dtype
            kind = "bool" if dtype == _C.bool else "float" if dtype.is_floating_point else "int"
            if dtype.is_complex or dtype == _C.uint64 or tensor._value.numel() != 1:
                return None
        if self.dims_of(tensor._node):
            raise self.failed(guard_error(f"item() of {tensor._node}, whose sizes depend on values"))
        k = self.new(kind, 0 if kind == "bool" else None, 1 if kind == "bool" else None, ("item", tensor._node))
        node = next((p[0] for p, j in self.places.items() if j == k), None)
        if node is None:
            name = "item" if not recording.decompositions else "_local_scalar_dense"
            with recording.unrecorded():
                node = recording.add(aten.packet(name).default, (tensor._node,), {})
            node.meta["val"] = bool(self.values[k]) if kind == "bool" else self.values[k]
            node.meta["symbolic_value"], node.meta["unbacked"] = self.plan.name(k), True
            made = self.number(k, ("item", node))
            self.nodes[text_of(made)] = node, made
        made = self.sizes[node,]
        return Condition("!=", made, 0, self) if kind == "bool" else made

    def results(self, recording: Any, name: str, arguments: list[Any], inputs: list[Any]) -> list[Tensor]:
        """The results, without values, of an operator of DYNAMIC.

        Args:
            arguments: of the call.
            inputs: the arguments on the meta device.
        """
        self.pending = []
        first = inputs[0]
        nodes = [recording.own(a)._node for v in arguments for a in (v if isinstance(v, list) else [v]) if isinstance(a, Tensor)]
        is_known = not any(self.dims_of(n) for n in nodes)  # whether sizes of the arguments do not depend on values
        is_limited = name in ("nonzero", "unique_values")  # whether there are at most as many results as elements of the first argument
        if name == "masked_select":  # which may broadcast it
            is_limited = tuple(inputs[1].shape) == tuple(first.shape)

        def new(high: Any, key: tuple | None = None, low: int = 0) -> int:
            k = self.new("size", low, high, key)
            self.highs[k] = self.highs[k] if is_known else None
            if is_known and first.dim() == 1 and is_limited:
                self.most[k] = self._known_size(recording.own(arguments[0]))
            self.pending.append((0, 0, k))
            return self.values[k]

        def empty(sizes: list[int], dtype: Any = _C.int64) -> Tensor:
            return _C.torch.empty(sizes, dtype=dtype, device="meta")

        count = ("count", recording.own(arguments[0])._node)
        if name == "nonzero":
            return [empty([new(first.numel(), count), first.dim()])]
        if name == "masked_select":
            shape = _broadcast(tuple(first.shape), tuple(inputs[1].shape))
            key = ("count", recording.own(arguments[1])._node) if is_known and self.static and shape == tuple(inputs[1].shape) else None
            size = 1
            for n in shape:
                size *= n
            return [empty([new(size, key)], first.dtype)]
        if name == "bincount":
            return [empty([new(None, None, int(inputs[2] or 0))], _C.int64 if inputs[1] is None else inputs[1].dtype)]
        if name == "unique_values":
            n = new(first.numel(), ("unique", count[1]))
            self.pending.append((2, 0, self.pending[0][2]))
            return [empty([n], first.dtype), empty(list(first.shape)), empty([n])]
        if name == "unique_rows":
            n = new(first.shape[0], ("unique_rows", count[1], bool(inputs[1])))
            self.pending.append((2, 0, self.pending[0][2]))
            return [empty([n, first.shape[1]], first.dtype), empty([first.shape[0]]), empty([n])]
        return [self._indexed(recording, first, inputs[1], arguments[1], new)]

    def _indexed(self, recording: Any, source: Tensor, indices: list[Any], recorded: list[Any], new: Callable) -> Tensor:
        """The result of x[indices] of which some are masks."""
        masks = [(i, m) for i, m in enumerate(indices) if isinstance(m, Tensor) and m.dtype == _C.bool]
        if len(masks) != 1 or masks[0][1].dim() == 0:
            raise NotImplementedError("[index_masked] expected one mask of at least one dimension in an index whose values are not known")
        at, mask = masks[0]
        size = new(mask.numel(), ("count", recording.own(recorded[at])._node))
        if mask.dim() == 1 and not self.dims_of(recording.own(recorded[at])._node):
            self.most[self.pending[-1][2]] = self._known_size(recording.own(recorded[at]))
        place = _C.torch.empty([size], dtype=_C.int64, device="meta")
        whole: list[Any] = []
        for index in indices:
            whole += [place] * mask.dim() if index is mask else [slice(None) if index is None else index]
        if any(i is not None for i in [*indices[:at], *indices[at + 1 :]]):
            raise NotImplementedError("[index_masked] a mask together with other indices, whose values are not known")
        result = source[tuple(whole)]
        self.pending[-1] = (0, at, self.pending[-1][2])
        return result

    @staticmethod
    def _known_size(tensor: Any) -> RecordedSize:
        """The size of a tensor of one dimension, as that of the tensor which it was computed from one by one."""
        node, log = tensor._node, tensor._recording.log
        while node.op == "call_function" and is_pointwise(getattr(node.target, "_opname", "")):
            sources = [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), Tensor)]
            if len(sources) != 1 or sources[0].meta["val"].dim() != 1:
                break
            node = sources[0]
        size = tensor._recorded_size(0, tensor.plain_sizes()[0])
        return RecordedSize(size.number, ("size", node, 0), log) if type(size) is RecordedSize else size

    def layouts(self, recording: Any, name: str, arguments: list[Any], results: list[Tensor]) -> list[Layout | None] | None:
        """The layouts of results(), whose other sizes may be symbols."""
        log = recording.log
        if log.constant:
            return None
        first = arguments[0]
        given = recording.numbers_of(recording.own(first))
        if name == "index_masked":
            at, mask = next((i, m) for i, m in enumerate(arguments[1]) if m is not None)
            sizes = [[*given[:at], None, *given[at + mask.dim() :]]]
        else:
            sizes = {
                "unique_values": [[None], given, [None]], "unique_rows": [[None, *given[1:]], given[:1], [None]],
            }.get(name, [[None] + [n for n in tuple(r.shape)[1:]] for r in results])  # fmt: skip

        def layout(numbers: list[Any], value: Tensor) -> Layout:
            made = [log.value_symbol(int(m)) if n is None else n for n, m in zip(numbers, value.shape)]
            return Layout.dense(log.facts, value, made)

        return list(map(layout, sizes, results))

    def note_sizes(self, recording: Any, name: str, names: list[str], arguments: list[Any], result: Any) -> None:
        """Notes which sizes of a call's results depend on values, and which ones are equal to others.

        By default, all of them may depend on values if a size of an argument does.

        Args:
            name: of the operator; names: of its parameters.
        """
        pending, self.pending = self.pending, []
        tensors = [recording.own(v) for v in arguments if isinstance(v, Tensor)]
        if pending:
            for place, dim, k in pending:
                tensor = result[place] if isinstance(result, (list, tuple)) else result
                known = not any(self.dims_of(t._node) for t in tensors)
                tensor._node.meta["unbacked_dims"] = (dim,) if known or name == "nonzero" else tuple(range(tensor.dim()))
                self.number(k, ("size", tensor._node, dim))
            return
        if isinstance(result, Tensor) and name in _SIZED and self._note_given(name, names, arguments, result):
            return
        if name in ("slice", "narrow") and isinstance(result, Tensor) and len(arguments) > 1 and type(arguments[1]) is int:
            source, dim = tensors[0]._node, arguments[1] % result.dim()
            if any(type(a) is Number for a in arguments) or self.dims_of(source):  # the other sizes remain
                result._node.meta["unbacked_dims"] = tuple(sorted({*self.dims_of(source), dim}))
                for d in set(self.dims_of(source)) - {dim}:
                    self.sizes[result._node, d] = self.size(source, d, tensors[0].plain_sizes()[d])
                return
        pointwise = is_pointwise(name)
        if not isinstance(result, Tensor) or not any(self.dims_of(t._node) for t in tensors):
            if isinstance(result, Tensor) and pointwise and tensors:  # a number does not change the sizes
                result._node.meta["unbacked_dims"] = ()
            return
        if pointwise:
            self._note_pointwise(result, tensors)
        elif name in _LIKE_FIRST and tensors[0].dim() == result.dim():
            self._note_pointwise(result, tensors[:1])
        elif name == "linear" and not self.dims_of(tensors[1]._node) and tensors[0].dim() == result.dim():
            self._note_pointwise(result, tensors[:1], 1)

    def _note_given(self, name: str, names: list[str], arguments: list[Any], result: Any) -> bool:
        """Notes the sizes of a result that are arguments of the call, if all of them are."""
        given = next((a for n, a in zip(names, arguments) if n in ("size", "shape", "sizes")), None)
        if not isinstance(given, (list, tuple)) or len(given) != result.dim():
            return False
        may_infer = name in ("view", "reshape", "expand")  # from -1
        for n in given:
            if (
                type(n) is Number
                and (may_infer and not self.facts.is_natural(n))
                or type(n) is not Number
                and not value_of(n) >= 0
            ):
                return False
        result._node.meta["unbacked_dims"] = tuple(d for d, n in enumerate(given) if type(n) is Number)
        for d in result._node.meta["unbacked_dims"]:
            self.sizes[result._node, d] = given[d]
        return True

    def _note_pointwise(self, result: Any, tensors: list[Any], skipped: int = 0) -> None:
        """Notes the sizes of a result to which the arguments are broadcast, except the last `skipped` ones."""
        dims: list[int] = []
        same: dict[int, Number] = {}
        for i in range(skipped, result.dim()):  # from the last dimension
            dim = result.dim() - 1 - i
            parts = [(t, t.dim() - 1 - i) for t in tensors if i < t.dim()]
            numbers = [self.size(t._node, d, t.plain_sizes()[d]) for t, d in parts if d in self.dims_of(t._node)]
            if not numbers:
                continue
            dims.append(dim)
            others = [t.plain_sizes()[d] for t, d in parts if d not in self.dims_of(t._node)]
            if all(self.static and n == 1 for n in others) and len(set(map(text_of, numbers))) == 1:
                same[dim] = numbers[0]
        result._node.meta["unbacked_dims"] = tuple(dims)
        for dim, number in same.items():
            self.sizes[result._node, dim] = number

    def dims_of(self, node: Any) -> tuple[int, ...]:
        """The dimensions of a node's result whose sizes may depend on values."""
        found = node.meta.get("unbacked_dims")
        if found is None:
            val = node.meta.get("val")
            depends = node.meta.get("is_part", False) and bool(self.values)
            if node.op == "call_function":
                depends = any(n.meta.get("unbacked") or self._is_graph(n) or self.dims_of(n) for n in node.all_input_nodes)
            count = max((v.dim() for v in (val if isinstance(val, (list, tuple)) else [val]) if isinstance(v, Tensor)), default=0)
            found = tuple(range(max(count, 1 if isinstance(val, (list, tuple)) and val else count))) if depends else ()
            if val is not None or not depends:
                node.meta["unbacked_dims"] = found
        return found

    def _is_graph(self, node: Any) -> bool:
        """Whether a node is the graph of a function that an operator calls, whose results may depend on any number."""
        return node.op == "get_attr" and bool(self.values) and not isinstance(node.meta.get("val"), Tensor)

    def size(self, node: Any, dim: int, value: int) -> Any:
        """The size of a node's result, which depends on values."""
        if (node, dim) not in self.sizes:
            self.sizes[node, dim] = Number(value, ("size", node, dim), self)
        return self.sizes[node, dim]

    # ---- Calls whose results are others for other sizes

    def before_call(self, overload: Any, args: tuple) -> None:
        """Makes the graph check sizes on which the number of dimensions of a call's result depends."""
        self.check_reads()
        if getattr(overload, "_opname", "") not in ("squeeze", "squeeze_") or self.recording.is_suspended():
            return
        tensor, *rest = args
        given = rest[0] if rest else list(range(tensor.dim()))
        for dim in given if isinstance(given, (list, tuple)) else [given]:
            place = dim % max(tensor.dim(), 1)
            if place in self.dims_of(tensor._node):
                self.require(Condition("!=", self.size(tensor._node, place, tensor.plain_sizes()[place]), 1, self), None)

    def check_count(self, node: Any) -> None:
        """Raises an error if the number of a call's results depends on values."""
        name = getattr(node.target, "_opname", "")
        if any(map(self._is_graph, node.all_input_nodes)):
            self.writes += 1  # the functions may write
        if name not in _COUNTED or len(node.args) > 1 and isinstance(node.args[1], (list, tuple)):
            return
        place = 1 if name == "unbind" else 2
        dim = node.args[place] if len(node.args) > place else node.kwargs.get("dim", 0)
        dims, val = self.dims_of(node.args[0]), node.args[0].meta.get("val")
        is_known = type(dim) is int and isinstance(val, Tensor) and val.dim() and dim % val.dim() not in dims
        if dims and not is_known or any(n.meta.get("unbacked") for n in node.all_input_nodes):
            raise self.failed(guard_error(f"the number of results of {name}"))

    def note_write(self, name: str, overload: Any, before: Any, after: Any) -> None:
        """Notes the sizes of a tensor that a call in place has changed."""
        if getattr(overload, "_opname", "").endswith("_") and (name.rstrip("_") in _WRITES or is_pointwise(name)):
            after.meta["unbacked_dims"] = dims = self.dims_of(before)
            for d in dims:
                if (before, d) in self.sizes:
                    self.sizes[after, d] = self.sizes[before, d]

    def progress(self) -> int:
        """How many nodes there are."""
        return 0 if self.recording is None else len(self.recording.graph.nodes)

    def candidates(self, error: Exception) -> list[tuple[int, Any]]:
        """Symbols that may have to be equal to another size in the call that failed: both are in the error's message.

        The graph checks that they are equal.
        """
        if isinstance(error, IndexError) or not _MISMATCH.search(str(error)):
            return []
        by_value = {v: k for k, v in reversed(list(enumerate(self.values))) if self.plan.kinds[k] in ("size", "int")}
        found: list[tuple[int, Any]] = []
        sizes = dict.fromkeys(map(int, re.findall(r"\d+", str(error))[:16]))
        for n in sizes:
            for m in sizes:
                if n == m or n not in by_value or m in (0, 1):
                    continue
                other = by_value.get(m)
                if other is None:
                    found.append((by_value[n], m))
                elif other < by_value[n]:
                    found.append((by_value[n], ("u", other)))
        return sorted(dict.fromkeys(found), key=lambda pair: not isinstance(pair[1], tuple))[:12]

    # ---- Names

    def describe(self) -> list[str]:
        """Stores expressions of symbols as metadata of the nodes; returns further symbols, for sizes that are no known expressions."""
        extra: list[str] = []
        names: dict[str, str] = {}

        def named(value: Any) -> str:
            text = text_of(value)
            if type(value) is Number and (operands_of(value) or not self.name_of(*value.recipe[1:])):
                if text not in names:
                    extra.append(f"u{len(self.values) + len(extra)}")
                    names[text] = extra[-1]
                return names[text]
            return text

        for node in self.recording.graph.nodes:
            val = node.meta.get("val")
            if node.op == "call_function" and isinstance(val, Tensor) and (dims := self.dims_of(node)):
                with _C.DisableTorchFunction():
                    sizes = tuple(val.shape)
                given = node.meta.setdefault("symbolic_sizes", {})
                given |= {d: named(self.size(node, d, int(sizes[d]))) for d in dims if d < len(sizes)}
        for node, value in self.nodes.values():
            known = None  # of other nodes
            if type(value) is Number and not operands_of(value):
                known = named(value)
            elif type(value) is RecordedSize and value.recipe[0] == "size":
                known = value.recipe[1].meta.get("symbolic_sizes", {}).get(value.recipe[2], str(value.plain()))
            node.meta["symbolic_value"] = known
        return extra


def _broadcast(a: tuple, b: tuple) -> tuple:
    with _C.DisableTorchFunction():
        one, two = (_C.torch.empty(list(s), device="meta") for s in (a, b))
        return tuple((one + two).shape)


def not_recorded_error(error: Any) -> GuardOnDataDependentSymNode:
    """Returns the error for a graph that would be valid for some values of its tensors only."""
    return GuardOnDataDependentSymNode(f"A number that depends on values of tensors is used in a way that is not recorded: {error}")
