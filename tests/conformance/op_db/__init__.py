"""Runs PyTorch's operator samples (`op_db`) through teletensor, with PyTorch as the oracle.

`python -m tests.conformance.op_db [--names ...] [--json FILE]` runs each sample through both packages in one process
and compares values, dtypes, sizes, first derivatives, variants (methods, in place, out=), aliasing and the exceptions
for invalid input.
"""
