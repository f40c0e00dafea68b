"""torch._custom_ops: former names of torch.library."""

from .library import define, get_ctx, impl, impl_abstract

__all__ = ["define", "get_ctx", "impl", "impl_abstract"]
