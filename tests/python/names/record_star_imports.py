"""Writes the names that star imports give in PyTorch: python -m tests.python.names.record_star_imports, with PyTorch installed.

Left out: modules of Python's library and classes of typing that PyTorch's files happen to import.
"""

import json
import sys
import types
from pathlib import Path

MODULES = """
    nn nn.functional nn.modules nn.modules.activation nn.modules.batchnorm nn.modules.conv nn.modules.instancenorm
    nn.modules.linear nn.parallel nn.utils optim optim.lr_scheduler optim.swa_utils distributions utils.data fx
    ao.nn.intrinsic ao.nn.intrinsic.quantized ao.nn.quantized ao.nn.quantized.functional ao.nn.quantized.reference
    ao.quantization.backend_config.backend_config ao.quantization.fuse_modules ao.quantization.fuser_method_mappings
    ao.quantization.fx.tracer ao.quantization.quantize autograd autograd.forward_ad autograd.functional cuda.jiterator
    distributed.checkpoint.api distributed.fsdp distributed.fsdp.api distributed.fsdp.fully_sharded_data_parallel
    distributed.rpc.constants distributed.rpc.options distributions.categorical distributions.gamma distributions.normal
    nn.init nn.modules.lazy nn.modules.normalization nn.modules.transformer nn.modules.utils nn.parallel.data_parallel
    nn.parallel.distributed nn.parameter nn.utils.clip_grad onnx.operators onnx.symbolic_helper onnx.symbolic_opset11
    onnx.symbolic_opset12 onnx.symbolic_opset9 optim.adadelta optim.adagrad optim.adam optim.adamax optim.adamw optim.asgd
    optim.nadam optim.radam optim.rmsprop optim.rprop optim.sgd utils.backend_registration utils.data.datapipes.map
    utils.data.dataset utils.data.sampler
"""
# Modules that lack some of PyTorch's names here, or give more. "__init__" is the package itself.
FURTHER = """
    __init__ nn.utils.prune utils.checkpoint fft cuda cpu onnx jit library random utils distributed.checkpoint mps xpu ao ao.nn
    ao.nn.intrinsic.qat ao.nn.intrinsic.quantized.dynamic ao.nn.qat ao.nn.qat.dynamic ao.nn.quantizable ao.nn.quantized.dynamic
    ao.nn.sparse ao.pruning ao.quantization.backend_config ao.quantization.quantization_mappings autograd.profiler cuda.amp
    cuda.amp.grad_scaler cuda.graph_annotations cuda.nccl cuda.profiler cuda.sparse cuda.streams cuda.tunable functional
    export.dynamic_shapes export.exported_program nn.modules.loss nn.modules.module nn.common_types onnx.errors
    profiler.profiler distributed.autograd distributed.nn distributed.nn.functional utils.dlpack utils.throughput_benchmark
    utils.deterministic optim.optimizer mtia mps.profiler utils.benchmark utils.collect_env utils.mobile_optimizer
    distributed.algorithms distributed.launcher multiprocessing.reductions
"""
INCIDENTAL = set("Callable DType Optional TYPE_CHECKING dataclasses grad importlib np torch math warnings".split())


def names_of(package: str, module: str) -> list[str]:
    """The names that a star import of a module gives."""
    namespace: dict = {}
    exec(f"from {package}.{module} import *", namespace)
    return sorted(namespace.keys() - {"__builtins__"})


def own_names_of(package: str, module: str) -> list[str]:
    """names_of() without what comes from Python's library or other packages."""
    namespace: dict = {}
    path = package if module == "__init__" else f"{package}.{module}"
    exec(f"from {path} import *", namespace)
    namespace.pop("__builtins__")

    def is_own(value: object) -> bool:
        origin = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None) or package
        root = str(origin).partition(".")[0]
        return isinstance(value, types.BuiltinFunctionType) or root not in sys.stdlib_module_names | {"numpy"} | {"typing_extensions"}

    return sorted(name for name, value in namespace.items() if is_own(value) and name not in (package, *INCIDENTAL))


if __name__ == "__main__":
    found = {}
    for module in MODULES.split():
        names = names_of("torch", module)
        found[module] = [n for n in names if module != "nn.functional" or n not in INCIDENTAL]
    found |= {f"further {module}": own_names_of("torch", module) for module in FURTHER.split()}
    rows = ",\n".join(f"{json.dumps(module)}: {json.dumps(names)}" for module, names in found.items())
    Path(__file__).with_name("star_imports.json").write_text(f"{{\n{rows}\n}}\n")
