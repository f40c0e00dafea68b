"""torch.optim.functional: one step of an optimizer, in place, on lists of parameters, gradients and states."""

from __future__ import annotations

from ._adafactor import Adafactor
from ._muon import Muon
from ._stateless import stateless
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .asgd import ASGD
from .nadam import NAdam
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD

__all__ = [
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamw", "asgd", "muon", "nadam", "radam", "rmsprop", "rprop", "sgd",
    "sparse_adam",
]  # fmt: skip

_MOMENTS = {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq"}
_STEPS = {"state_steps": "step"}
_SCALING = {"grad_scale": None, "found_inf": None}


def _flags(names: str) -> dict:
    """Arguments with their defaults: None for foreach and fused, else False."""
    return {n: None if n in ("foreach", "fused") else False for n in names.split()}


_COMMON = "foreach maximize differentiable capturable has_complex"

adadelta = stateless(
    Adadelta, "adadelta", {"square_avgs": "square_avg", "acc_deltas": "acc_delta", **_STEPS},
    _flags("capturable foreach differentiable has_complex"), ("lr", "rho", "eps", "weight_decay", "maximize"),
)  # fmt: skip
adafactor = stateless(
    Adafactor, "adafactor", {"row_vars": "row_var", "col_vars": "col_var", "variances": "variance", **_STEPS},
    {"foreach": None, **_SCALING, "has_complex": False}, ("d", "lr", "beta2_decay", "weight_decay", "eps1", "eps2", "maximize"),
)  # fmt: skip
adagrad = stateless(
    Adagrad, "adagrad", {"state_sums": "sum", **_STEPS},
    {"fused": None, **_SCALING, **_flags("has_sparse_grad foreach differentiable has_complex")},
    ("lr", "weight_decay", "lr_decay", "eps", "maximize"),
)  # fmt: skip
_ADAM = {**_MOMENTS, "max_exp_avg_sqs": "max_exp_avg_sq", **_STEPS}
_ADAM_FLAGS = {**_flags("foreach capturable differentiable fused"), **_SCALING, "has_complex": False}
_ADAM_OPTIONS = ("amsgrad", "beta1", "beta2", "lr", "weight_decay", "eps", "maximize")
adam = stateless(Adam, "adam", _ADAM, {**_ADAM_FLAGS, "decoupled_weight_decay": False}, _ADAM_OPTIONS)
_adamw = stateless(Adam, "adamw", _ADAM, {**_ADAM_FLAGS, "decoupled_weight_decay": True}, _ADAM_OPTIONS)


def adamw(*args, **kwargs) -> None:
    """One step of AdamW, in place; waits for the engine, to read the step's number."""
    _adamw(*args, **kwargs)


_adamw_signature = _adamw.__signature__
adamw.__signature__ = _adamw_signature.replace(
    parameters=[p for n, p in _adamw_signature.parameters.items() if n != "decoupled_weight_decay"]
)
adamax = stateless(
    Adamax, "adamax", {"exp_avgs": "exp_avg", "exp_infs": "exp_inf", **_STEPS}, _flags(_COMMON),
    ("eps", "beta1", "beta2", "lr", "weight_decay"),
)  # fmt: skip
asgd = stateless(
    ASGD, "asgd", {"axs": "ax", "mus": "mu", "etas": "eta", **_STEPS}, _flags(_COMMON),
    ("lambd", "lr", "t0", "alpha", "weight_decay"),
)  # fmt: skip
muon = stateless(
    Muon, "muon", {"muon_momentum_bufs": "momentum_buffer"}, {},
    ("foreach=None", "lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "ns_steps", "eps", "adjust_lr_fn", "has_complex"),
)  # fmt: skip
nadam = stateless(
    NAdam, "nadam", {**_MOMENTS, "mu_products": "mu_product", **_STEPS},
    _flags("decoupled_weight_decay foreach capturable differentiable has_complex maximize"),
    ("beta1", "beta2", "lr", "weight_decay", "momentum_decay", "eps"),
)  # fmt: skip
radam = stateless(
    RAdam, "radam", {**_MOMENTS, **_STEPS},
    _flags("decoupled_weight_decay foreach differentiable capturable has_complex maximize"),
    ("beta1", "beta2", "lr", "weight_decay", "eps"),
)  # fmt: skip
rmsprop = stateless(
    RMSprop, "rmsprop", {
        "square_avgs": "square_avg", "grad_avgs": "grad_avg", "momentum_buffer_list": "momentum_buffer", **_STEPS,
    }, _flags(_COMMON), ("lr", "alpha", "eps", "weight_decay", "momentum", "centered"),
)  # fmt: skip
rprop = stateless(
    Rprop, "rprop", {"prevs": "prev", "step_sizes": "step_size", **_STEPS},
    _flags("foreach capturable maximize differentiable has_complex"),
    ("step_size_min", "step_size_max", "etaminus", "etaplus"),
)  # fmt: skip
sgd = stateless(
    SGD, "sgd", {"momentum_buffer_list": "momentum_buffer"}, {**_flags("has_sparse_grad foreach fused"), **_SCALING},
    ("weight_decay", "momentum", "lr", "dampening", "nesterov", "maximize"),
)  # fmt: skip


def sparse_adam(params, grads, exp_avgs, exp_avg_sqs, state_steps, *, eps, beta1, beta2, lr, maximize) -> None:
    """Raises NotImplementedError: gradients are dense."""
    raise NotImplementedError("sparse_adam: there are no sparse gradients; use adam")
