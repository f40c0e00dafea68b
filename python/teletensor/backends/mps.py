"""torch.backends.mps: Apple's GPUs, which the engine does not use."""

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_available() -> bool:
    """Always False."""
    return False


def is_built() -> bool:
    """Always False."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Always False: there is no such device. The arguments have no effect."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Always False, like is_macos_or_newer."""
    return False
