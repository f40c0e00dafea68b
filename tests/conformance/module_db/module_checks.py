"""The comparisons of one module of module_db."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_modules import FunctionInput, ModuleErrorEnum

import teletensor

from ..op_db.convert import back, difference, dtype_name, leaves
from . import events
from .counts import Tally, outcome
from .differences import is_random, tolerance_factor
from .samples import SampleConverter, call_text, noncontiguous

_CASTS = ("half", "double", "bfloat16", "float")
_PRIVATE = re.compile(r"^_|^(training|forward|dump_patches|call_super_init|T_destination)$")


def our_class(theirs: type) -> type:
    """Our module of the same name. Raises AttributeError if there is none."""
    return getattr(teletensor.nn, theirs.__name__)


def describe(sample, training: bool) -> str:
    """A short text of a sample."""
    given = "" if sample.forward_input is None else call_text(sample.forward_input)
    return f"{'train' if training else 'eval'} ({call_text(sample.constructor_input)}) ({given})"


class Pair:
    """A module of PyTorch's, ours with the same state, and converted arguments."""

    def __init__(self, info, sample, training: bool):
        made, given = sample.constructor_input, sample.forward_input
        self.theirs = info.module_cls(*made.args, **made.kwargs).train(training)
        convert = SampleConverter()
        self.made = convert(made.args), convert(made.kwargs)
        self.ours = our_class(info.module_cls)(*self.made[0], **self.made[1]).train(training)
        self.given = given
        if given is not None:
            self.convert = SampleConverter()
            self.args, self.kwargs = self.convert(given.args), self.convert(given.kwargs)
            for tensor, _ in self.convert.pairs.values():  # the samples are used several times
                tensor.grad = None

    def same_state(self) -> Pair:
        """Copies PyTorch's state into our module."""
        if not any(isinstance(v, torch.nn.parameter.UninitializedTensorMixin) for v in self.theirs.state_dict().values()):
            self.ours.load_state_dict(SampleConverter()(self.theirs.state_dict()))
        return self


class ModuleChecks:
    """All comparisons of one module."""

    def __init__(self, info):
        self.info, self.tally, self.inputs = info, Tally(info.name), 0
        self.is_lazy = info.is_lazy

    def run(self) -> Tally:
        """Runs all comparisons."""
        our_class(self.info.module_cls)
        for dtype in self.info.supported_dtypes("cpu"):
            for training in (True, False) if self.info.train_and_eval_differ else (True,):
                for sample in self._samples(dtype, training, True):
                    self.inputs += 1
                    self._run_sample(sample, dtype_name(dtype), training)
                self._errors(dtype, training)
        return self.tally

    def _samples(self, dtype: torch.dtype, training: bool, requires_grad: bool) -> Iterator:
        torch.manual_seed(0)
        make = self.info.module_inputs_func
        for sample in make(self.info, device="cpu", dtype=dtype, requires_grad=requires_grad, training=training):
            sample.constructor_input.kwargs.setdefault("dtype", dtype)
            if not _accepts(self.info.module_cls, "dtype"):
                del sample.constructor_input.kwargs["dtype"]
            yield sample

    def _run_sample(self, sample, dtype: str, training: bool) -> None:
        text = describe(sample, training)

        def check(name: str, function, *args) -> None:
            self.tally.compare(name, dtype, text, lambda: function(Pair(self.info, sample, training), *args))

        check("repr", lambda pair: _different_text(repr(pair.ours), repr(pair.theirs)))
        check("attributes", _attributes)
        check("state dict", state_dict_difference)
        if not self.is_lazy:
            check("meta", lambda pair: self._meta(sample, pair))
        check("casts", _casts)
        check("pickle", _pickled)
        if sample.forward_input is None:
            return
        check("values and gradients", lambda pair: self.results(pair.same_state(), text))
        check("non-contiguous", lambda pair: self.results(pair.same_state(), text, gaps=True))
        if not self.is_lazy:
            check("copies", lambda pair: self._copies(pair.same_state(), text))
        check("forward hooks", lambda pair: self._hooks(pair.same_state(), text, events.forward))
        check("backward hooks", lambda pair: self._hooks(pair.same_state(), text, events.backward))
        check("state hooks", lambda pair: self._hooks(pair.same_state(), text, events.state))

    def _difference(self, ours: Any, theirs: Any, text: str, factor: float = 1.0) -> str:
        factor *= tolerance_factor(self.info.name)
        return difference(ours, theirs, values=not is_random(self.info.name, text), tolerance_factor=factor)

    def results(self, pair: Pair, text: str, gaps: bool = False) -> str | None:
        """Compares the result, the buffers, and the gradients of inputs and parameters."""
        if gaps:
            pair.given = FunctionInput(*noncontiguous(pair.given.args), **noncontiguous(pair.given.kwargs))
            pair.convert = SampleConverter()
            pair.args, pair.kwargs = pair.convert(pair.given.args), pair.convert(pair.given.kwargs)
        torch.manual_seed(0)
        theirs, refused = outcome(lambda: pair.theirs(*pair.given.args, **pair.given.kwargs))
        if refused is not None:
            return None
        if self.is_lazy:
            outcome(lambda: pair.ours(*pair.args, **pair.kwargs))
            pair.same_state()
            for mine, other in zip(pair.ours.buffers(), pair.theirs.buffers()):
                other.zero_(), mine.zero_()
            theirs = pair.theirs(*pair.given.args, **pair.given.kwargs)
        ours = pair.ours(*pair.args, **pair.kwargs)
        if found := self._difference(list(plain(ours)), list(plain(theirs)), text):
            return found
        if found := self._difference(list(pair.ours.buffers()), list(pair.theirs.buffers()), text):
            return f"buffers: {found}"
        return self._gradients(pair, ours, theirs, text, gaps)

    def _gradients(self, pair: Pair, ours: Any, theirs: Any, text: str, gaps: bool) -> str:
        outs = [(m, t) for m, t in zip(plain(ours), plain(theirs)) if isinstance(t, torch.Tensor) and t.requires_grad]
        wrong = [m for m, t in zip(plain(ours), plain(theirs)) if isinstance(t, torch.Tensor) and m.requires_grad != t.requires_grad]
        if wrong:
            return f"requires_grad is {wrong[0].requires_grad}"
        if not outs:
            return ""
        inputs = [(m, t) for t, m in pair.convert.pairs.values() if t.requires_grad and t.is_leaf]
        inputs += list(zip(pair.ours.parameters(), pair.theirs.parameters()))
        torch.manual_seed(1)
        weights = [torch.randn_like(t) for _, t in outs]
        weights = noncontiguous(weights) if gaps else weights
        _, refused = outcome(lambda: torch.autograd.backward([t for _, t in outs], weights))
        if refused is not None:
            return ""
        teletensor.autograd.backward([m for m, _ in outs], [SampleConverter()(w) for w in weights])
        for i, (mine, other) in enumerate(inputs):
            if (mine.grad is None) != (other.grad is None):
                absent = mine if mine.grad is None else other
                present = other if mine.grad is None else mine
                if float(abs(present.grad).max()) != 0 or present is other:
                    return f"gradient {i} is {'None' if absent is mine else 'a tensor'}, PyTorch's is not"
            elif other.grad is not None and (found := self._difference(mine.grad, other.grad, text, 10)):
                return f"gradient {i}: {found}"
        return ""

    def _copies(self, pair: Pair, text: str) -> str | None:
        """Checks that a deep copy is independent and computes the same."""
        theirs, refused = outcome(lambda: pair.theirs(*pair.given.args, **pair.given.kwargs))
        if refused is not None:
            return None
        before = copy.deepcopy(pair.theirs), copy.deepcopy(pair.ours)
        theirs, ours = before[0](*pair.given.args, **pair.given.kwargs), before[1](*pair.args, **pair.kwargs)
        if found := self._difference(list(plain(ours)), list(plain(theirs)), text):
            return f"copy: {found}"
        shared = {id(p) for p in pair.ours.parameters()} & {id(p) for p in before[1].parameters()}
        if shared:
            return "a deep copy shares parameters"
        if type(before[1]) is not type(pair.ours) or repr(before[1]) != repr(pair.ours):
            return "a deep copy is of another type or text"
        return ""

    def _hooks(self, pair: Pair, text: str, record) -> str | None:
        """Compares the arguments of hooks, and the effect of the values that they return."""
        if self.is_lazy:
            _, refused = outcome(lambda: pair.theirs(*pair.given.args, **pair.given.kwargs))
            pair.ours(*pair.args, **pair.kwargs)
            pair.same_state()
        theirs, refused = outcome(lambda: record(torch, pair.theirs, pair.given.args, pair.given.kwargs))
        if refused is not None:
            return None
        ours = record(teletensor, pair.ours, pair.args, pair.kwargs)
        names, others = [name for name, _ in ours], [name for name, _ in theirs]
        if names != others:
            return f"hooks {names}, PyTorch calls {others}"
        for (name, mine), (_, other) in zip(ours, theirs):
            if found := self._difference(list(plain(mine)), list(plain(other)), text, 10):
                return f"hook {name}: {found}"
        return ""

    def _meta(self, sample, pair: Pair) -> str | None:
        """Checks construction on device "meta", and allocation by to_empty."""
        if not _accepts(self.info.module_cls, "device"):
            return None
        args, kwargs = pair.made
        module = our_class(self.info.module_cls)(*args, **{**kwargs, "device": "meta"})
        made = sample.constructor_input
        other = self.info.module_cls(*made.args, **{**made.kwargs, "device": "meta"})
        devices = {n: v.device.type for n, v in module.state_dict().items()}
        if devices != (others := {n: v.device.type for n, v in other.state_dict().items()}):
            return f"devices {devices}, PyTorch has {others}"
        if module.to_empty(device="cpu") is not module:
            return "to_empty does not return the module"
        return _state_difference(module.state_dict(), pair.theirs.state_dict(), False)

    def _errors(self, dtype: torch.dtype, training: bool) -> None:
        make = self.info.module_error_inputs_func
        if make is None:
            return
        torch.manual_seed(0)
        for row in make(self.info, device="cpu", dtype=dtype, requires_grad=False, training=training):
            sample = row.module_error_input
            text = describe(sample, training)
            self.tally.compare("errors", dtype_name(dtype), text, lambda row=row, sample=sample: self._error(row, sample))

    def _error(self, row, sample) -> str:
        convert, made = SampleConverter(), sample.constructor_input
        _, raised = outcome(lambda: our_class(self.info.module_cls)(*convert(made.args), **convert(made.kwargs)))
        if row.error_on is ModuleErrorEnum.FORWARD_ERROR:
            if raised is not None:
                return f"constructor: {type(raised).__name__}: {raised}"
            pair = Pair(self.info, sample, True)
            _, raised = outcome(lambda: read(pair.ours(*pair.args, **pair.kwargs)))
        return error_difference(raised, row.error_type, row.error_regex)


def read(value: Any) -> Any:
    """Waits for a result, since some errors are raised then."""
    for leaf in plain(value):
        if isinstance(leaf, teletensor.Tensor):
            leaf.detach().reshape(-1)[:1].tolist()
    return value


def error_difference(raised: Exception | None, kind: type, pattern: str) -> str:
    """How an exception differs from the expected type and message."""
    if raised is None:
        return f"no error, PyTorch raises {kind.__name__}: {pattern}"
    if not isinstance(raised, kind) or not re.search(pattern, str(raised)):
        return f"{type(raised).__name__}: {raised}; PyTorch raises {kind.__name__}: {pattern}"
    return ""


def plain(value: Any) -> Iterator[Any]:
    """The leaves of a result."""
    return leaves(tuple(value) if hasattr(value, "_fields") else value)


def _accepts(kind: type, name: str) -> bool:
    import inspect

    return name in inspect.signature(kind).parameters or issubclass(kind, torch.nn.RNNBase)


def _different_text(ours: str, theirs: str) -> str:
    return "" if ours == theirs.replace("torch.", "torch.") else f"{ours!r}, PyTorch has {theirs!r}"


def _attributes(pair: Pair) -> str:
    """Compares the public attributes that are neither parameters, buffers nor modules."""
    wrong = []
    for name, value in vars(pair.theirs).items():
        if _PRIVATE.match(name):
            continue
        if not hasattr(pair.ours, name):
            wrong.append(f"no attribute {name}")
            continue
        mine = getattr(pair.ours, name)
        if callable(value):
            if getattr(mine, "__name__", type(mine).__name__) != getattr(value, "__name__", type(value).__name__):
                wrong.append(f"{name} is {mine!r}, PyTorch has {value!r}")
        elif isinstance(value, torch.Tensor):
            if found := difference(mine, value):
                wrong.append(f"{name}: {found}")
        elif str(mine) != str(value) or type(mine).__name__ != type(value).__name__:
            if not (isinstance(value, (bool, type(None), list, tuple, str)) is False and mine == value):
                wrong.append(f"{name} is {mine!r}, PyTorch has {value!r}")
    return "; ".join(wrong)


def _state_difference(ours: dict, theirs: dict, values: bool) -> str:
    if list(ours) != list(theirs):
        return f"state dict has the keys {list(ours)}, PyTorch's {list(theirs)}"
    mine = {k: v for k, v in ours.items() if not _is_lazy(v)}
    others = {k: v for k, v in theirs.items() if not _is_lazy(v)}
    if list(mine) != list(others):
        return "other values are uninitialised"
    return difference(mine, others, values=values)


def _is_lazy(value: Any) -> bool:
    return isinstance(value, (torch.nn.parameter.UninitializedTensorMixin, teletensor.nn.parameter.UninitializedTensorMixin))


def state_dict_difference(pair: Pair) -> str:
    """Checks keys, order, sizes, dtypes and versions, and loads each state into the other module."""
    ours, theirs = pair.ours.state_dict(), pair.theirs.state_dict()
    if found := _state_difference(ours, theirs, False):
        return found
    if dict(ours._metadata) != dict(theirs._metadata):
        return f"metadata {dict(ours._metadata)}, PyTorch's {dict(theirs._metadata)}"
    if any(map(_is_lazy, theirs.values())):
        return ""
    for mine, other in ((p, q) for (_, p), (_, q) in zip(pair.ours.named_parameters(), pair.theirs.named_parameters())):
        if mine.requires_grad != other.requires_grad:
            return "requires_grad of a parameter differs"
    if repr(pair.ours.load_state_dict(SampleConverter()(dict(theirs)))) != "<All keys matched successfully>":
        return "keys do not match"
    if found := _state_difference(pair.ours.state_dict(), theirs, True):
        return f"PyTorch's state in our module: {found}"
    other = {k: v + 1 if v.is_floating_point() else v for k, v in pair.ours.state_dict().items()}
    pair.theirs.load_state_dict({k: back(v) for k, v in other.items()})
    return _state_difference(other, pair.theirs.state_dict(), True)


def _pickled(pair: Pair) -> str:
    """Checks that a module survives pickling."""
    again = pickle.loads(pickle.dumps(pair.ours))
    return _state_difference(again.state_dict(), pair.theirs.state_dict(), False) or _different_text(repr(again), repr(pair.theirs))


def _casts(pair: Pair) -> str:
    """Checks the dtypes after casts, and that casts keep the parameters' identity."""
    for name in _CASTS:
        before = [id(p) for p in pair.ours.parameters()]
        _, refused = outcome(getattr(pair.theirs, name))
        if refused is not None:
            continue
        getattr(pair.ours, name)()
        if found := _state_difference(pair.ours.state_dict(), pair.theirs.state_dict(), False):
            return f"{name}: {found}"
        if before != [id(p) for p in pair.ours.parameters()]:
            return f"{name} replaces parameters"
    for args in ((torch.float16,), ("cpu", torch.float64), (torch.zeros(1, dtype=torch.bfloat16),)):
        pair.theirs.to(*args)
        pair.ours.to(*SampleConverter()(args))
        if found := _state_difference(pair.ours.state_dict(), pair.theirs.state_dict(), False):
            return f"to{args}: {found}"
    return ""
