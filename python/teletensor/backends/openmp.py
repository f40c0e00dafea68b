"""torch.backends.openmp: whether the client uses the library."""


def is_available() -> bool:
    """Always False: the engine computes."""
    return False
