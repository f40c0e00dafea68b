"""Compares the signatures of our public callables with PyTorch's declarations.

`make signatures` reads the declarations of the installed PyTorch into `declarations.txt`, compares them with ours and
writes `docs/signatures.md`. `tests/conformance/test_signatures.py` repeats the comparison from the recorded file, without
PyTorch.
"""
