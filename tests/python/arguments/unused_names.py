"""Parameters, by file, that PyTorch's functions have and that have no effect in teletensor."""

_FILES = {
    "_library/aten.py": "return_counts return_inverse",  # ATen's operator returns both in any case
    "_ops/batch_norm.py": "eps input weight",  # eps is part of invstd; the statistics have the input's size
    # parameters of an iteration, which the engine does not use
    "linalg/_lobpcg.py": "ortho_bparams ortho_fparams ortho_iparams",
    "_ops/tensor_queries.py": "input",  # the answer is the same for all tensors
    "ao/nn/quantized/utils.py": "output_scale output_zero_point ref_module",  # of abstract methods
    "torchao/quantization/quant_primitives.py": "ctx",
    "_older_paths.py": "spec",  # of interfaces of importlib
    "_lazy.py": "path target",
    "ao/ns/_numeric_suite.py": "x",  # of abstract methods
    "ao/pruning/sparsifier/base_sparsifier.py": "kwargs module tensor_name use_path",  # of an abstract method; PyTorch ignores the last
    "ao/quantization/_affine.py": "input",
    "ao/quantization/_fake_quantize.py": "kwargs x",  # of abstract methods
    "ao/quantization/_observer_base.py": "kwargs x",
    "_functorch/vmap.py": "batch_size func name",  # of functions that libraries replace
    "utils/_pytree/_builtins.py": "context",  # of sequences, which need none
    "autograd/profiler.py": "use_kineto",  # selects a library that PyTorch records with
    # parameters of hooks, and of a storage reader's interface
    "distributed/algorithms/_checkpoint/checkpoint_wrapper.py": "args module",
    "distributed/checkpoint/hf_storage.py": "metadata thread_count_consolidation",  # of an interface; one thread writes
    "distributed/checkpoint/format_utils.py": "args kwargs metadata",
    "utils/flop_counter.py": "mods outputs",  # mods has no effect in PyTorch either
    "masked/_tensor.py": "data mask requires_grad",  # of __init__, after __new__
    "masked/_functions.py": "args kwargs",  # of a masked function whose mask is computed
    "nn/attention/_block_mask.py": "head token_q token_kv",  # a mask function that masks nothing
    "nn/attention/flex_attention.py": "kernel_options",  # describes PyTorch's kernels
    "nn/_functional_names.py": "types",  # a type in annotations
    # parameters of abstract methods, and of functions that only represent signatures
    "overrides.py": "args kwargs types",
    # parameters of the methods that compute one step of an optimizer, by its kind
    **dict.fromkeys(("optim/adadelta.py", "optim/rmsprop.py"), "state"),
    "optim/rprop.py": "group state",
    "optim/lr_scheduler.py": "epoch",  # of a method that subclasses replace
    "optim/_torch_names.py": "single_tensor_fn",  # of a decorator that returns the function
    **dict.fromkeys(("optim/adagrad.py", "optim/adamax.py", "optim/asgd.py", "optim/nadam.py", "optim/radam.py"), "group"),
    "package/__init__.py": "obj",  # no object is from a package
    "profiler/_execution_trace.py": "types",
    "profiler/_flops.py": "inputs outputs",  # parameters of functions that share a signature
    "profiler/profiler.py": "use_python_export",  # traces are always written by Python
    "fx/experimental/_number_mode.py": "args func kwargs types",  # of a mode that receives calls and does nothing
    **dict.fromkeys(("_symbolic_float.py", "fx/experimental/_numbers.py"), "memo"),
    "fx/experimental/symbolic_shapes.py": "s skip",  # no int is that of a nested tensor; skip selects a line of PyTorch's message
    "utils/_selective_checkpoint.py": "types",  # of modes that receive calls
    "utils/_python_dispatch.py": "types",  # of abstract methods
}
UNUSED_NAMES = {(file, name) for file, names in _FILES.items() for name in names.split()}
