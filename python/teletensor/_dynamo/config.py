"""torch._dynamo.config: settings of graph capture.

These have an effect: ``recompile_limit`` (also as ``cache_size_limit``), ``accumulated_recompile_limit`` (also as
``accumulated_cache_size_limit``), ``fail_on_recompile_limit_hit``, ``disable``, ``suppress_errors``, ``error_on_recompile``,
``error_on_graph_break``, ``dynamic_shapes``, ``assume_static_by_default``, ``automatic_dynamic_shapes``, ``specialize_int``,
``specialize_float``, ``capture_scalar_outputs``, ``capture_dynamic_output_shape_ops`` and ``reorderable_logging_functions``, of which
print is one: if it is there, calls of it with texts and numbers are part of graphs. ``verbose`` and ``optimize_ddp`` change logs and speed
only in PyTorch, and nothing here. The others keep their values: setting another one raises NotImplementedError. Settings that are not
listed do not exist.
"""

from .._config_module import make_settings

verbose = False
suppress_errors = False
disable = False
recompile_limit = 8
accumulated_recompile_limit = 256
fail_on_recompile_limit_hit = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
automatic_dynamic_shapes = True
assume_static_by_default = True
specialize_int = False
specialize_float = False
dynamic_shapes = True
guard_nn_modules = True
inline_inbuilt_nn_modules = True
optimize_ddp = True
error_on_recompile = False
error_on_graph_break = False
allow_rnn = True
allow_unspec_int_on_nn_module = False
force_parameter_static_shapes = True
force_nn_module_property_static_shapes = True
skip_fwd_side_effects_in_bwd_under_checkpoint = False
compiled_autograd = False
trace_numpy = True
numpy_default_float = "float64"
numpy_default_int = "int64"
numpy_default_complex = "complex128"
prefer_deferred_runtime_asserts_over_guards = False
only_allow_pt2_compliant_ops = False
rewrite_assert_with_torch_assert = True
verify_correctness = False
minimum_call_count = 1
replay_side_effects = True
reorderable_logging_functions: set = set()

_NUMPY = "arrays of NumPy have NumPy's dtypes"
make_settings(
    __name__,
    aliases={
        "cache_size_limit": (__name__, "recompile_limit"), "accumulated_cache_size_limit": (__name__, "accumulated_recompile_limit"),
    },
    fixed={
        "guard_nn_modules": "modules are always guarded",
        "inline_inbuilt_nn_modules": "modules are always executed with the function that calls them",
        "allow_rnn": "recurrent modules are parts of graphs",
        "allow_unspec_int_on_nn_module": "ints that modules have are constants",
        "force_parameter_static_shapes": "sizes of parameters are constants",
        "force_nn_module_property_static_shapes": "sizes of tensors that modules have are constants",
        "skip_fwd_side_effects_in_bwd_under_checkpoint": "side effects under checkpoint() end the graph",
        "compiled_autograd": "a backward pass is compiled if it is called within the compiled function",
        "trace_numpy": "functions of NumPy run as Python or as functions of tensors, whichever has their result",
        "numpy_default_float": _NUMPY, "numpy_default_int": _NUMPY, "numpy_default_complex": _NUMPY,
        "prefer_deferred_runtime_asserts_over_guards": "decisions by sizes are guards",
        "only_allow_pt2_compliant_ops": "an operator is a part of the graph if it has a fake implementation",
        "rewrite_assert_with_torch_assert": "a decision by values ends the graph",
        "verify_correctness": "tests/conformance/compiled compares results with those of single calls",
        "minimum_call_count": "a graph of any size is compiled",
        "replay_side_effects": "writes to objects always take place",
    },
)  # fmt: skip
