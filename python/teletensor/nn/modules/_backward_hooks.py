"""Hooks that run during the backward pass of a module, between the gradients of its outputs and of its inputs."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable

from ... import _C
from ..._C import Tensor
from ..._lazy import set_module
from ...autograd.function import Function


class BackwardHookFunction(Function):
    """The identity, whose gradient passes through a function of all gradients.

    Missing gradients are zeros, or with `sees_missing` None, for which a pass waits for the engine.
    """

    @staticmethod
    def forward(ctx, hook, sees_missing, *tensors):
        ctx.hook = hook
        ctx.set_materialize_grads(not sees_missing)
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx, *gradients):
        changed = ctx.hook(gradients)
        return (None, None, *(gradients if changed is None else changed))


class BackwardHook:
    """Calls the backward hooks of one call of a module.

    setup_input_hook wraps the positional arguments and setup_output_hook the result. When the gradients of the outputs are
    known, `pre_hooks` receive (module, grad_output); when those of the inputs are known, `hooks` receive (module, grad_input,
    grad_output). A value other than None that a hook returns replaces grad_output or grad_input.
    """

    def __init__(self, module: Any, hooks: list[Callable], pre_hooks: list[Callable]):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: tuple | None = None
        self.args: tuple = ()  # the tensors among the inputs that require no grad; None for other inputs
        self.places: list[int] | None = None  # positions of inputs that require grad; None: no input does

    def setup_input_hook(self, args: tuple) -> tuple:
        """The arguments, whose gradients pass through the hooks."""
        wrapped, self.places = self._wrapped(args, self._on_inputs)
        constant = [isinstance(a, Tensor) and self.places is not None and i not in self.places for i, a in enumerate(args)]
        self.args = tuple(a.detach() if keep else None for a, keep in zip(args, constant))
        return wrapped

    def setup_output_hook(self, result: Any) -> Any:
        """The result, whose gradients pass through the hooks."""
        is_tuple = isinstance(result, tuple)
        found, self.output_places = self._wrapped(result if is_tuple else (result,), self._on_outputs, sees_missing=True)
        self.outputs = len(found)
        return found if is_tuple else found[0]

    @staticmethod
    def _wrapped(values: tuple, hook: Callable, sees_missing: bool = False) -> tuple[tuple, list[int] | None]:
        places = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad]
        if not places or not _C.is_grad_enabled():
            return values, None
        sees_missing = sees_missing and len(places) > 1
        changed = dict(zip(places, BackwardHookFunction.apply(hook, sees_missing, *(values[i] for i in places))))
        rebuilt = [changed.get(i, v) for i, v in enumerate(values)]
        return (tuple(rebuilt) if type(values) is tuple else type(values)(*rebuilt)), places

    def _on_outputs(self, gradients: tuple) -> tuple:
        full: list = [None] * self.outputs
        for place, gradient in zip(self.output_places, gradients):
            full[place] = gradient
        self.grad_outputs = tuple(full)
        for hook in self.pre_hooks:
            changed = hook(self.module, self.grad_outputs)
            if changed is not None:
                self.grad_outputs = _as_many("pre hook", "grad_output", changed, self.outputs)
        known = self.grad_outputs
        if self.places is None:  # no input requires grad
            self._without_inputs()
        return tuple(known[i] for i in self.output_places)

    def _without_inputs(self) -> None:
        empty = (None,) * len(self.args)
        for hook in self.hooks:
            changed = hook(self.module, empty, self.grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(g is None for g in changed)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                )
        self.grad_outputs = None

    def _on_inputs(self, gradients: tuple) -> tuple | None:
        if self.grad_outputs is None:  # no gradient reached the outputs
            return None
        full = [None if a is None else _C.torch.zeros_like(a) for a in self.args]  # for tensors that require no grad, as in PyTorch
        for place, gradient in zip(self.places, gradients):
            full[place] = gradient
        grad_inputs = tuple(full)
        for hook in self.hooks:
            changed = hook(self.module, grad_inputs, self.grad_outputs)
            if changed is not None:
                grad_inputs = _as_many("hook", "grad_input", changed, len(self.args))
        self.grad_outputs = None
        return tuple(grad_inputs[i] for i in self.places)


# Nodes whose gradients are those of PyTorch's node of the same name, in the same order. Others, such as that of nn.Linear, have
# other inputs in PyTorch.
_SAME_GRADIENTS = frozenset(
    name + "Backward0"
    for name in (
        "Add Sub Mul Exp Log Sqrt Tanh Sigmoid Relu Gelu Silu Elu LeakyRelu Softplus Softmax LogSoftmax Mean Sum Cat Stack Mm Bmm "
        "Transpose Permute View Select Slice Squeeze Unsqueeze Clone LayerNorm BatchNorm Embedding"
    ).split()
) | {"MeanBackward1", "SumBackward1", "SqueezeBackward1"}  # fmt: skip


class OperationHook:
    """Calls the hooks of register_backward_hook: they receive the gradients of the module's last operation."""

    def __init__(self, module: Any, hooks: list[Callable], pre_hooks: list[Callable]):
        if pre_hooks:
            raise RuntimeError("Cannot use both regular backward hooks and full backward hooks on a single Module.")
        self.module, self.hooks = module, hooks
        self.next: list[int | None] = []  # for each gradient of the operation's inputs, its place among the arguments' gradients
        self.grad_output: Tensor | None = None
        self.own: Any = None  # the node that the wrapped arguments come from

    def setup_input_hook(self, args: tuple) -> tuple:
        """The arguments, whose gradients pass through the hooks."""
        wrapped, places = BackwardHook._wrapped(args, self._on_inputs)
        if places:
            self.own = wrapped[places[0]].grad_fn
        return wrapped

    def setup_output_hook(self, result: Any) -> Any:
        """The result. If its operation has other inputs than the arguments, the hooks are those of its node."""
        value = result
        while not isinstance(value, Tensor):
            value = next(iter(value.values() if isinstance(value, dict) else value))
        node = value.grad_fn
        if node is None or node == self.own:
            return result
        if any(n is not None and n != self.own for n, _ in node.next_functions):
            if node.name() not in _SAME_GRADIENTS:
                raise NotImplementedError(
                    f"[register_backward_hook] expected a module whose result is one operation on its arguments, got "
                    f"{type(self.module).__name__}, which computes {node.name()} from other tensors too: use "
                    "register_full_backward_hook, whose hook receives the gradients of the module's arguments"
                )
            for hook in self.hooks:
                node.register_hook(functools.partial(hook, self.module))
            return result
        self.next = [None if n is None else i for n, i in node.next_functions]

        def keep(gradient: Tensor) -> None:
            self.grad_output = gradient

        value.register_hook(keep)
        return result

    def _on_inputs(self, gradients: tuple) -> tuple | None:
        if self.grad_output is None:
            return None
        grad_input = tuple(None if i is None else gradients[i] for i in self.next)
        changed = None
        for hook in self.hooks:
            value = hook(self.module, grad_input, (self.grad_output,))
            if value is not None:
                grad_input = changed = _as_many("hook", "grad_input", value, len(self.next))
        self.grad_output = None
        if changed is None:
            return None
        replaced = list(gradients)
        for place, gradient in zip(self.next, changed):
            if place is not None:
                replaced[place] = gradient
        return tuple(replaced)


def _as_many(hook: str, kind: str, changed: Any, expected: int) -> tuple:
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != expected:
        raise RuntimeError(
            f"Backward {hook} returned an invalid number of {kind}, got {len(changed)}, but expected {expected}"
        )
    return changed


def warn_about_result(result: Any) -> None:
    """Warns if the module's result is neither a tensor nor a tuple: its gradients do not reach the hooks."""
    if not isinstance(result, (Tensor, tuple)):
        warnings.warn(
            "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
            f"but received {type(result)}",
            stacklevel=3,
        )


set_module("teletensor.utils.hooks", BackwardHook)
