"""Benchmarks, which measure captures and not what earlier runs have stored of them."""

import os

os.environ.setdefault("TELETENSOR_STORED_CAPTURES", "0")
