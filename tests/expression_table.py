"""Tables of expressions with PyTorch 2.15's results: values to six digits, or the exception's name."""

from __future__ import annotations

import math
import warnings

import pytest


def plain(value):
    """Converts tensors and tuples to lists, and nonfinite numbers to their names."""
    value = value.detach().tolist() if hasattr(value, "detach") else value
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def agrees(found, expected) -> bool:
    """Equality, approximate for numbers."""
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(agrees, found, expected))
    if isinstance(expected, float) or (isinstance(expected, int) and not isinstance(expected, bool)):
        return isinstance(found, (int, float)) and found == pytest.approx(expected, rel=2e-5, abs=2e-6)
    return found == expected


def check_row(torch, setup: str, code: str, expected) -> None:
    """Runs the setup, evaluates the code, and compares the result."""
    names = {"torch": torch, "nn": torch.nn, "F": torch.nn.functional, "optim": torch.optim, "math": math}
    exec(setup, names)  # noqa: S102 - code of the tables
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(expected, type):
            with pytest.raises(expected):
                eval(code, names)  # noqa: S307
        else:
            found = plain(eval(code, names))  # noqa: S307
            assert agrees(found, expected), found
