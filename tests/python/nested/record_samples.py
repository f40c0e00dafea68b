"""Records results of PyTorch for samples of its operator database with jagged nested tensors: samples.json, samples.npz.

    .venv-peers/bin/python tests/python/nested/record_samples.py

For each operator a few samples are recorded with which PyTorch computes a result, and the gradients of the nested tensors.
Offsets are numbered: arguments with the same number have the same offsets tensor.
"""

from __future__ import annotations

import json
import sys
import types
import unittest
import warnings
from pathlib import Path

import numpy as np
import torch

FOLDER = Path(__file__).resolve().parent
# Operators of which PyTorch crashes are left out too: they are among the rows of cases.py.
# Of operators that compute each element by itself two samples are recorded, of others more.
POINTWISE, OTHERS = 2, 6
LEFT_OUT = ("masked.", "special.", "signal.", "jiterator", "ops.", "_", "fft.", "linalg.", "sparse.", "split", "narrow")


class Recorder:
    """The arrays of the samples, and the offsets that were seen."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.offsets: dict[int, int] = {}
        self.kept: list = []

    def array(self, tensor: torch.Tensor) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = tensor.detach().contiguous().numpy()
        return name

    def encode(self, value):
        if isinstance(value, torch.Tensor) and value.is_nested:
            source = value._offsets if value._lengths is None else value._lengths
            number = self.offsets.setdefault(id(source), len(self.offsets))
            self.kept.append(source)  # its id is not used again
            lengths = None if value._lengths is None else self.array(value._lengths)
            return {"nested": [self.array(value._values), number, self.array(value._offsets), lengths, value._ragged_idx]}
        if isinstance(value, torch.Tensor):
            return {"tensor": self.array(value)}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, (list, tuple)):
            return {"list": [self.encode(v) for v in value]}
        if value is None or isinstance(value, (bool, int, float, str)):
            return {"value": value}
        raise TypeError(f"cannot record {value!r}")


def leaves(value) -> list:
    """The nested tensors among arguments."""
    if isinstance(value, torch.Tensor):
        return [value] if value.is_nested and value.is_floating_point() else []
    return [t for v in value for t in leaves(v)] if isinstance(value, (list, tuple)) else []


def result_of(op, sample):
    """The result, and the gradients of the nested arguments if there are any."""
    nested = leaves([sample.input, *sample.args, *sample.kwargs.values()])
    for tensor in nested:
        tensor.requires_grad_(True)
    result = op(sample.input, *sample.args, **sample.kwargs)
    outputs = [t for t in (result if isinstance(result, (list, tuple)) else [result]) if isinstance(t, torch.Tensor) and t.requires_grad]
    grads = []
    if outputs:
        total = sum((t.values() if t.is_nested else t).sin().sum() for t in outputs)
        grads = list(torch.autograd.grad(total, nested, allow_unused=True))
    return result, grads


def spread(samples: list, count: int) -> list:
    """Samples at even distances."""
    return samples if len(samples) <= count else [samples[i * len(samples) // count] for i in range(count)]


def record(recorder: Recorder) -> list:
    from torch.testing._internal.opinfo.definitions.nested import njt_op_db

    rows = []
    for op in njt_op_db:
        if op.full_name.startswith(LEFT_OUT) or op.full_name.count(".") > 2:
            continue
        try:
            samples = [s for s in op.sample_inputs("cpu", torch.float32, requires_grad=False)]
        except Exception:
            continue
        pointwise = type(op).__name__ in ("UnaryUfuncInfo", "BinaryUfuncInfo")
        found = 0
        for sample in spread(samples, 3 * (POINTWISE if pointwise else OTHERS)):
            if found == (POINTWISE if pointwise else OTHERS):
                break
            state = len(recorder.arrays)
            try:
                arguments = recorder.encode([sample.input, *sample.args])
                keywords = {k: recorder.encode(v) for k, v in sample.kwargs.items()}
                result, grads = result_of(op, sample)
                recorded = recorder.encode(result), recorder.encode(grads)
            except Exception as error:
                if "--errors" in sys.argv:
                    print(op.name, type(error).__name__, str(error)[:150])
                for name in list(recorder.arrays)[state:]:
                    del recorder.arrays[name]
                continue
            if any("rand" in n or "dropout" in n or n == "bernoulli" for n in (op.name,)):
                recorded = None, None
            rows.append([op.name, op.variant_test_name, arguments, keywords, *recorded])
            found += 1
    return rows


def main() -> None:
    module = types.ModuleType("expecttest")
    module.TestCase = unittest.TestCase
    sys.modules.setdefault("expecttest", module)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    recorder = Recorder()
    rows = record(recorder)
    (FOLDER / "samples.json").write_text("[\n" + ",\n".join(json.dumps(r) for r in rows) + "\n]\n")
    np.savez_compressed(FOLDER / "samples.npz", **recorder.arrays)
    print(len(rows), "samples of", len({r[0] for r in rows}), "operators")


if __name__ == "__main__":
    main()
