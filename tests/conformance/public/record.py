"""Writes PyTorch's public names to names.txt: a line `module: name name ...` per module.

    .venv-peers/bin/python -m tests.conformance.public.record
    .venv-peers/bin/python -m tests.conformance.public.record --attributes FILE

With --attributes, writes all attributes of all modules whose paths have no underscore to FILE instead.

A module's names are its `__all__`, else those of its attributes that are neither modules nor imported from elsewhere.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

NAMES = Path(__file__).with_name("names.txt")
MODULES = """
torch torch.Tensor torch.nn torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.rnn torch.nn.utils.parametrize
torch.nn.utils.prune torch.nn.parallel torch.optim torch.optim.lr_scheduler torch.optim.swa_utils torch.utils.data
torch.utils.checkpoint torch.autograd torch.autograd.functional torch.autograd.graph torch.linalg torch.fft torch.special
torch.signal.windows torch.func torch.amp torch.cuda torch.cpu torch.accelerator torch.backends torch.profiler torch.fx
torch.export torch.onnx torch.jit torch.library torch.overrides torch.distributions torch.distributions.constraints
torch.distributions.transforms torch.distributed torch.distributed.device_mesh torch.distributed.tensor torch.sparse
torch.nested torch.masked torch.random torch.testing torch.serialization torch.storage torch.multiprocessing torch.futures
torch.hub torch.types torch.nn.attention torch.nn.attention.flex_attention torch.compiler torch.utils torch.utils._pytree
torch.package torch.monitor torch.quantization torch.ao.quantization torch.ao.pruning torch.ao.nn.quantized
torch.ao.nn.quantized.dynamic torch.ao.nn.quantized.functional torch.ao.nn.quantized.reference torch.ao.nn.qat
torch.ao.nn.intrinsic torch.ao.nn.intrinsic.qat torch.ao.nn.intrinsic.quantized torch.ao.nn.quantizable
torch.nn.quantized.functional torch.nn.quantized.dynamic
torch.nn.qat torch.nn.intrinsic torch.distributed.fsdp torch.distributed.checkpoint
torch.distributed.pipelining torch.distributed.optim torch.distributed.rpc torch.mps torch.xpu torch.distributed.argparse_util
torch.distributed.run torch.distributed.launcher.api torch.distributed.elastic.agent.server torch.distributed.elastic.events
torch.distributed.elastic.metrics torch.distributed.elastic.multiprocessing torch.distributed.elastic.multiprocessing.errors
torch.distributed.elastic.rendezvous torch.distributed.elastic.timer torch.distributed.elastic.utils
torch.distributed.elastic.utils.data torch.distributed.elastic.utils.distributed torch.distributed.elastic.utils.store
""".split()
SCRIPTS = ("torch.utils.benchmark.examples", "torch.utils.model_dump")  # whose import runs them
# Attributes of modules without `__all__` that are imported from elsewhere.
IMPORTED = """
ABC Action ArgumentParser Callable DType Iterable Optional REMAINDER RankType abstractmethod log logger timedelta
""".split()


def names_of(owner: object) -> list[str]:
    """The public names of a module, or of the class Tensor."""
    listed = getattr(owner, "__all__", None)
    if listed is None:
        imported = IMPORTED if isinstance(owner, ModuleType) else ()
        listed = [n for n in dir(owner) if not isinstance(getattr(owner, n, None), ModuleType) and n not in imported]
    return sorted({n for n in listed if not n.startswith("_")})


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """The package and the modules in it that can be imported and have no underscore in their paths."""
    yield package
    for found in pkgutil.iter_modules(getattr(package, "__path__", ()), package.__name__ + "."):
        if not found.name.rpartition(".")[2].startswith("_") and not found.name.startswith(SCRIPTS):
            try:
                module = importlib.import_module(found.name)
            except Exception:  # of an optional library
                continue
            yield from modules_of(module)


def attributes_of(module: ModuleType) -> list[str]:
    """The names in dir(), without Python's own."""
    return [name for name in dir(module) if not (name.startswith("__") and name.endswith("__"))]


def main() -> None:
    """Writes the file."""
    parser = argparse.ArgumentParser(prog="tests.conformance.public.record", description=__doc__)
    parser.add_argument("--attributes", type=Path, metavar="FILE", help="write the attributes of all modules to FILE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch

    if options.attributes:
        lines = [f"{module.__name__}: {' '.join(attributes_of(module))}" for module in modules_of(torch)]
        options.attributes.write_text("\n".join(lines) + "\n")
        return
    lines = [f"# public names of PyTorch {torch.__version__.partition('+')[0]}; see record.py"]
    for module in MODULES:
        owner = torch.Tensor if module == "torch.Tensor" else importlib.import_module(module)
        lines.append(f"{module}: {' '.join(names_of(owner))}")
    NAMES.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
