"""Training steps in graphs: backward(), writes and reads of `.grad`, and the steps of optimizers whose Programs can contain them.

Backends say with an attribute `contains_steps` that their graphs may contain these calls; otherwise they end the graph.
"""

from __future__ import annotations

import threading
import types
from collections.abc import Callable, Iterable
from typing import Any

from .. import _C, _gradients
from .._tracing_state import _is_tracing
from ..autograd import gradients
from ..autograd.function import Function, FunctionCtx
from ..nn import ModuleList
from ..optim._hooks import has_step_hooks
from ..optim._traced import why_not
from ..optim.optimizer import Optimizer
from ..utils.checkpoint import checkpoint
from ._source import CHECK_IS
from ._values import (
    Break,
    Constant,
    DictValue,
    ModuleSlice,
    NeedsPlainRun,
    ObjectValue,
    SequenceValue,
    SliceValue,
    TensorValue,
    Value,
)

_MODULE_LIST_ITEM = ModuleList.__getitem__
_APPLY = vars(Function)["apply"].__func__
_CONTEXT_METHODS = (FunctionCtx.mark_non_differentiable, FunctionCtx.mark_dirty, FunctionCtx.saved_tensors.fget)
_OPTIONS = (
    "use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop", "respect_saved_tensors_hooks",
)  # fmt: skip


def step_of(optimizer: Optimizer) -> Callable:
    """A function without arguments that calls an optimizer's step()."""

    def optimizer_step() -> None:
        optimizer.step()

    optimizer_step.__module__ = "optimizer"
    optimizer_step.optimizer = optimizer
    return optimizer_step


_regions = threading.local()


def enter_region() -> None:
    """Begins a region of which the backward pass of the Program that is traced computes the values again."""
    region = _C.TraceRegion()
    region.__enter__()
    _regions.entered = [*getattr(_regions, "entered", ()), region]


def leave_region() -> None:
    """Ends the region that was begun last."""
    _regions.entered.pop().__exit__(None, None, None)


class NeedsNoRegions(Exception):  # noqa: N818 - begins the capture again
    """The graph has regions of torch.utils.checkpoint, but no backward pass, which would compute their values again."""


class Steps:
    """A part of Executor.

    Attributes:
        may_contain_steps: whether the backend accepts such graphs.
        has_steps: whether the graph contains the step of an optimizer.
    """

    may_contain_steps = False
    has_steps = False
    may_have_regions = False
    _has_backward = _has_regions = False
    _with_grad: list[TensorValue]
    _stepped: list[ObjectValue]

    def begin_steps(self, may_contain_steps: bool, may_have_regions: bool) -> None:
        """Sets whether the backend accepts training steps, and regions of torch.utils.checkpoint in them."""
        self.may_contain_steps, self.may_have_regions = may_contain_steps, may_contain_steps and may_have_regions
        self._with_grad, self._stepped = [], []

    def backward(self, value: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Tensor.backward()."""
        if self._are_computed(v for k, v in kwargs.items() if k == "inputs"):
            raise NeedsPlainRun("backward() to a tensor that the function has computed")
        if not self.may_contain_steps:
            raise Break("Tensor.backward()")
        options = {k: self.real(v) for k, v in kwargs.items() if k != "gradient"}
        if len(args) > 1 or any(not isinstance(v, Constant) or v.value not in (None, False) for v in options.values()):
            raise Break("backward() with options")
        if value.source is not None or not value.example.requires_grad:
            raise Break("backward() of an argument, or of a tensor that does not require grad")
        self._check_histories()
        result = self.call_in_graph("call_method", "backward", [value, *args], {k: v for k, v in kwargs.items() if k == "gradient"})
        self._has_backward = self.mutates = True
        for tensor in self._with_grad:
            if tensor.example.grad is None:  # the pass has not reached it
                tensor.attributes["grad"] = Constant(None)
            else:
                tensor.attributes.pop("grad", None)
        return result

    def _check_histories(self) -> None:
        if any(getattr(v, "is_leaf", True) is False and v.example.requires_grad for v in self.inputs):
            raise Break("a backward pass to a tensor with a history")

    def _are_computed(self, values: Iterable[Value]) -> bool:
        """Whether the function has computed one of the tensors."""
        return any(tensor.source is None for tensor in self.tensors_in(list(values)))

    def autograd_grad(self, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """torch.autograd.grad()."""
        try:
            return self._autograd_grad(args, kwargs)
        except Break:
            if self._are_computed([*args[1:2], *(v for k, v in kwargs.items() if k == "inputs")]):
                raise NeedsPlainRun("autograd.grad() of a tensor that the function has computed") from None
            raise

    def _autograd_grad(self, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if not self.may_contain_steps:
            raise Break("autograd.grad()")
        options = {k: self.real(v) for k, v in kwargs.items() if k not in ("outputs", "inputs", "grad_outputs")}
        is_plain = all(isinstance(v, Constant) and v.value in (None, False, True) for v in options.values())
        refused = [k for k in ("create_graph", "retain_graph", "is_grads_batched") if k in options and options[k].value]
        if len(args) > 3 or not is_plain or refused:
            raise Break("autograd.grad() with options")
        roots = self.tensors_in([*args[:1], *(v for k, v in kwargs.items() if k == "outputs")])
        if any(root.source is not None for root in roots):
            raise Break("autograd.grad() of an argument")
        result = self.call_in_graph("call_function", gradients.grad, args, kwargs)
        self._check_histories()
        self._has_backward = self.mutates = True
        return result

    def checkpoint(self, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """torch.utils.checkpoint.checkpoint()."""
        given = {k: self.real(v) for k, v in kwargs.items() if k in _OPTIONS}
        if not args or any(not isinstance(v, Constant) for v in given.values()):
            raise Break("torch.utils.checkpoint with options")
        if any(given[k].value is not None for k in ("context_fn", "respect_saved_tensors_hooks") if k in given):
            raise Break("torch.utils.checkpoint with options")
        if not self.may_have_regions:
            rest = {k: v for k, v in kwargs.items() if k not in _OPTIONS}
            return self.checkpoint_body(args[0], args[1:], rest, {k: v.value for k, v in given.items()})
        self._has_regions = True
        self.graph.call_function(enter_region, ())
        result = self.call(args[0], args[1:], {k: v for k, v in kwargs.items() if k not in _OPTIONS})
        self.graph.call_function(leave_region, ())
        return result

    def check_regions(self) -> None:
        """Raises NeedsNoRegions if there are regions without a backward pass."""
        if self._has_regions and not self._has_backward:
            raise NeedsNoRegions

    def grad_of(self, value: TensorValue) -> Value | None:
        """`.grad` of a tensor, if the graph has changed it or may have; None: it is that of the existing tensor."""
        if not self._has_backward or value.source is None or not value.is_leaf or value.example.grad is None:
            return None
        found = self.call_in_graph("call_function", getattr, [value, Constant("grad")])
        found.may_exist = True
        self._set_known_grad(value, found)
        return found

    def _set_known_grad(self, value: TensorValue, grad: Value) -> None:
        value.attributes["grad"] = grad
        if value not in self._with_grad:
            self._with_grad.append(value)

    def check_no_gradient(self, value: TensorValue) -> None:
        """Raises NeedsPlainRun for `leaf.grad.data = new`: the object that a run returns is not the one that `leaf.grad` returns."""
        if any(leaf.attributes.get("grad") is value for leaf in self._with_grad):
            raise NeedsPlainRun("`.data` of a gradient is written")

    def set_grad(self, value: TensorValue, new: Value) -> None:
        """value.grad = new"""
        new = self.real(new)
        is_none = isinstance(new, Constant) and new.value is None
        if not self.may_contain_steps or value.source is None or not value.is_leaf or not (is_none or isinstance(new, TensorValue)):
            raise Break("Tensor.grad is written")
        self.graph.call_function(setattr, (self.node_of(value), "grad", None if is_none else self.node_of(new)))
        value.example.grad = None if is_none else new.example
        self.calls += 1
        self.mutates = True
        self._set_known_grad(value, new)

    def clear_grads(self, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """_gradients.clear(), which zero_grad() calls; None if it is executed as other functions."""
        to_none = args[1] if len(args) > 1 else kwargs.get("set_to_none", Constant(True))
        if not self.may_contain_steps or not self.truth(to_none):
            return None
        for leaf in self.elements(args[0]):
            leaf = self.real(leaf)
            if not isinstance(leaf, TensorValue):
                raise Break("zero_grad() of something else than tensors")
            self.set_grad(leaf, Constant(None))
        return Constant(None)

    def slice_of_modules(self, args: list[Value]) -> Value | None:
        """ModuleList[a:b], which makes another ModuleList; None for other indices."""
        of, index = self.real(args[0]), self.real(args[1])
        is_slice = isinstance(index, SliceValue) or isinstance(index, Constant) and isinstance(index.value, slice)
        if not is_slice or not isinstance(of, ObjectValue) or of.cls is not ModuleList:
            return None
        modules = self.real(self.get_attribute(of, "_modules"))
        if not isinstance(modules, DictValue):
            return None
        items = self.get_item(SequenceValue([v for _, v in modules.items.values()], tuple), index)
        return ModuleSlice(items.items, ModuleList)

    def special_function(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """The result of a function of this module; None if it is another one, or if it is executed as other functions."""
        if function is _MODULE_LIST_ITEM and isinstance(found := self.slice_of_modules(args), ModuleSlice):
            return found
        if function is _is_tracing:  # no trace of torch.jit runs here
            return Constant(False)
        if function in _CONTEXT_METHODS:
            return self.context_method(function, args)
        if function is _gradients.clear:
            return self.clear_grads(args, kwargs)
        if function is gradients.grad:
            return self.autograd_grad(args, kwargs)
        if function is checkpoint:
            return self.checkpoint(args, kwargs)
        if function is _APPLY:
            return self.apply_function(args, kwargs)
        if isinstance(function, types.FunctionType) and getattr(function, "hooked", False) and args:
            return self.optimizer_step(args, kwargs)
        return None

    def optimizer_step(self, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """The step of an optimizer; None if it is executed as other functions."""
        value = self.real(args[0])
        optimizer = value.original if isinstance(value, ObjectValue) else None
        if not isinstance(optimizer, Optimizer) or not self.may_contain_steps:
            return None
        given = [self.real(v) for v in [*args[1:], *kwargs.values()]]
        if any(not isinstance(v, Constant) or v.value is not None for v in given):
            raise Break("the step of an optimizer with a closure")
        reason = why_not(optimizer, (), {})
        has_tensors = any(isinstance(group["lr"], _C.Tensor) for group in optimizer.param_groups)
        if reason is None and has_step_hooks(optimizer):
            reason = "runs call no hooks"
        if reason is not None or value.attributes or value.source is None or has_tensors:
            raise Break(f"the step of an optimizer: {reason or 'it was changed, or its learning rate is a tensor'}")
        self._check_unwritten(optimizer)
        self.guards.check(CHECK_IS, value.source, optimizer)
        for group in self.elements(self.get_attribute(value, "param_groups")):
            for parameter in self.elements(self.get_item(group, Constant("params"))):
                parameter = self.real(parameter)
                if not isinstance(parameter, TensorValue) or parameter.source is None:
                    raise Break("the step of an optimizer whose parameters are results")
                # The Program updates this tensor, and not one like it.
                self.guards.check(CHECK_IS, parameter.source, parameter.original)
                self.node_of(parameter).meta["is_captured"] = True
        self.graph.call_function(step_of(optimizer), ())
        self.calls += 1
        self.mutates = self.has_steps = True
        self._stepped.append(value)
        return Constant(None)

    def _check_unwritten(self, optimizer: Optimizer) -> None:
        """Ends the graph if the function has written what the step reads: writes to objects take place after the graph."""
        read = [optimizer.param_groups, optimizer.state, optimizer.defaults, *optimizer.state.values()]
        for group in optimizer.param_groups:
            read += [group, group["params"]]
        known = {id(obj) for obj in read}
        if any(id(getattr(value, "original", None)) in known for value in self.written.values()):
            raise Break("the step of an optimizer whose groups or state the function has changed")

    def apply_function(self, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Function.apply() where nothing is recorded: executes forward()."""
        cls = self.real(args[0])
        given = [self.real(v) for v in args[1:]]
        needs = [isinstance(v, TensorValue) and v.example.requires_grad for v in given]
        if not isinstance(cls, Constant) or kwargs:
            raise Break("autograd.Function.apply() with keyword arguments")
        if _C.is_grad_enabled() and any(needs):
            return self.apply_recorded(cls.value, given)
        context = ObjectValue(FunctionCtx)
        self.call(self.get_attribute(context, "__init__"), [], {})
        self.set_attribute(context, "needs_input_grad", SequenceValue([Constant(n) for n in needs], tuple))
        was_enabled = _C.is_grad_enabled()
        if was_enabled:
            self.set_mode(_C.set_grad_enabled, [Constant(False)])
        try:
            result = self.call_forward(cls, context, given)
        finally:
            if was_enabled:
                self.set_mode(_C.set_grad_enabled, [Constant(True)])
        return result

    def check_stepped(self, value: ObjectValue, name: str) -> None:
        """Ends the graph where the function reads the state of an optimizer whose step is in the graph."""
        if name == "state" and value in self._stepped:
            raise Break("the state of an optimizer after its step")
