"""PyTorch's unit tests, from a checkout of github.com/pytorch/pytorch, run with teletensor and with PyTorch.

`plugin` is a pytest plugin that presents a package as `torch` to the unchanged files and records the outcome of each test,
`execution` runs a file, `comparison` sorts the tests by the outcomes with both packages, `__main__` runs the files and writes
docs/conformance.md.
"""
