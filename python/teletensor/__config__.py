"""torch.__config__: the client's build and the engine's libraries, as text."""

from __future__ import annotations

import platform

from ._version import __version__

__all__ = ["parallel_info", "show"]


def show() -> str:
    """The client's version and platform. The engine selects its libraries when it starts; see `teletensor doctor`."""
    return f"teletensor {__version__}:\n  - client: Python {platform.python_version()} on {platform.platform()}\n"


def parallel_info() -> str:
    """The number of threads of the engine."""
    from ._functions import get_num_threads

    return f"teletensor/Parallel:\n\tget_num_threads() : {get_num_threads()}\n"
