"""Runs the cases in this folder with PyTorch and writes their values to values.json, for test_values.py.

.venv-peers/bin/python -m tests.python.quantization.record
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

from ..names import record as shared
from ..names.record import error  # noqa: F401 - for the cases

FAMILIES = ("configurations", "flows", "fused", "graphs", "modules", "observers", "training")
VALUES = Path(__file__).with_name("values.json")
STATE = Path(__file__).with_name("state.pt")  # of the first model of flows.static, written by PyTorch


def cases() -> dict[str, Any]:
    """All cases of this folder."""
    return shared.cases(__package__, FAMILIES)


def run(case: Any, torch: ModuleType) -> Any:
    """The plain value of a case, without warnings of deprecated names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return plain(case(torch))


def plain(value: Any) -> Any:
    """A value as lists, dicts, numbers and text. Quantized tensors become their integers, scale and zero point."""
    if getattr(value, "is_quantized", False):
        if "channel" in str(value.qscheme()):
            scales = [
                plain(value.q_per_channel_scales()),
                plain(value.q_per_channel_zero_points()),
                value.q_per_channel_axis(),
            ]
        else:
            scales = [value.q_scale(), value.q_zero_point()]
        return [str(value.dtype).rpartition(".")[2], plain(value.int_repr()), *scales]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return shared.plain(value)


def values(torch: ModuleType, *sizes: int, offset: float = 0.0) -> Any:
    """Numbers that are the same in both libraries: multiples of 1/64 between -1.5 and 1.5."""
    count = 1
    for n in sizes:
        count *= n
    return (((torch.arange(count) * 37 + 11) % 193 - 96).to(torch.float32) / 64 + offset).reshape(sizes)


def filled(torch: ModuleType, module: Any) -> Any:
    """The module with given parameters and statistics."""
    with torch.no_grad():
        for i, (name, t) in enumerate(module.state_dict().items()):
            if t.is_floating_point():
                t.copy_(values(torch, *t.shape) / (i % 4 + 2) + (1.75 if "running_var" in name else 0.125))
    return module


def ao(torch: ModuleType, name: str) -> Any:
    """A module of torch.ao."""
    return importlib.import_module(f"{torch.__name__}.ao.{name}")


def main(torch: ModuleType) -> None:
    """Writes the values of all cases."""
    torch.backends.quantized.engine = "fbgemm"
    shared.write({name: run(case, torch) for name, case in cases().items()}, VALUES)
    flows = importlib.import_module(f"{__package__}.flows_cases")
    torch.save(flows.quantized(torch, "x86")[2].state_dict(), STATE)


if __name__ == "__main__":
    import torch

    main(torch)
