"""PyTorch's own tests of torch.distributed, torch/testing/_internal/distributed/distributed_test.py, run with teletensor.

The file is read from the installed PyTorch (.venv-peers) and executed with `torch` naming teletensor. `stand_ins` has the
parts of torch.testing._internal that the file imports, `worker` runs a test on one rank, `__main__` runs all tests and
writes docs/distributed-checklist.md.
"""
