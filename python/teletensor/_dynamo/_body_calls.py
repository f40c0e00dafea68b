"""Targets of nodes that receive bodies: what a graph calls for a transform, an autograd.Function, a hook or a checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from ..autograd.function import Function, once_differentiable
from ..utils import _pytree as pytree
from ..utils.checkpoint import checkpoint
from ._bodies import fill


class BodyCall:
    """A callable with a name, as fx prints it."""

    def __init__(self, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "teletensor_bodies"

    def __repr__(self) -> str:
        return f"<{self.__name__}>"


class TransformCall(BodyCall):
    """A call of a transform of torch.func: (body, tensors, lifted) -> the transform's results.

    Args:
        transform: returns a function for a function, such as vmap, or its results at once, such as jvp.
        options: of the transform.
        is_immediate: whether the transform receives the function and the arguments in one call.
    """

    def __init__(self, transform: Callable, options: dict[str, Any], is_immediate: bool) -> None:
        super().__init__(transform.__name__)
        self.transform, self.options, self.is_immediate = transform, options, is_immediate
        self.template: Any = None  # of the function's result
        self.arguments: tuple = ()  # templates of the arguments and of the keyword arguments

    def run(self, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The transform's results for a function."""
        if self.is_immediate:
            return self.transform(function, *args, **kwargs, **self.options)
        return self.transform(function, **self.options)(*args, **kwargs)

    def __call__(self, body: Callable, given: tuple, lifted: tuple) -> Any:
        def function(*a: Any, **k: Any) -> Any:
            tensors = [leaf for leaf in pytree.tree_leaves((a, k)) if isinstance(leaf, Tensor)]
            return fill(self.template, body(*tensors, *lifted))

        return self.run(function, *fill(self.arguments, given))


def call_kept(function: Callable, *args: Any) -> Any:
    """Calls a function that a node has returned, such as that of vjp()."""
    return function(*args)


call_kept.__module__ = "teletensor_bodies"


class FunctionCall(BodyCall):
    """A call of autograd.Function.apply(): (forward, backward, tensors, lifted) -> results of forward.

    `forward` maps tensors and lifted tensors to results, and what `backward` reads. `backward` maps the gradients of the
    results and what forward has saved to gradients of the tensors that `with_gradient` names.

    Args:
        cls: the user's class.
        count: the number of results.
        constant: the results without gradients.
        with_gradient: for each gradient that backward returns, the place of its tensor.
        is_once: whether the gradients cannot be differentiated.
    """

    def __init__(self, cls: type, count: int, constant: list[int], with_gradient: list[int], is_once: bool) -> None:
        super().__init__(f"{cls.__name__}_apply")
        run_backward = once_differentiable(_run_backward) if is_once else _run_backward
        self.count, self.constant, self.with_gradient = count, constant, with_gradient
        members = {"forward": staticmethod(_run_forward), "backward": staticmethod(run_backward), "call": self}
        self.function = type(cls.__name__, (Function,), members)

    def __call__(self, forward: Callable, backward: Callable, tensors: tuple, lifted: tuple) -> tuple:
        return self.function.apply(self, forward, backward, tuple(lifted), *tensors)


def _run_forward(ctx: Any, call: FunctionCall, forward: Callable, backward: Callable, lifted: tuple, *tensors: Tensor) -> tuple:
    found = forward(*tensors, *lifted)
    results, saved = found[: call.count], found[call.count :]
    ctx.call, ctx.body, ctx.count = call, backward, len(tensors)
    ctx.others = [None if isinstance(s, Tensor) else s for s in saved]
    ctx.save_for_backward(*(s for s in saved if isinstance(s, Tensor)))
    ctx.mark_non_differentiable(*(results[i] for i in call.constant))
    return tuple(results)


def _run_backward(ctx: Any, *gradients: Tensor) -> tuple:
    tensors = iter(ctx.saved_tensors)
    saved = [next(tensors) if other is None else other for other in ctx.others]
    found = ctx.body(*gradients, *saved)
    results: list[Any] = [None] * (4 + ctx.count)
    for place, gradient in zip(ctx.call.with_gradient, found):
        results[4 + place] = gradient
    return tuple(results)


class CheckpointCall(BodyCall):
    """A call of torch.utils.checkpoint.checkpoint(): (body, lifted) -> results of the body."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__("checkpoint")
        self.options = options

    def __call__(self, body: Callable, lifted: tuple) -> tuple:
        if _C.is_tracing():
            raise NotImplementedError("[checkpoint] a region without its backward pass is not part of a Program")
        return checkpoint(body, *lifted, **self.options)


class HookCall(BodyCall):
    """Registers a hook that is a body: (tensor, body, lifted) -> handle. `returns` says whether it replaces the gradient."""

    def __init__(self, returns: bool) -> None:
        super().__init__("register_hook")
        self.returns = returns

    def __call__(self, tensor: Tensor, body: Callable, lifted: tuple) -> Any:
        def hook(gradient: Tensor) -> Tensor | None:
            found = body(gradient, *lifted)
            return found[0] if self.returns else None

        return tensor.register_hook(hook)
