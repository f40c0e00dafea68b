"""Parameters of PyTorch's functions that have no effect in the modules that exist for its names, by file."""

_FILES = {
    "_toplevel/batch_norm.py": "eps input weight",  # eps is part of invstd; the statistics have the input's size
    "_toplevel/queries.py": "input",  # the answer is the same for all tensors
}
UNUSED_NAMES = {(file, name) for file, names in _FILES.items() for name in names.split()}
