"""torch._inductor.config: settings of the code that PyTorch generates.

The engine has kernels and passes of its own. Settings that select among ways to compute the same numbers, or that concern PyTorch's
caches, threads and debugging, can be set to any value and change nothing; random numbers are always those of single calls
(``fallback_random``). The others keep their values: setting another one raises NotImplementedError. Settings that are not listed do not
exist.
"""

from .._config_module import Group, make_settings

fallback_random = False
fx_graph_cache = True
fx_graph_remote_cache = None
force_disable_caches = False
compile_threads = 1
debug = False
max_autotune = False
max_autotune_gemm = False
max_autotune_pointwise = False
max_autotune_gemm_backends = "ATEN"
coordinate_descent_tuning = False
coordinate_descent_check_all_directions = False
epilogue_fusion = True
pattern_matcher = True
shape_padding = True
layout_optimization = True
conv_1x1_as_mm = False
force_fuse_int_mm_with_mul = False
use_mixed_mm = True
dynamic_scale_rblock = True
allow_buffer_reuse = True
memory_planning = False
split_reductions = True
assert_indirect_indexing = True
benchmark_kernel = False
cpp_wrapper = False
unsafe_ignore_unsupported_triton_autotune_args = False
emulate_precision_casts = False
freezing = False
size_asserts = True
nan_asserts = False
implicit_fallbacks = True
post_grad_custom_pre_pass = None
post_grad_custom_post_pass = None
joint_custom_pre_pass = None
joint_custom_post_pass = None
pre_grad_custom_pass = None
# Settings of code that Triton compiles, and of generated C++, of which there is none. They change nothing.
triton = Group(
    f"{__name__}.triton", cudagraphs=False, cudagraph_trees=True, unique_kernel_names=True, descriptive_names="original_aten",
    autotune_pointwise=True, persistent_reductions=True,
)  # fmt: skip
cpp = Group(f"{__name__}.cpp", threads=-1, simdlen=None, min_chunk_size=512, enable_kernel_profile=False, weight_prepack=True)

_PASS = "the engine's passes are not exchangeable; a backend of torch.compile may change graphs"
make_settings(
    __name__,
    fixed={
        "emulate_precision_casts": "TELETENSOR_EXACT_PROGRAMS=1 in the environment selects the bits of single calls",
        "freezing": "parameters are read at every run",
        "nan_asserts": "use torch.autograd.detect_anomaly()",
        "cpp_wrapper": "no wrapper is generated",
        **dict.fromkeys((
            "post_grad_custom_pre_pass", "post_grad_custom_post_pass", "joint_custom_pre_pass", "joint_custom_post_pass",
            "pre_grad_custom_pass",
        ), _PASS),
    },
)  # fmt: skip
