"""torch.compiler.config: settings of compilation. They can be set and read and have no effect: see torch._dynamo.config."""

job_id: str | None = None
dynamic_shapes = True
assume_static_by_default = True
automatic_dynamic_shapes = True
dynamic_sources = ""
unbacked_sources = ""
force_disable_caches = False
enable_guard_collectives = False
