"""torch.backends.nnpack: whether the client uses the library."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Always False: the engine computes."""
    return False
