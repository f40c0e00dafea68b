"""torch._dynamo.config: settings of graph capture.

``recompile_limit``, ``disable``, ``suppress_errors``, ``error_on_recompile``, ``error_on_graph_break``, ``dynamic_shapes``,
``assume_static_by_default``, ``automatic_dynamic_shapes``, ``specialize_int``, ``specialize_float`` and ``capture_scalar_outputs``
have an effect.
The others can be set and read: modules are always guarded.
"""

import sys

from ._config import Settings

verbose = False
suppress_errors = False
disable = False
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
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
allow_unspec_int_on_nn_module = False
skip_fwd_side_effects_in_bwd_under_checkpoint = False
compiled_autograd = False
numpy_default_float = "float64"

sys.modules[__name__].__class__ = Settings
