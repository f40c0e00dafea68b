"""The engine that the distribution teletensor-engine installs, for a client that is to start a private one."""

from __future__ import annotations

import importlib.util
import os


def binary() -> str:
    """Returns the path of teletensord in the package ``teletensor_engine``; "" if it is not installed.

    The package is not imported, and may be in another folder of ``sys.path`` than this one.
    """
    try:
        found = importlib.util.find_spec("teletensor_engine")
    except (ImportError, ValueError):  # a module without __spec__
        return ""
    for folder in (found and found.submodule_search_locations) or ():
        path = os.path.join(folder, "bin", "teletensord")
        if os.access(path, os.X_OK):
            return path
    return ""
