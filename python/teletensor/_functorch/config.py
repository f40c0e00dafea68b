"""torch._functorch.config: settings of forward and backward graphs.

``activation_memory_budget`` has an effect on Programs that contain a backward pass (torch.compiler.trace), at the time of
the trace: 1.0 keeps what forward has computed for backward, 0.0 computes it again where that is possible. Between them,
what takes the least time per byte is computed again, until the rest takes at most this part of the bytes.

``donated_buffer``, ``enable_autograd_cache``, ``cse``, ``static_weight_shapes``, ``treat_parameters_as_free_to_save``,
``functionalize_rng_ops`` and ``graphsafe_rng_functionalization`` concern what PyTorch's graphs and caches contain, and change nothing
here: random numbers are those of single calls with all of their values. The others keep their values: setting another one raises
NotImplementedError. Settings that are not listed do not exist.
"""

from typing import Any

from .._config_module import make_settings

activation_memory_budget = 1.0
activation_memory_budget_runtime_estimator = "flops"
activation_memory_budget_solver = "dp"
aggressive_recomputation = False
recompute_views = False
ban_recompute_reductions = True
ban_recompute_not_in_allowlist = True
ban_recompute_used_far_apart = True
ban_recompute_long_fusible_chains = True
ban_recompute_materialized_backward = True
functionalize_rng_ops = False
graphsafe_rng_functionalization = True
donated_buffer = True
enable_autograd_cache = True
cse = True
static_weight_shapes = True
treat_parameters_as_free_to_save = True
backward_pass_autocast = "same_as_forward"
enable_activation_offloading = False
view_replay_for_aliased_outputs = True
joint_custom_pass = None


def _check_budget(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"[activation_memory_budget] expected a number from 0 to 1, got {type(value).__name__}")
    if not 0 <= value <= 1:
        raise ValueError(f"[activation_memory_budget] expected a number from 0 to 1, got {value}")


_COST = "activation_memory_budget alone decides what is computed again"
make_settings(
    __name__,
    fixed={
        "activation_memory_budget_runtime_estimator": "times are estimated by elements and multiplications",
        "activation_memory_budget_solver": "the values that take the least time per byte are computed again",
        "aggressive_recomputation": _COST, "recompute_views": _COST, "ban_recompute_reductions": _COST,
        "ban_recompute_not_in_allowlist": _COST, "ban_recompute_used_far_apart": _COST, "ban_recompute_long_fusible_chains": _COST,
        "ban_recompute_materialized_backward": _COST,
        "backward_pass_autocast": "backward has the dtypes of forward's regions of autocast",
        "enable_activation_offloading": "use torch.autograd.graph.save_on_cpu()",
        "view_replay_for_aliased_outputs": "results that are views of inputs run operator by operator",
        "joint_custom_pass": "the engine's passes are not exchangeable; a backend of torch.compile may change graphs",
    },
    checks={"activation_memory_budget": _check_budget},
)  # fmt: skip
