"""functorch.compile: forward and backward graphs of functions for compilers; names of torch._functorch."""

from ..._functorch.aot_autograd import (
    aot_function,
    aot_module,
    aot_module_simplified,
    compiled_function,
    compiled_module,
    make_boxed_compiler,
    make_boxed_func,
)  # fmt: skip
from ..._functorch.compilers import nop, print_compile
from ..._functorch.partitioners import default_partition, draw_graph, min_cut_rematerialization_partition

__all__ = [
    "aot_function", "aot_module", "aot_module_simplified", "compiled_function", "compiled_module", "default_partition", "draw_graph",
    "make_boxed_compiler", "make_boxed_func", "min_cut_rematerialization_partition", "nop", "print_compile",
]  # fmt: skip
