"""Why values of programs differ from PyTorch's, by (library, function)."""

REASONS: dict[tuple[str, str], str] = {}
