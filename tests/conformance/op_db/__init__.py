"""PyTorch's own operator samples (`op_db`) through teletensor, with PyTorch as the oracle.

`python -m tests.conformance.op_db [--names ...] [--json FILE]` runs each sample through both in one process and compares
values, dtypes, sizes, first derivatives, forms (methods, in place, out=), aliasing and the exceptions of bad input.
"""
