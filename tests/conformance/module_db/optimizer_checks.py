"""The comparisons of one optimizer of optim_db."""

from __future__ import annotations

import copy
import importlib
import warnings
from typing import Any, Callable

import numpy as np
import torch
from torch.testing._internal.common_optimizers import OptimizerErrorEnum

import teletensor

from ..op_db.convert import back, difference, dtype_name
from .counts import Tally, outcome
from .differences import tolerance_factor
from .module_checks import error_difference
from .samples import SampleConverter, short

STEPS = 6
FLAGS = ({}, {"foreach": True}, {"fused": True}, {"capturable": True}, {"differentiable": True})


def our_class(theirs: type) -> type:
    """Our optimizer of the same name."""
    return getattr(teletensor.optim, theirs.__name__)


def state_difference(ours: dict, theirs: dict, factor: float = 1.0) -> str:
    """How two state dicts differ: keys, groups, and values of every parameter's state."""
    groups, others = ours["param_groups"], theirs["param_groups"]
    for mine, other in zip(groups, others, strict=True):
        if set(mine) != set(other):
            return f"group has the keys {sorted(mine)}, PyTorch's {sorted(other)}"
        if found := difference({k: mine[k] for k in sorted(mine)}, {k: other[k] for k in sorted(other)}):
            return f"group {found}"
    if list(ours["state"]) != list(theirs["state"]):
        return f"state of {list(ours['state'])}, PyTorch has {list(theirs['state'])}"
    for key, other in theirs["state"].items():
        mine = ours["state"][key]
        if not isinstance(other, dict):
            continue
        if set(mine) != set(other):
            return f"state has the keys {sorted(mine)}, PyTorch's {sorted(other)}"
        for name in sorted(other):
            if name in ("eta", "mu", "mu_product"):  # PyTorch changes their dtype when it loads them
                found = "" if np.allclose(float(mine[name]), float(other[name]), 1e-6) else "differs"
            elif name in ("ro", "H_diag", "t", "al"):  # of LBFGS: numbers or tensors of one number
                found = "" if len(numbers(mine[name])) == len(numbers(other[name])) else "has another length"
            else:
                found = difference(as_is(mine[name]), as_is(other[name]), tolerance_factor=factor)
            if found:
                return f"state {name} {found}"
    return ""


def as_is(value: Any) -> Any:
    """The value; numbers as floats."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def numbers(value: Any) -> list[float]:
    """The numbers of a number, a tensor of one number, or a list of them."""
    return [float(v) for v in (value if isinstance(value, list) else [value]) if v is not None]


def converted(state: Any) -> Any:
    """Our state dict with PyTorch's tensors."""
    if isinstance(state, dict):
        return {k: converted(v) for k, v in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(map(converted, state))
    return back(state)


class Pair:
    """The same parameters and optimizer in both packages."""

    def __init__(self, info, kwargs: dict, dtype: torch.dtype, group: Callable[[list], Any] = list, gaps: bool = False):
        torch.manual_seed(0)
        shapes = ((3, 4), (4, 2)) if info.name == "Muon" else ((3, 4), (5,), ())
        self.theirs = [torch.nn.Parameter(torch.randn(s, dtype=dtype) if not gaps else self._spread(s, dtype)) for s in shapes]
        self.ours = [teletensor.nn.Parameter(SampleConverter()(p.detach())) for p in self.theirs]
        self.dtype, self.info = dtype, info
        recorded = kwargs.get("differentiable")
        if recorded:  # a step in place requires parameters that are not leaves
            self.theirs, self.ours = [p.clone() for p in self.theirs], [p.clone() for p in self.ours]
        self.opt = info.optim_cls(group(self.theirs), **copy.deepcopy(kwargs))
        self.our_opt = our_class(info.optim_cls)(group(self.ours), **SampleConverter()(kwargs))

    @staticmethod
    def _spread(shape: tuple, dtype: torch.dtype) -> torch.Tensor:
        return torch.randn((*reversed(shape), 2), dtype=dtype)[..., 0].permute(list(reversed(range(len(shape)))))

    def grads(self, step: int) -> None:
        """Sets gradients; the last parameter has none in the first step."""
        torch.manual_seed(step + 1)
        for i, (t, m) in enumerate(zip(self.theirs, self.ours)):
            grad = torch.randn(t.shape, dtype=self.dtype)
            if step == 0 and i == len(self.theirs) - 1:
                continue
            t.grad, m.grad = grad, SampleConverter()(grad)

    def step(self, step: int) -> tuple[Exception | None, Exception | None]:
        """One step in both packages; the exceptions."""
        if self.info.step_requires_closure:
            return outcome(lambda: self.opt.step(self.closure(torch, self.theirs)))[1], outcome(
                lambda: self.our_opt.step(self.closure(teletensor, self.ours))
            )[1]
        self.grads(step)
        return outcome(self.opt.step)[1], outcome(self.our_opt.step)[1]

    def closure(self, torch, params: list) -> Callable[[], Any]:
        """A function that computes a loss and gradients."""
        maximize = self.opt.param_groups[0].get("maximize")

        def evaluate():
            for p in params:
                p.grad = None
            loss = sum(((p.abs() - 0.3) ** 2 + 0.1 * p.abs() ** 4).sum() for p in params)
            loss = -loss if maximize else loss
            loss.backward()
            return loss

        return evaluate

    def compare(self, factor: float) -> str:
        """Compares the parameters and the state."""
        if found := difference(self.ours, self.theirs, tolerance_factor=factor):
            return f"parameters: {found}"
        if self.info.name == "LBFGS" and self.dtype is not torch.float64:  # rounding decides when iterations end
            return ""
        return state_difference(self.our_opt.state_dict(), self.opt.state_dict(), factor)


class OptimizerChecks:
    """All comparisons of one optimizer."""

    def __init__(self, info):
        self.info, self.tally, self.inputs = info, Tally(f"optim.{info.name}"), 0
        self.factor = 3.0 * tolerance_factor(self.tally.name)

    def run(self) -> Tally:
        """Runs all comparisons."""
        our_class(self.info.optim_cls)
        dtypes = [torch.float32, torch.float64] + [torch.complex64] * self.info.supports_complex
        for dtype in dtypes:
            for sample in self.info.optim_inputs_func(device="cpu", dtype=dtype):
                self.inputs += 1
                self._run_sample(sample.kwargs, dtype)
        for check in (self._groups, self._named, self._hooks, self._copies, self._reprs, self._defaults):
            self.tally.compare(check.__name__[1:], "float32", "", check)
        for i, make in enumerate(m for makers in self.info.scheduler_inputs for m in makers):
            self.tally.compare("schedulers", "float32", f"scheduler {i}", lambda make=make: self._scheduled(make))
        self._errors()
        return self.tally

    def _run_sample(self, kwargs: dict, dtype: torch.dtype) -> None:
        accepted = self.info.optim_cls.__init__.__code__.co_varnames
        for flags in FLAGS:
            if not all(name in accepted for name in flags):
                continue
            given = {**kwargs, **flags}
            text, name = short(given), dtype_name(dtype)
            self.tally.compare("steps", name, text, lambda given=given: self._steps(given, dtype))
        text = short(kwargs)
        self.tally.compare("non-contiguous", name, text, lambda: self._steps(kwargs, dtype, gaps=True))
        self.tally.compare("state dict", name, text, lambda: self._state(kwargs, dtype))

    def _steps(self, kwargs: dict, dtype: torch.dtype, gaps: bool = False, group: Callable[[list], Any] = list) -> str:
        refused, refusal = outcome(lambda: Pair(self.info, kwargs, dtype, group, gaps))
        if refusal is not None:
            refused = outcome(lambda: self.info.optim_cls([torch.zeros(2, 2)], **kwargs))[1]
            return error_difference(refusal, type(refused), "") if refused is not None else f"{type(refusal).__name__}: {refusal}"
        pair = refused
        for step in range(STEPS):
            theirs, ours = pair.step(step)
            if theirs is not None:
                return error_difference(ours, type(theirs), "")
            if ours is not None:
                return f"{type(ours).__name__}: {ours}"
            if found := pair.compare(self.factor):
                return f"step {step}: {found}"
        return ""

    def _state(self, kwargs: dict, dtype: torch.dtype) -> str:
        """Trains, exchanges the states of both packages, and continues."""
        pair = Pair(self.info, kwargs, dtype)
        for step in range(3):
            pair.step(step)
        ours, theirs = converted(pair.our_opt.state_dict()), SampleConverter()(pair.opt.state_dict())
        for optimizer, state in ((pair.opt, ours), (pair.our_opt, theirs)):
            fresh = type(optimizer)(optimizer.param_groups[0]["params"])
            fresh.load_state_dict(state)
            if optimizer is pair.opt:
                pair.opt = fresh
            else:
                pair.our_opt = fresh
        if found := pair.compare(self.factor):
            return f"loaded: {found}"
        for step in range(3, 5):
            pair.step(step)
            if found := pair.compare(self.factor):
                return f"continued: {found}"
        return ""

    def _groups(self) -> str | None:
        """Groups with their own options, and a group added later."""
        if not self.info.supports_param_groups or self.info.name == "Muon":
            return None
        pair = Pair(self.info, {"lr": 0.02}, torch.float32, lambda p: [{"params": p[:1], "lr": 0.05}, {"params": p[1]}])
        pair.step(0)
        pair.opt.add_param_group({"params": pair.theirs[2:], "lr": 0.1})
        pair.our_opt.add_param_group({"params": pair.ours[2:], "lr": 0.1})
        for step in range(1, 4):
            theirs, ours = pair.step(step)
            if type(theirs) is not type(ours):
                return f"{ours!r}, PyTorch raises {theirs!r}"
            if found := pair.compare(self.factor):
                return found
        return ""

    def _named(self) -> str:
        """Parameters with names."""
        pair = Pair(self.info, {}, torch.float32, lambda p: [(f"p{i}", q) for i, q in enumerate(p)])
        pair.step(0)
        pair.step(1)
        return pair.compare(self.factor)

    def _hooks(self) -> str:
        """The order and the arguments of all hooks."""
        pair = Pair(self.info, {}, torch.float32)
        seen: list[list[str]] = [[], []]
        anywhere = (importlib.import_module("torch.optim.optimizer"), teletensor.optim.optimizer)
        handles = []
        for notes, opt, module in zip(seen, (pair.opt, pair.our_opt), anywhere):
            def note(name, notes=notes, opt=opt):
                def hook(optimizer, *rest):
                    notes.append(f"{name} {optimizer is opt} {[type(r).__name__ for r in rest]} {len(rest[0]) if rest else ''}")
                return hook  # fmt: skip

            handles.append(module.register_optimizer_step_pre_hook(note("global pre")))
            handles.append(module.register_optimizer_step_post_hook(note("global post")))
            for what in ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_state_dict_pre", "load_state_dict_post"):
                getattr(opt, f"register_{what}_hook")(note(what))
                if not what.startswith("step"):
                    getattr(opt, f"register_{what}_hook")(note(f"{what} first"), prepend=True)
        pair.step(0)
        for opt in (pair.opt, pair.our_opt):
            opt.load_state_dict(opt.state_dict())
        for handle in handles:
            handle.remove()
        return "" if seen[0] == seen[1] else f"{seen[1]}, PyTorch calls {seen[0]}"

    def _copies(self) -> str:
        """A deep copy has its own state and the same options."""
        pair = Pair(self.info, {}, torch.float32)
        pair.step(0), pair.step(1)
        theirs, ours = copy.deepcopy(pair.opt), copy.deepcopy(pair.our_opt)
        if self.info.name != "LBFGS" and (found := state_difference(ours.state_dict(), theirs.state_dict(), self.factor)):
            return found
        shared = ours.param_groups[0]["params"][0] is pair.ours[0]
        return "a deep copy has the same parameters" if shared else ""

    def _reprs(self) -> str:
        pair = Pair(self.info, {}, torch.float32)
        return "" if repr(pair.our_opt) == repr(pair.opt) else f"{pair.our_opt!r}, PyTorch has {pair.opt!r}"

    def _defaults(self) -> str:
        pair = Pair(self.info, {}, torch.float32)
        ours, theirs = pair.our_opt.defaults, pair.opt.defaults
        if set(ours) != set(theirs):
            return f"defaults {sorted(ours)}, PyTorch has {sorted(theirs)}"
        return difference({k: ours[k] for k in sorted(ours)}, {k: theirs[k] for k in sorted(theirs)})

    def _scheduled(self, make: Callable) -> str:
        """The rates of a scheduler over 12 epochs."""
        pair = Pair(self.info, {"lr": 0.1}, torch.float32)
        theirs, scope = make(pair.opt), {**make.__globals__}
        scope |= {n: getattr(teletensor.optim.lr_scheduler, n) for n in torch.optim.lr_scheduler.__all__}
        ours = type(make)(make.__code__, scope)(pair.our_opt)
        for epoch in range(12):
            pair.step(epoch)
            args = (0.3 - 0.01 * (epoch % 3),) if "Plateau" in type(theirs).__name__ else ()
            theirs.step(*args), ours.step(*args)
            if found := difference(ours.get_last_lr(), theirs.get_last_lr()) or pair.compare(self.factor):
                return f"epoch {epoch}: {found}"
        return ""

    def _errors(self) -> None:
        for row in self.info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
            given = row.optimizer_error_input
            self.tally.compare("errors", "float32", given.desc, lambda row=row, given=given: self._error(row, given))

    def _error(self, row, given) -> str:
        convert = SampleConverter()
        params = given.params if given.params is not None else [torch.nn.Parameter(torch.randn(1, 1))]
        if isinstance(params, set):
            mine: Any = {convert(p) for p in params}
        elif isinstance(params, torch.Tensor):
            mine = convert(params)
        else:
            mine = convert(params)
        for p in params if isinstance(params, list) else ():
            if isinstance(p, torch.Tensor) and p.grad is not None:
                convert(p).grad = SampleConverter()(p.grad)
        make = lambda: our_class(self.info.optim_cls)(mine, **convert(given.kwargs))  # noqa: E731
        if issubclass(row.error_type, Warning):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                _, raised = outcome(make)
            raised = raised or next((w.message for w in found if issubclass(w.category, row.error_type)), None)
            return error_difference(raised, row.error_type, row.error_regex)
        made, raised = outcome(make)
        if row.error_on is OptimizerErrorEnum.STEP_ERROR:
            if raised is not None:
                return f"constructor: {type(raised).__name__}: {raised}"
            _, raised = outcome(made.step)
        return error_difference(raised, row.error_type, row.error_regex)
