"""Macros in the arguments of ranks, and variables of the environment."""

from __future__ import annotations

import os
import string
from typing import Any

from .distributed import get_socket_with_port

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]


def get_env_variable_or_raise(env_name: str) -> str:
    """Returns a variable of the environment. Raises ValueError if it is not set."""
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


class macros:  # noqa: N801 - PyTorch's name
    """``macros.local_rank``, in an argument of a rank, stands for the rank's number on its host."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[Any], local_rank: str) -> list[Any]:
        """Replaces the macro in the texts among the arguments."""
        return [string.Template(a).safe_substitute(local_rank=local_rank) if isinstance(a, str) else a for a in args]
