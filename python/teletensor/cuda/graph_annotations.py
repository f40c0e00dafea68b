"""torch.cuda.graph_annotations: names of kernels in captured graphs."""

from __future__ import annotations

from .._not_implemented import not_implemented

__all__ = [  # noqa: F822 - defined below
    "clear_kernel_annotations", "dump_kernel_py_stacks", "get_kernel_annotations", "get_kernel_py_stacks",
    "is_available", "mark_kernels",
]  # fmt: skip


def is_available() -> bool:
    """Returns False."""
    return False


not_implemented(
    globals(), "captured graphs are the engine's and have no names of kernels",
    "clear_kernel_annotations dump_kernel_py_stacks get_kernel_annotations get_kernel_py_stacks mark_kernels",
)  # fmt: skip
