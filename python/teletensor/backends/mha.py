"""torch.backends.mha: whether TransformerEncoder drops padding in inference, as PyTorch does."""

_fastpath = True


def get_fastpath_enabled() -> bool:
    """The value that set_fastpath_enabled set."""
    return _fastpath


def set_fastpath_enabled(value: bool) -> None:
    """Sets the result of get_fastpath_enabled()."""
    global _fastpath
    _fastpath = bool(value)
