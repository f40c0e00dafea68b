"""safetensors.torch: files and bytes of tensors, and of models with shared parameters."""

import tempfile
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

from .tools import fill, randn


def tensors_other():
    tensors = {
        "a": randn(2, 3),
        "half": randn(4).half(),
        "brain": randn(3, 1).bfloat16(),
        "whole": torch.arange(5),
        "flags": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "double": randn(2).double(),
        "bytes": torch.arange(4, dtype=torch.uint8),
    }
    data = save(tensors, metadata={"made": "by"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.safetensors")
        save_file(tensors, path, metadata={"made": "by"})
        same = path.read_bytes() == data
        with safe_open(path, framework="pt") as f:
            opened = [sorted(f.keys()), f.metadata(), f.get_tensor("a"), f.get_slice("a")[:, 1:]]
        loaded = load_file(path)
    return [len(data), same, dict(sorted(loaded.items())), dict(sorted(load(data).items())), opened]


def model_other():
    first = torch.nn.Linear(4, 4)
    model = fill(torch.nn.Sequential(first, torch.nn.ReLU(), first))
    other = torch.nn.Sequential(*(torch.nn.Linear(4, 4), torch.nn.ReLU()))
    other.append(other[0])
    with tempfile.TemporaryDirectory() as folder:
        save_model(model, f"{folder}/model.safetensors")
        missing, unexpected = load_model(other, f"{folder}/model.safetensors")
    return [sorted(missing), sorted(unexpected), other(randn(2, 4))]
