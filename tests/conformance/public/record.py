"""Writes PyTorch's public names to names.txt: a line `module: name name ...` per module.

    .venv-peers/bin/python -m tests.conformance.public.record

A module's names are its `__all__`, else those of its attributes that are neither modules nor imported from elsewhere.
"""

from __future__ import annotations

import importlib
import warnings
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


def main() -> None:
    """Writes the file."""
    warnings.simplefilter("ignore")
    import torch

    lines = [f"# public names of PyTorch {torch.__version__.partition('+')[0]}; see record.py"]
    for module in MODULES:
        owner = torch.Tensor if module == "torch.Tensor" else importlib.import_module(module)
        lines.append(f"{module}: {' '.join(names_of(owner))}")
    NAMES.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
