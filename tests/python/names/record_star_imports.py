"""Writes the names that star imports give in PyTorch: python -m tests.python.names.record_star_imports, with PyTorch installed.

Left out: modules of Python's library and classes of typing that PyTorch's files happen to import.
"""

import json
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
INCIDENTAL = set("Callable DType Optional TYPE_CHECKING dataclasses grad importlib np torch math warnings".split())


def names_of(package: str, module: str) -> list[str]:
    """The names that a star import of a module gives."""
    namespace: dict = {}
    exec(f"from {package}.{module} import *", namespace)
    return sorted(namespace.keys() - {"__builtins__"})


if __name__ == "__main__":
    found = {}
    for module in MODULES.split():
        names = names_of("torch", module)
        found[module] = [n for n in names if module != "nn.functional" or n not in INCIDENTAL]
    rows = ",\n".join(f"{json.dumps(module)}: {json.dumps(names)}" for module, names in found.items())
    Path(__file__).with_name("star_imports.json").write_text(f"{{\n{rows}\n}}\n")
