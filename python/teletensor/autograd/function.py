"""Function: an operation with a user-defined gradient.

The user's backward runs in the client. The client issues the engine's backward pass in pieces, each of which ends where
a user-defined backward runs, and waits only for values that the user's code reads.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .. import _C, _active_profile, _tensor
from .._C import Tensor
from .._grad_mode import no_grad, set_grad_enabled
from .._gradients import record as record_sparse
from .._layouts import strided
from ._saved_tensors import SavedTensor, check_version, is_packing

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "NestedIOFunction", "once_differentiable"]

# The contexts of recorded Functions by the numbers of their nodes.
contexts: weakref.WeakValueDictionary[int, FunctionCtx] = weakref.WeakValueDictionary()


def _key(tensor: Tensor) -> int:
    """What identifies a tensor while forward runs: a wrapper has no handle."""
    return tensor._handle or id(tensor)


@functools.cache
def _positions(forward: Callable) -> int:
    """The number of forward's parameters that arguments take by position."""
    code = getattr(forward, "__code__", None)
    return code.co_argcount if code is not None else 0


class FunctionCtx:
    """The state that Function.forward saves for Function.backward."""

    def __init__(self, function: str = "Function") -> None:
        self._name = f"{function}Backward"
        self._saved: tuple = ()
        self._saved_versions: list[int | None] = []
        self._for_forward: tuple | None = None  # what jvp() receives in place of the tensors for backward()
        self._in_jvp = False
        self._constant: set[int] = set()
        self._dirty: set[int] = set()
        self._materialize = True
        self._stop = 0  # identifies the Function in a backward pass
        self._in_backward = False
        self._unpacked: tuple | None = None  # saved_tensors, while backward runs
        self.needs_input_grad: tuple[bool, ...] = ()

    def name(self) -> str:
        """The name of the function's node, which is that of its class and "Backward"."""
        return self._name

    def save_for_backward(self, *tensors) -> None:
        """Saves inputs or outputs for backward."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}")
        self._saved = tensors

    def save_for_forward(self, *tensors) -> None:
        """Saves inputs or outputs for jvp(), which otherwise receives the tensors that are saved for backward()."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_forward can only save variables, but argument {i} is of type {type(t).__name__}")
        self._for_forward = tensors

    @property
    def saved_for_forward(self) -> tuple | None:
        """The tensors passed to save_for_forward; None outside of jvp(), and if there are none."""
        return self._for_forward

    @contextlib.contextmanager
    def _saved_for_forward(self) -> Iterator[None]:
        """A context in which jvp() runs."""
        self._in_jvp = True
        try:
            yield
        finally:
            self._in_jvp, self._for_forward = False, None

    def _finish_forward(self) -> None:
        """Records the versions of the saved tensors: forward may still change a tensor after saving it."""
        self._saved_versions = [None if t is None else t._version for t in self._saved]

    def _pack(self, inputs: list[Tensor], results: list[Tensor]) -> None:
        """Passes the saved tensors to the current hooks, and drops the history of results: they own this object."""
        if not self._saved:
            return
        places = {id(t): ~i for i, t in enumerate(inputs)} | {id(t): i for i, t in enumerate(results)}
        packs = is_packing()

        def packed(tensor: Tensor | None) -> Any:
            if tensor is None or _C._is_wrapper(tensor):
                return tensor
            place = places.get(id(tensor))
            return SavedTensor(tensor, place) if packs or (place is not None and place >= 0) else tensor

        self._saved = tuple(map(packed, self._saved))

    @property
    def saved_tensors(self) -> tuple:
        """The tensors passed to save_for_backward. Raises RuntimeError if one was changed in place since forward."""
        if self._in_jvp and self._for_forward is not None:
            return self._for_forward
        for t, version in zip(self._saved, self._saved_versions):
            if isinstance(t, Tensor):
                check_version(t, version, "a saved tensor")
        if self._unpacked is not None:
            return self._unpacked
        unpacked = tuple(t.unpack(self._stop) if isinstance(t, SavedTensor) else t for t in self._saved)
        if self._in_backward:
            self._unpacked = unpacked
        return unpacked

    saved_variables = saved_tensors

    @contextlib.contextmanager
    def _backward(self) -> Iterator[None]:
        """A context in which backward() runs: it may read saved_tensors several times."""
        self._in_backward = True
        try:
            yield
        finally:
            self._in_backward, self._unpacked = False, None

    def mark_non_differentiable(self, *tensors) -> None:
        """Marks outputs that get no gradient."""
        self._constant.update(map(_key, tensors))

    def mark_dirty(self, *tensors) -> None:
        """Marks inputs that forward changed in place."""
        self._dirty.update(map(_key, tensors))

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward receives zeros, which is the default, or None for outputs that received no gradient.

        Without zeros a backward pass waits for the engine at this function, since only the engine knows which gradients
        are missing.
        """
        self._materialize = bool(value)


def recorder_of(args: tuple) -> Any:
    """The argument or the dispatch mode that records operators as nodes of a graph, or None."""
    for argument in args:
        if hasattr(argument, "apply_function"):
            return argument
    depth = _C._len_torch_dispatch_stack()
    mode = _C._get_dispatch_stack_at(depth - 1) if depth else None
    return mode if hasattr(mode, "apply_function") else None


class Function:
    """An operation with its own derivative. Subclasses define static methods, and programs call ``apply(*args)``.

    - ``forward(ctx, *args)`` computes the outputs; nothing is recorded. It may call ctx.save_for_backward(*tensors), mark_dirty(),
      mark_non_differentiable() and set_materialize_grads().
    - ``backward(ctx, *grads)`` receives a gradient for each output, and returns one for each argument of forward, None for those without.
      ctx.saved_tensors has what was saved, ctx.needs_input_grad which gradients are needed.
    - ``setup_context(ctx, inputs, output)``, if it is defined, saves what backward needs, and forward has no ctx.

    Raises:
        RuntimeError: backward returns another number of gradients, or one of another shape.

    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         x, = ctx.saved_tensors
    ...         return grad * 3 * x**2
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad.item()
    12.0
    """

    @staticmethod
    def forward(ctx, *args, **kwargs):
        """Computes the outputs; nothing is recorded. Called without ctx if the subclass defines setup_context."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Returns one gradient, or None, for each argument of forward."""
        raise NotImplementedError("You must implement the backward for your custom autograd.Function.")

    vjp = backward  # another name of it, for subclasses
    setup_context = None
    generate_vmap_rule = False

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """Returns the derivatives of the outputs, from those of forward's arguments."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info, in_dims, *args):
        """Returns the mapped results and their dimensions. Without it, forward and backward are mapped."""
        raise NotImplementedError("You must implement the vmap staticmethod for custom autograd.Function to map it by a rule.")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs forward and records the operation. Keyword arguments take the places of forward's parameters."""
        if kwargs or (cls.setup_context is not None and len(args) < _positions(cls.forward)):
            args = cls._in_order(args, kwargs)
        recorder = recorder_of(args)
        return cls._applied(args)[0] if recorder is None else recorder.apply_function(cls, args)

    @classmethod
    def _in_order(cls, args: tuple, kwargs: dict[str, Any]) -> tuple:
        """The arguments by position, with the defaults of parameters before the last one that was given by name; with those of
        all parameters if setup_context() receives them."""
        import inspect  # not loaded by `import teletensor`

        has_context = cls.setup_context is None
        bound = inspect.signature(cls.forward).bind(*((None,) if has_context else ()), *args, **kwargs)
        parameters = list(bound.signature.parameters)
        last = max(i for i, name in enumerate(parameters) if name in bound.arguments) if has_context else len(parameters)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(f"{cls.__name__}.forward() must not have keyword-only parameters, got {', '.join(bound.kwargs)}")
        return bound.args[has_context : last + 1]

    @classmethod
    def _applied(
        cls, args: tuple, without_gradients: Callable = no_grad, record: Callable = _C.custom_function, alias: Callable = Tensor.detach
    ) -> tuple[Any, FunctionCtx]:
        """Runs forward and records the operation. Returns the result and the state that forward saved.

        `without_gradients` makes the context of forward; `record` records the operation; `alias` makes the result of an
        argument that forward returns.
        """
        ctx = FunctionCtx(cls.__name__)
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        with without_gradients():
            if _active_profile.active is None:
                result = cls._run_forward(ctx, args)
            else:
                with _active_profile.operator_range(cls.__name__):
                    result = cls._run_forward(ctx, args)
        for output in result if isinstance(result, (tuple, list)) else (result,):
            cls._drop_history(ctx, output, args)
        ctx._finish_forward()
        if not (_C.is_grad_enabled() and any(ctx.needs_input_grad)):
            return cls._without_inputs(ctx, result, args), ctx
        if any(isinstance(a, Tensor) and _key(a) in ctx._dirty and a.requires_grad and a.is_leaf for a in args):
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        if any(isinstance(a, Tensor) and _key(a) in ctx._dirty and a._base is not None for a in args):
            raise NotImplementedError(
                f"[{cls.__name__}] a view is marked dirty: its base would not depend on the function. Pass the base, or a clone of the view"
            )
        many = isinstance(result, (tuple, list))
        outputs = [cls._alias_if_input(ctx, r, args, alias) for r in (result if many else [result])]
        indices = [i for i, t in enumerate(outputs) if cls._is_differentiable(ctx, t)]
        if indices:
            constants = {
                i: {"size": t.shape, "dtype": t.dtype, "device": t.device}
                for i, t in enumerate(outputs) if isinstance(t, Tensor) and i not in indices
            }  # fmt: skip
            made = [outputs[i] for i in indices]
            # Sparse tensors and others without a tensor of the engine take part only if they have gradients.
            inputs = [a for a in args if isinstance(a, Tensor) and (a.requires_grad or not _C._is_wrapper(a))]
            if record is _C.custom_function:
                ctx._pack(inputs, made)
            real = [isinstance(a, Tensor) and a.requires_grad and not a.is_complex() for a in args]
            taken = {id(a) for a in inputs}
            kinds = [  # args are not kept
                (a.dtype if r else False) if id(a) in taken else ... if isinstance(a, Tensor) else None for a, r in zip(args, real)
            ]
            leaves = [weakref.ref(a) if r and k is not ... and not _C._is_wrapper(a) else None for a, r, k in zip(args, real, kinds)]
            backward = functools.partial(cls._run_backward, ctx, kinds, leaves, len(outputs), indices, constants)
            ctx._stop = record(inputs, made, backward, cls.__name__ + "Backward", wants_undefined=not ctx._materialize)
            if record is _C.custom_function:
                contexts[ctx._stop] = ctx
                cls._mark_views(ctx, result if many else (result,), outputs)
        return tuple(outputs) if many else outputs[0], ctx

    @staticmethod
    def _mark_views(ctx: FunctionCtx, results: Any, outputs: list) -> None:
        for result, output in zip(results, outputs):
            is_view = isinstance(output, Tensor) and (output._base is not None or output is not result)
            if is_view and output.requires_grad and _key(output) not in ctx._dirty:
                _C.mark_function_view(output)

    @classmethod
    def _run_forward(cls, ctx: FunctionCtx, args: tuple):
        if cls.setup_context is None:
            return cls.forward(ctx, *args)
        result = cls.forward(*args)
        cls.setup_context(ctx, args, result)
        return result

    @staticmethod
    def _is_differentiable(ctx: FunctionCtx, output) -> bool:
        return isinstance(output, Tensor) and (output.is_floating_point() or output.is_complex()) and _key(output) not in ctx._constant

    @staticmethod
    def _drop_history(ctx: FunctionCtx, output, args) -> None:
        """Detaches an output that forward recorded under enable_grad(): its gradient is computed by backward alone.

        The object stays the same, so that one that forward has saved is the recorded output, as in PyTorch.
        """
        if not isinstance(output, Tensor) or not output.requires_grad or any(output is a for a in args):
            return
        is_constant = _key(output) in ctx._constant
        if not is_constant or output._base is None:
            _C.detach_in_place(output)
        if is_constant:
            ctx._constant.add(_key(output))  # a detached tensor has another one

    @classmethod
    def _without_inputs(cls, ctx: FunctionCtx, result: Any, args: tuple) -> Any:
        """The result of a call that is not recorded, with other tensors for inputs that are returned unchanged."""
        if not isinstance(result, (tuple, list)):
            return cls._alias_if_input(ctx, result, args, Tensor.detach)
        if not any(value is a for value in result for a in args if isinstance(a, Tensor)):
            return result
        return tuple(cls._alias_if_input(ctx, value, args, Tensor.detach) for value in result)

    @staticmethod
    def _alias_if_input(ctx: FunctionCtx, value, args, alias: Callable):
        """Another tensor for an input that is returned unchanged, unless it was marked dirty."""
        if isinstance(value, Tensor) and any(value is a for a in args) and _key(value) not in ctx._dirty:
            return alias(value)
        return value

    @classmethod
    def _gradient_function(cls) -> Callable:
        """The user's backward, or vjp."""
        if cls.vjp is Function.vjp:
            return cls.backward
        if cls.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
            )
        return cls.vjp

    @classmethod
    def _run_backward(
        cls, ctx: FunctionCtx, kinds: list, leaves: list, count: int, indices: list[int], constants: dict, gradients: list,
        create_graph: bool,
    ):  # fmt: skip
        """Calls the user's backward.

        Args:
            kinds: for each argument None if it is no tensor, the dtype if it has a real gradient, `...` if nothing takes its
                gradient, else False.
            leaves: for each argument a weak reference to it if it is a strided leaf, which can have a sparse gradient, else
                None.
            indices: the outputs to which the gradients belong.
            constants: descriptions of the other tensors among the outputs.
        """
        output_gradients = [None] * count
        if ctx._materialize:
            for index, output in constants.items():
                output_gradients[index] = _C.torch.zeros(**output)
        for index, gradient in zip(indices, gradients):
            output_gradients[index] = gradient
        name = cls.__name__ + "Backward"
        evaluation = _active_profile.operator_range(f"autograd::engine::evaluate_function: {name}")
        with set_grad_enabled(create_graph), evaluation, _active_profile.operator_range(name), ctx._backward():
            found = cls._gradient_function()(ctx, *output_gradients)
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) < len(kinds) or any(g is not None for g in found[len(kinds) :]):
            raise RuntimeError(
                f"function {cls.__name__}Backward returned an incorrect number of gradients "
                f"(expected {len(kinds)}, got {len(found)})"
            )
        for i, (g, kind) in enumerate(zip(found, kinds)):
            cls._check_gradient(i, g, kind)
            if isinstance(g, Tensor) and _C._is_wrapper(g) and g.layout != strided and leaves[i] is not None:
                found[i] = cls._strided(g, leaves[i](), create_graph)
        return [g for g, kind in zip(found, kinds) if kind is not None and kind is not ...]

    @staticmethod
    def _strided(gradient: Tensor, leaf: Tensor | None, create_graph: bool) -> Tensor | None:
        """The strided form of a sparse gradient, or None for that of a leaf, which the pass adds in its layout."""
        if leaf is None or create_graph or not leaf.is_leaf:
            return gradient.to_dense()
        record_sparse(leaf, gradient)
        return None

    @classmethod
    def _check_gradient(cls, place: int, gradient, kind) -> None:
        if gradient is None:
            return
        if kind is None:
            raise RuntimeError(
                f"function {cls.__name__}Backward returned a gradient different than None at position {place + 1}, "
                "but the corresponding forward input was not a Variable"
            )
        if not isinstance(gradient, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(gradient).__name__})")
        if gradient.is_complex() and kind and kind is not ...:
            raise RuntimeError(
                f"Function {cls.__name__}Backward returned an invalid gradient at index {place} - "
                f"got {gradient.dtype} but expected a real dtype for an input of {kind}"
            )


def once_differentiable(function):
    """Wraps a backward function so that its operations are not recorded. Differentiating its results raises an error."""

    @functools.wraps(function)
    def wrapped(ctx, *args):
        with no_grad():
            results = function(ctx, *args)
        if not _C.is_grad_enabled():
            return results
        many = isinstance(results, (tuple, list))
        found = next((r for r in (results if many else (results,)) if isinstance(r, Tensor)), None)
        if found is not None:
            # In a recorded pass the results require grad, whatever the arguments do; and they depend on what forward saved.
            args = (*args, *ctx.saved_tensors, _C.torch.zeros(0, device=found.device, requires_grad=True))
        results = tuple(
            _DifferentiatedOnce.apply(r, *args) if isinstance(r, Tensor) else r for r in (results if many else (results,))
        )
        return results if many else results[0]

    return wrapped


class _DifferentiatedOnce(Function):
    """Returns its first argument. Backward raises an error: the dependence on the other arguments is not differentiable.

    If a backward pass is recorded, the client does not know which gradients require grad, so backward may be called for a
    gradient that does not. It then receives zeros. Therefore backward reads the gradient, and raises an error only if it
    is not zero.
    """

    @staticmethod
    def forward(ctx, gradient, *arguments):
        ctx.count = 1 + len(arguments)
        return gradient.detach()

    @staticmethod
    def backward(ctx, gradient):
        if gradient.count_nonzero().item():
            raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
        return (None,) * ctx.count


class _WithHistory(Function):
    @staticmethod
    def forward(_ctx, _tensor, data):
        return data[0].detach()

    @staticmethod
    def backward(_ctx, gradient):
        return gradient, None


def with_history(data: Tensor, tensor: Tensor) -> Tensor:
    """A tensor that shares the storage of `data` and has the history of `tensor`, which gets its gradients."""
    if (data.shape, data.dtype, data.device) != (tensor.shape, tensor.dtype, tensor.device):
        raise NotImplementedError(
            f"[data] expected the sizes, dtype and device of the tensor, which has a history: {tuple(tensor.shape)}, "
            f"{tensor.dtype}, {tensor.device}, got {tuple(data.shape)}, {data.dtype}, {data.device}: use copy_() or detach()"
        )
    with set_grad_enabled(True):
        return _WithHistory.apply(tensor, [data])


_tensor.with_history = with_history


class NestedIOFunction(Function):
    """PyTorch's class for functions of nested structures, kept for its name: define a Function instead."""


class InplaceFunction(Function):
    """An older base class of functions that may write to their arguments: use Function, and ctx.mark_dirty().

    Args:
        inplace: is stored as an attribute, and has no effect.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace
