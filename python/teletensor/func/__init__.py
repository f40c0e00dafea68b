"""torch.func: derivatives of functions, maps over batches, and modules as functions of their parameters."""

from .._lazy import lazy_attributes

__all__ = [  # noqa: F822 - some are imported at their first use
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(
    globals(), (), {
        "batching": "vmap", "derivatives": "grad grad_and_value jacrev vjp", "forward": "hessian jacfwd jvp linearize",
        "_batch_norm": "replace_all_batch_norm_modules_", "_functionalized": "functionalize", "_transformed": "debug_unwrap",
        "_rearrange": "rearrange", "modules": "functional_call stack_module_state",
    }
)  # fmt: skip
