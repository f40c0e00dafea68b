"""Programs of libraries that import PyTorch, run with teletensor and with PyTorch and compared.

    python -m tests.conformance.libraries [--only NAME...]

A program is a module of this folder with functions whose names end in the kind of the test: _forward, _backward,
_training, _generate or _other. Each returns values: tensors, numbers, text, lists and dicts of them.
"""
