"""torch.backends.opt_einsum: settings without effect. teletensor's einsum multiplies pairs from left to right."""

enabled = False
strategy = None


def is_available() -> bool:
    """Always False: einsum does not use opt_einsum."""
    return False


def get_opt_einsum() -> None:
    """None: einsum does not use opt_einsum."""
