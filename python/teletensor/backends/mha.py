"""torch.backends.mha: a setting of modules for attention that has no effect."""

_fastpath = True


def get_fastpath_enabled() -> bool:
    """The value that set_fastpath_enabled set."""
    return _fastpath


def set_fastpath_enabled(value: bool) -> None:
    """Sets the result of get_fastpath_enabled()."""
    global _fastpath
    _fastpath = bool(value)
