"""Importing this package imports teletensor.as_torch, and returns teletensor."""

import importlib
import sys

del sys.modules[__name__]  # teletensor.as_torch raises ImportError if another `torch` is imported
try:
    importlib.import_module("teletensor.as_torch")
except ModuleNotFoundError as error:
    if error.name != "teletensor":
        raise
    raise ImportError("this `torch` is teletensor's: install the package teletensor, such as its wheel") from None
sys.modules[__name__] = importlib.import_module(__name__)
