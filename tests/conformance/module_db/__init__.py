"""Runs PyTorch's module and optimizer samples (`module_db`, `optim_db`) through teletensor, with PyTorch as the oracle.

`python -m tests.conformance.module_db [--names ...] [--json FILE] [--page FILE]` runs each sample through both packages
in one process. Modules: values, gradients, state dicts in both directions, hooks, copies, casts, construction on "meta",
text, attributes and errors. Optimizers: parameters and state after several steps, options, hooks, schedulers and errors.
"""
