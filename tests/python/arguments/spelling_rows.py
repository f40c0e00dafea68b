"""Compares two expressions."""


def check_same(names: dict, code: str, same: str) -> None:
    """Evaluates both; fails if their values, shapes or dtypes differ."""
    torch = names["torch"]
    value, expected = eval(code, names), eval(same, names)  # noqa: S307 - the rows of a test
    value = value if isinstance(value, torch.Tensor) else torch.tensor(value)
    assert value.shape == expected.shape and value.dtype is expected.dtype and torch.allclose(value.double(), expected.double())
