"""Importing this package imports teletensor.as_torch, and returns teletensor.functorch."""

import importlib
import sys

del sys.modules[__name__]
importlib.import_module("teletensor.as_torch")
sys.modules[__name__] = importlib.import_module(__name__)
