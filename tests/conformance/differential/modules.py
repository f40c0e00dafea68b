"""Steps of modules and optimizers; the base calls are PyTorch's samples (`module_db`, `optim_db`)."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

import teletensor

from ..module_db import optimizer_checks
from ..module_db.differences import tolerance_factor
from ..module_db.module_checks import ModuleChecks, our_class, state_dict_difference
from ..module_db.samples import SampleConverter
from ..op_db.convert import difference
from ..signatures import check
from ..signatures.compare import parse
from .calls import Call, bind, variations
from .operators import short
from .steps import Outcome, Step, outcome, refused_by_both

MODULES = {f"torch.{info.name}": info for info in module_db}
OPTIMIZERS = {f"torch.optim.{info.name}": info for info in optim_db}
STEPS = 4
FLOAT32_STEPS = 100.0  # factor of tolerances: with differentiable=True PyTorch computes 1 - beta**step in float32


class Pair:
    """The same module in both packages, and the arguments of `forward`."""

    def __init__(self, kind: type, made: Call, given: Call, training: bool):
        convert = SampleConverter()
        args, kwargs = convert(made.args), convert(made.kwargs)
        self.theirs, self.refused = outcome(lambda: kind(*made.args, **made.kwargs).train(training))
        self.ours, self.refusal = outcome(lambda: our_class(kind)(*args, **kwargs).train(training))
        self.given, self.convert = given, SampleConverter()
        self.args, self.kwargs = self.convert(given.args), self.convert(given.kwargs)
        for tensor, _ in self.convert.pairs.values():  # samples are used several times
            tensor.grad = None

    def same_state(self) -> Pair:
        """Copies PyTorch's state into our module."""
        self.ours.load_state_dict(SampleConverter()(self.theirs.state_dict()))
        return self


def module_steps(name: str, most: int) -> Iterator[Step]:
    """Calls of a module's constructor, each followed by `forward` and `backward`, and calls of `forward`."""
    info = MODULES[name]
    declared = check.recorded()
    constructors = [parse(text) for text in declared.get(name, ())]
    forwards = [parse(text) for text in declared.get(f"{name}.forward", ())]
    for training in (True, False) if info.train_and_eval_differ else (True,):
        torch.manual_seed(0)
        make = info.module_inputs_func
        samples = list(make(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training))
        for sample in samples[:: max(1, -(-len(samples) // most))]:
            made = Call("", sample.constructor_input.args, sample.constructor_input.kwargs)
            if sample.forward_input is None:
                continue
            given = Call("", sample.forward_input.args, sample.forward_input.kwargs)
            for path, overloads, base in ((name, constructors, made), (f"{name}.forward", forwards, given)):
                for i, overload in enumerate(overloads):
                    bound = bind(overload, base.args, base.kwargs)
                    for call in variations(overload, bound) if bound is not None else ():
                        pair = (call, given) if base is made else (made, call)
                        yield Step(path, call.what, functools.partial(_module, info, *pair, training), f"{path}#{i}")


def _module(info, made: Call, given: Call, training: bool) -> Iterator[Outcome]:
    found = module_difference(info, made, given, training)
    text = f"({short(made)}) ({short(given)}) {'train' if training else 'eval'}"
    yield ("failed", f"{found} <- {text}"[:500]) if found else ("passed", "")


def module_difference(info, made: Call, given: Call, training: bool) -> str:
    """How a module's text, state, results, buffers and gradients differ; empty if they do not."""
    torch.manual_seed(0)
    pair = Pair(info.module_cls, made, given, training)
    if (found := refused_by_both(pair.refusal, pair.refused)) is not None:
        return found
    if repr(pair.ours) != repr(pair.theirs):
        return f"repr {pair.ours!r}, PyTorch has {pair.theirs!r}"
    if any(v.device.type == "meta" for v in pair.theirs.state_dict().values()):
        return _meta_difference(pair)
    if found := state_dict_difference(pair):
        return f"state dict: {found}"
    torch.manual_seed(0)
    pair = Pair(info.module_cls, made, given, training)  # the exchange of states has changed the parameters
    refused = outcome(lambda: pair.theirs(*given.args, **given.kwargs))[1]
    if refused is None:
        return Results(info, _is_random(pair.theirs)).results(pair if info.is_lazy else pair.same_state(), "") or ""
    refusal = outcome(lambda: pair.ours(*pair.args, **pair.kwargs), teletensor.Tensor)[1]
    return refused_by_both(refusal, refused) or ""


def _meta_difference(pair: Pair) -> str:
    """Compares names, sizes, dtypes and devices of the parameters and buffers."""
    def described(value) -> tuple:
        sizes = "uninitialized" if hasattr(value, "materialize") else list(value.shape)
        return sizes, str(value.dtype), value.device.type

    ours, theirs = ({n: described(v) for n, v in m.state_dict().items()} for m in (pair.ours, pair.theirs))
    return "" if ours == theirs else f"state {ours}, PyTorch has {theirs}"


class Results(ModuleChecks):
    """Comparison of results. `random`: only sizes and dtypes can be compared."""

    def __init__(self, info, random: bool):
        super().__init__(info)
        self.random = random

    def _difference(self, ours: Any, theirs: Any, text: str, factor: float = 1.0) -> str:
        return difference(ours, theirs, values=not self.random, tolerance_factor=2 * factor * tolerance_factor(self.info.name))


def _is_random(module: torch.nn.Module) -> bool:
    """Whether `forward` draws random numbers: in training, with a positive probability of dropout."""
    if isinstance(module, torch.nn.FractionalMaxPool2d | torch.nn.FractionalMaxPool3d):
        return module._random_samples is None
    parts = list(module.modules()) if module.training else []
    is_dropping = any(isinstance(m, torch.nn.modules.dropout._DropoutNd) and m.p > 0 or getattr(m, "dropout", 0.0) not in (0, None)
                      and isinstance(m.dropout, float) for m in parts)  # fmt: skip
    return is_dropping or any(isinstance(m, torch.nn.RReLU) for m in parts)


def optimizer_steps(name: str, most: int) -> Iterator[Step]:
    """Calls of an optimizer's constructor, each followed by a few steps."""
    info = OPTIMIZERS[name]
    overloads = [parse(text) for text in check.recorded().get(name, ())]
    samples = [s.kwargs for s in info.optim_inputs_func(device="cpu", dtype=torch.float32)]
    for kwargs in samples[:: max(1, -(-len(samples) // most))]:
        for i, overload in enumerate(overloads):
            bound = bind(overload, (None,), kwargs)  # the parameters are made by each step
            for call in variations(overload, bound) if bound is not None else ():
                given = Call(call.what, call.args[1:], {k: v for k, v in call.kwargs.items() if k != "params"})
                yield Step(name, call.what, functools.partial(_optimizer, info, given), f"{name}#{i}")


class OptimizerPair(optimizer_checks.Pair):
    """An optimizer in both packages; `call`: its arguments after the parameters."""

    def __init__(self, info, call: Call):
        differentiable = call.kwargs.get("differentiable")
        # float64 hides little by rounding; Muon computes in bfloat16
        super().__init__(info, {"differentiable": True} if differentiable else {}, torch.float32 if info.name == "Muon" else torch.float64)
        exact = lambda v: v.double() if isinstance(v, torch.Tensor) else v  # noqa: E731 - the step sizes have lr's dtype
        call = Call(call.what, tuple(map(exact, call.args)), {k: exact(v) for k, v in call.kwargs.items()})
        convert = SampleConverter()
        args, kwargs = convert(call.args), convert(call.kwargs)
        self.opt, self.refused = outcome(lambda: info.optim_cls(self.theirs, *call.args, **call.kwargs))
        self.our_opt, self.refusal = outcome(lambda: optimizer_checks.our_class(info.optim_cls)(self.ours, *args, **kwargs))


def _optimizer(info, call: Call) -> Iterator[Outcome]:
    found = optimizer_difference(info, call)
    yield ("failed", f"{found} <- {short(call)}"[:500]) if found else ("passed", "")


def optimizer_difference(info, call: Call) -> str:
    """How parameters and states of an optimizer differ after a few steps; empty if they do not."""
    pair = OptimizerPair(info, call)
    factor = optimizer_checks.OptimizerChecks(info).factor * (FLOAT32_STEPS if call.kwargs.get("differentiable") else 1)
    if (found := refused_by_both(pair.refusal, pair.refused)) is not None:
        return found
    for step in range(STEPS):
        theirs, ours = pair.step(step)
        if (found := refused_by_both(ours, theirs)) is not None:
            return found
        if found := pair.compare(factor):
            return f"step {step}: {found}"
    return ""


def names() -> dict[str, Any]:
    """The steps of every module and optimizer, by name."""
    return {name: module_steps for name in MODULES} | {name: optimizer_steps for name in OPTIMIZERS}
