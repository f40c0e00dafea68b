"""Makes public functions and methods that are written in Python honour __torch_function__, as those in C++ do.

Each function of a public namespace is replaced by a ``_C.OverridableFunction`` that contains it: a call compares the types
of its arguments in C and calls the function, unless an argument or a function mode overrides it. The namespaces are torch,
torch.functional, torch.nn.functional, torch.nn.init, torch.linalg, torch.fft and torch.special.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from . import _C, _autocast_lists, _subclass
from ._C import Tensor

# Functions of the module torch without tensors as arguments, which neither arguments nor modes override in PyTorch.
NEVER = frozenset((
    "are_deterministic_algorithms_enabled", "broadcast_shapes", "compile", "cond", "connect", "connect_all", "connection",
    "disconnect", "fork", "from_dlpack", "get_approximate_basis", "get_autocast_cpu_dtype", "get_autocast_dtype",
    "get_autocast_gpu_dtype", "get_default_device", "get_default_dtype", "get_deterministic_debug_mode", "get_device_module",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads", "get_rng_state", "immediate_errors", "init_num_threads",
    "initial_seed", "is_deterministic_algorithms_warn_only_enabled", "is_storage", "is_tensor", "load", "manual_seed", "models",
    "open", "publish", "published", "save", "seed", "serve", "sync_report", "synchronize", "thread_safe_generator", "typename", "unpublish",
    "use_deterministic_algorithms", "vmap", "wait", "while_loop",
))  # fmt: skip
# Functions that namespaces import for their own use.
_HELPERS = frozenset((
    "check_layout", "divide_by_frequency", "exact_out_variant", "one_size", "out_variant", "out_variants", "renorm_rows",
))  # fmt: skip
_NEVER_PREFIXES = ("_", "set_", "is_autocast_", "is_anomaly_", "is_warn_", "clear_autocast_", "autocast_")
# Functions that read values from any object: only modes override them.
_ONLY_MODES = frozenset(("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer", "from_file"))
# Attributes of Tensor that PyTorch's Tensor does not have, or that nothing overrides.
PLAIN_ATTRIBUTES = frozenset(
    "__class__ __cuda_array_interface__ __dict__ __weakref__ _handle _is_inference _session _storage".split()
)  # fmt: skip
# The functions of nn.init that PyTorch makes overridable; the others call them.
_INIT = frozenset(("uniform_", "normal_", "constant_", "kaiming_uniform_"))
_NEVER_METHODS = frozenset((
    "__array_namespace__", "__class_getitem__", "__dir__", "__hash__", "__init__", "__init_subclass__", "__iter__", "__new__",
    "__torch_dispatch__", "__torch_function__", "_repr_html_", "_repr_mimebundle_", "as_subclass",
))  # fmt: skip
# How PyTorch's Python functions pass their arguments to handlers: some parameters by position, the others by name, with their
# defaults. Handlers, and passes over graphs of fx, find an argument in its place whatever the form of the call. The number of
# those that are passed by position, then the functions, of nn.functional and of torch.functional. Functions that are not listed
# pass arguments as the call does.
_FUNCTIONAL = {
    1: """
        dropout alpha_dropout dropout1d dropout2d dropout3d feature_alpha_dropout relu hardtanh relu6 elu selu celu leaky_relu rrelu
        softmin softmax gumbel_softmax log_softmax hardsigmoid silu mish hardswish instance_norm interpolate normalize
    """,
    2: """
        fractional_max_pool2d fractional_max_pool3d max_pool1d max_pool2d max_pool2d_with_indices max_pool3d adaptive_max_pool1d
        adaptive_max_pool2d adaptive_max_pool2d_with_indices adaptive_max_pool3d adaptive_avg_pool2d adaptive_avg_pool3d embedding
        embedding_bag layer_norm local_response_norm nll_loss poisson_nll_loss kl_div cross_entropy binary_cross_entropy
        binary_cross_entropy_with_logits smooth_l1_loss huber_loss l1_loss mse_loss hinge_embedding_loss multilabel_margin_loss
        soft_margin_loss multilabel_soft_margin_loss multi_margin_loss unfold pad
    """,
    3: """
        max_unpool1d max_unpool2d max_unpool3d lp_pool1d lp_pool2d lp_pool3d batch_norm gaussian_nll_loss linear_cross_entropy
        margin_ranking_loss cosine_embedding_loss triplet_margin_loss triplet_margin_with_distance_loss fold
    """,
    4: "ctc_loss",
    13: "multi_head_attention_forward",
}
_MAIN = {1: "unique unique_consecutive norm unravel_index lu", 2: "split stft tensordot"}
_BY_MODULE = {
    module: {name: count for count, names in rows.items() for name in names.split()}
    for module, rows in (("teletensor.nn.functional", _FUNCTIONAL), ("teletensor.functional", _MAIN), ("teletensor", _MAIN))
}


@functools.cache
def _signature(function: Callable) -> Any:
    import inspect  # 7 ms, a tenth of `import teletensor`

    return inspect.signature(function)


def _form_of(module: str, name: str, function: Callable) -> Callable[..., tuple[tuple, dict[str, Any]]] | None:
    """What makes the arguments of handlers of those of a call; None if they are the same."""
    count = _BY_MODULE.get(module, {}).get(name)
    if count is None:
        return None

    def form(*args: Any, **kwargs: Any) -> tuple[tuple, dict[str, Any]]:
        try:
            bound = _signature(function).bind(*args, **kwargs)
        except TypeError as e:
            raise TypeError(f"{name}() {e}") from None
        bound.apply_defaults()
        values = list(bound.arguments.items())
        return tuple(value for _, value in values[:count]), dict(values[count:])

    return form


class TensorProperty(property):
    """A property of Tensor that is written in Python and honours __torch_function__."""

    __objclass__ = Tensor

    def __init__(self, source: property, name: str) -> None:
        self.__name__ = name
        names = {kind: f"Tensor.{name}.{kind}" for kind in ("__get__", "__set__", "__delete__")}
        accessors = zip(names.items(), (source.fget, source.fset, source.fdel))
        super().__init__(*(
            function and _C.overridable(function, "teletensor", qualname, passed=getattr(self, kind))
            for (kind, qualname), function in accessors
        ), doc=source.__doc__)  # fmt: skip


_made: dict[FunctionType, Any] = {}  # the wrapped functions; one that several namespaces export is wrapped once


def overridable(module: str, name: str, value: Any) -> Any:
    """The value under which a module exports a function: overridable, if PyTorch's function is."""
    if not isinstance(value, FunctionType) or name in _HELPERS or name.startswith(_NEVER_PREFIXES):
        return value
    if module == "teletensor" and name in NEVER:
        return value
    if not value.__module__.startswith("teletensor") or (module == "teletensor.nn.init" and name not in _INIT):
        return value
    if value not in _made:
        policies = _autocast_lists.policies(module, name)
        form = _form_of(module, name, value)
        _made[value] = _C.overridable(value, module, name, only_modes=name in _ONLY_MODES, autocast=policies, form=form)
    return _made[value]


def wrap_functions(namespace: dict[str, Any]) -> None:
    """Makes the functions in the globals() of a public module overridable. Called at the end of the module."""
    namespace.update({name: overridable(namespace["__name__"], name, value) for name, value in namespace.items()})


def _constant(value) -> property:
    return property(lambda self: value)


def _wrap_methods() -> None:
    for name, value in list(vars(Tensor).items()):
        if isinstance(value, FunctionType) and name not in _NEVER_METHODS:
            policies = _autocast_lists.policies("teletensor", name)
            setattr(Tensor, name, _C.overridable(value, "teletensor", f"Tensor.{name}", autocast=policies))
        elif type(value) is property and name not in PLAIN_ATTRIBUTES:
            setattr(Tensor, name, TensorProperty(value, name))
        elif name in ("is_sparse", "is_quantized", "layout"):
            setattr(Tensor, name, TensorProperty(_constant(value), name))


def install(namespace: dict[str, Any]) -> None:
    """Wraps the methods of Tensor and the functions of the main module, when both are complete."""
    _wrap_methods()
    wrap_functions(namespace)
    _subclass.install()


def handle_torch_function(public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """Passes a call of a function to the function mode or the relevant arguments that override it.

    Args:
        public_api: the function, which handlers receive.
        relevant_args: the arguments whose __torch_function__ may handle the call.
        args: the positional arguments of the call.
        kwargs: the keyword arguments of the call.

    Raises:
        TypeError: every handler returned NotImplemented, or there is none.
    """
    name = f"{public_api.__module__}.{public_api.__name__}"
    return _C._handle_torch_function(name, public_api, tuple(relevant_args), args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable], Callable]:
    """Makes a function overridable. The dispatcher has its signature and returns the arguments that may override it."""

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if _C._has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


for _function in (handle_torch_function, wrap_torch_function):
    _function.__module__ = "teletensor.overrides"


# Functions of torch.overrides that are names of torch.nn.functional too, which dir() does not list.
PROTOCOL = {
    "handle_torch_function": handle_torch_function, "has_torch_function": _C._has_torch_function,
    "has_torch_function_unary": _C._has_torch_function_unary, "has_torch_function_variadic": _C._has_torch_function_variadic,
    "wrap_torch_function": wrap_torch_function,
}  # fmt: skip
