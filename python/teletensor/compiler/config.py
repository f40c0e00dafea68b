"""torch.compiler.config: settings of compilation.

``dynamic_shapes``, ``assume_static_by_default`` and ``automatic_dynamic_shapes`` are those of torch._dynamo.config. With
``force_disable_caches``, captures are neither stored for other processes nor those of earlier ones used. ``job_id``,
``cache_key_tag``, ``enable_guard_collectives`` and ``force_cudagraph_gc`` concern files and GPU graphs that do not exist here, and
change nothing. The others keep their values: setting another one raises NotImplementedError.
"""

from .._config_module import make_settings

job_id: str | None = None
cache_key_tag = ""
force_disable_caches = False
force_cudagraph_gc = False
enable_guard_collectives = False
dynamic_sources = ""
static_sources = ""
unbacked_sources = ""

make_settings(
    __name__,
    aliases={
        name: ("teletensor._dynamo.config", name) for name in ("dynamic_shapes", "assume_static_by_default", "automatic_dynamic_shapes")
    },
    fixed={
        "dynamic_sources": "use torch._dynamo.mark_dynamic()", "static_sources": "use torch._dynamo.mark_static()",
        "unbacked_sources": "use torch._dynamo.mark_unbacked()",
    },
)  # fmt: skip
