"""FakeTensor: a tensor without values that reports the device on which the program would have placed it.

A fake tensor is a tensor on the meta device, so that the rules of the client and the engine infer sizes, dtypes and gradients
as for real tensors. Calls whose result depends on values raise DataDependentOutputException.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import _C
from .._C import Tensor
from ..overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode
from ..utils._pytree import tree_flatten, tree_map

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode",
    "UnsupportedFakeTensorException", "is_fake", "unset_fake_temporarily",
]  # fmt: skip


class UnsupportedFakeTensorException(RuntimeError):  # noqa: N818 - PyTorch's name
    """A tensor that has no fake form, such as a DTensor."""


class DataDependentOutputException(RuntimeError):  # noqa: N818
    """A call reads values of a fake tensor."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{getattr(func, '__name__', func)} reads values, which a FakeTensor does not have")
        self.func = func


class DynamicOutputShapeException(RuntimeError):  # noqa: N818
    """The sizes of a call's result depend on values."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"the sizes of the result of {getattr(func, '__name__', func)} depend on values, which a FakeTensor does not have")
        self.func = func


_READING = frozenset((
    "item", "tolist", "numpy", "numpy_async", "__bool__", "__int__", "__float__", "__complex__", "__index__", "__array__", "equal",
    "allclose", "is_nonzero",
))  # fmt: skip
_DYNAMIC = frozenset((
    "nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "repeat_interleave", "bincount",
))  # fmt: skip


class FakeTensor(Tensor):
    """A tensor without values; see FakeTensorMode."""

    fake_device: Any
    fake_mode: FakeTensorMode

    @staticmethod
    def _of(meta: Tensor, mode: FakeTensorMode, device: Any) -> FakeTensor:
        self = Tensor.__new__(FakeTensor, meta)
        self.__dict__.update(fake_mode=mode, fake_device=device)
        return self

    @property
    def device(self) -> Any:
        """The device on which the program would have placed the tensor."""
        return self.fake_device

    @property
    def is_cuda(self) -> bool:
        """Whether that device is a GPU."""
        return self.fake_device.type == "cuda"

    @property
    def is_meta(self) -> bool:
        """Whether that device is the meta device."""
        return self.fake_device.type == "meta"

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"FakeTensor(..., device='{self.device}', size={tuple(self.shape)}, dtype={self.dtype})"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        leaves, _ = tree_flatten((args, kwargs or {}))
        mode = next(leaf.fake_mode for leaf in leaves if isinstance(leaf, FakeTensor))
        return mode._run(func, args, kwargs or {})


def is_fake(x: object) -> bool:
    """Whether an object is a fake tensor."""
    return isinstance(x, FakeTensor)


class FakeTensorMode(TorchFunctionMode):
    """In the ``with`` block, functions that create tensors return fake ones.

    Args:
        allow_fallback_kernels: accepted; no kernel is run in any case.
        allow_non_fake_inputs: whether calls may combine real and fake tensors.
    """

    def __init__(
        self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False, shape_env: Any = None,
        static_shapes: bool | None = None, export: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if shape_env is not None:
            raise NotImplementedError("[FakeTensorMode] symbolic sizes are not implemented")
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.shape_env, self.static_shapes = None, True

    def from_tensor(self, tensor: Tensor, *, static_shapes: bool | None = None, **_: Any) -> FakeTensor:
        """The fake form of a tensor: a leaf with its sizes, strides, dtype, device and requires_grad."""
        if _C._is_wrapper(tensor):
            raise UnsupportedFakeTensorException(f"a {type(tensor).__name__} has no fake form")
        with _C.DisableTorchFunction():
            meta = _C.torch.empty(0, dtype=tensor.dtype, device="meta").new_empty_strided(tensor.shape, tensor.stride())
            meta.requires_grad = tensor.requires_grad
            return FakeTensor._of(meta, self, tensor.device)

    fake_tensor_converter = property(lambda self: self)

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return self._run(func, args, kwargs or {})

    def _run(self, func: Any, args: tuple, kwargs: dict) -> Any:
        with _C.DisableTorchFunction():
            return self._run_without_overrides(func, args, kwargs)

    def _run_without_overrides(self, func: Any, args: tuple, kwargs: dict) -> Any:
        name = getattr(func, "__name__", "")
        leaves, _ = tree_flatten((args, kwargs))
        fakes = [leaf for leaf in leaves if isinstance(leaf, FakeTensor)]
        if any(leaf.fake_mode is not self for leaf in fakes):
            raise AssertionError("Mixing fake modes NYI")
        if name == "__get__" and fakes:
            return self._wrapped(func(*args, **kwargs), fakes[0].fake_device)
        if fakes and (name in _READING or name in _DYNAMIC):
            raise (DataDependentOutputException if name in _READING else DynamicOutputShapeException)(func)
        real = [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, FakeTensor)]
        if fakes and not self.allow_non_fake_inputs and any(t.dim() for t in real):
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                f"Found in {name}"
            )
        if not fakes and real:  # a call on real tensors only
            return func(*args, **kwargs)
        device = _requested_device(func, args, kwargs)
        if not fakes and not _creates(name):
            return func(*args, **kwargs)
        if device is None:
            device = fakes[0].fake_device if fakes else _C.device("cpu")
            device = next((leaf.fake_device for leaf in fakes if leaf.dim()), device)
        else:
            args, kwargs = tree_map(lambda x: _C.device("meta") if _is_device(x, func) else x, (args, kwargs))
        if not fakes:
            kwargs["device"] = _C.device("meta")
        if fakes:
            args, kwargs = tree_map(_meta, (args, kwargs))
        return self._wrapped(func(*args, **kwargs), device, {t._handle: t for t in fakes})

    def _wrapped(self, result: Any, device: Any, inputs: dict | None = None) -> Any:
        def wrap(value: Any) -> Any:
            if not isinstance(value, Tensor) or isinstance(value, FakeTensor) or value.device.type != "meta":
                return value
            if inputs and value._handle in inputs:  # an in-place call returns its argument
                return inputs[value._handle]
            return FakeTensor._of(value, self, device)

        return tree_map(wrap, result)


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[FakeTensorMode | None]:
    """A context in which the innermost active FakeTensorMode, whose value it has, is inactive. None if there is none."""
    stack = _get_current_function_mode_stack()
    place = next((i for i in reversed(range(len(stack))) if isinstance(stack[i], FakeTensorMode)), None)
    if place is None:
        yield None
        return
    _replace_modes(stack[place:], stack[place + 1 :])
    try:
        yield stack[place]
    finally:
        _replace_modes(stack[place + 1 :], stack[place:])


def _replace_modes(old: list[TorchFunctionMode], new: list[TorchFunctionMode]) -> None:
    """Replaces the innermost modes."""
    for _ in old:
        _pop_mode()
    for mode in new:
        _push_mode(mode)


def _meta(value: Any) -> Any:
    if isinstance(value, FakeTensor):
        return value
    if isinstance(value, Tensor) and value.device.type != "meta":
        return value.detach().to("meta")
    return value


def _is_device(value: Any, func: Any) -> bool:
    return isinstance(value, _C.device) or (isinstance(value, str) and value.partition(":")[0] in ("cpu", "cuda", "meta"))


def _requested_device(func: Any, args: tuple, kwargs: dict) -> Any:
    given = kwargs.get("device")
    if given is None:
        name = getattr(func, "__name__", "")
        if name == "cpu":
            return _C.device("cpu")
        given = next((a for a in args if _is_device(a, func)), None) if name == "to" else None
    return None if given is None else _C.device(given)


_CREATING = frozenset((
    "arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty", "empty_strided", "eye", "full", "hamming_window",
    "hann_window", "kaiser_window", "linspace", "logspace", "normal", "ones", "rand", "randint", "randn", "randperm", "scalar_tensor",
    "tensor", "zeros",
))  # fmt: skip


def _creates(name: str) -> bool:
    return name in _CREATING
