"""torch.distributed.tensor.experimental: attention over sequences that are divided among ranks."""

from ._attention import context_parallel

__all__ = ["context_parallel"]
