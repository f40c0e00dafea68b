"""Samples of module_db and optim_db, their descriptions, and conversion of their arguments."""

from __future__ import annotations

import dataclasses
import functools
import types
from typing import Any

import torch

import teletensor

from ..op_db.convert import Converter, Unconvertible, dtype_name


def short(value: Any) -> str:
    """A short description of an argument."""
    if isinstance(value, torch.Tensor):
        return f"{dtype_name(value.dtype)}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(short, value)) + ")"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {short(v)}" for k, v in value.items()) + "}"
    if isinstance(value, torch.nn.Module):
        return type(value).__name__
    return getattr(value, "__name__", None) or repr(value)


def call_text(given) -> str:
    """The text of a FunctionInput, as in a call."""
    return ", ".join([*map(short, given.args), *(f"{k}={short(v)}" for k, v in given.kwargs.items())])


def counterpart(module: torch.nn.Module) -> teletensor.nn.Module:
    """A module of ours with the same sizes and state. Supports the modules that samples pass to constructors."""
    if not isinstance(module, torch.nn.TransformerEncoderLayer):
        raise Unconvertible(f"a module as argument: {type(module).__name__}")
    weight = module.linear1.weight
    ours = teletensor.nn.TransformerEncoderLayer(
        module.self_attn.embed_dim, module.self_attn.num_heads, module.linear1.out_features, module.dropout.p,
        function_of(module.activation), module.norm1.eps, module.self_attn.batch_first, module.norm_first,
        module.linear1.bias is not None, dtype=getattr(teletensor, dtype_name(weight.dtype)),
    )  # fmt: skip
    ours.load_state_dict(SampleConverter()(module.state_dict()))
    return ours.train(module.training)


def function_of(function: Any) -> Any:
    """Our function of the same name."""
    if isinstance(function, torch.nn.Module):
        return getattr(teletensor.nn, type(function).__name__)()
    name = function.__name__
    for owner, ours in ((torch.nn.functional, teletensor.nn.functional), (torch, teletensor)):
        if getattr(owner, name, None) is function:
            return getattr(ours, name)
    raise Unconvertible(f"function {name}")


class SampleConverter(Converter):
    """Also converts modules, functions, packed sequences and options."""

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.nn.utils.rnn.PackedSequence):
            indices = [None if i is None else self(i) for i in (value.sorted_indices, value.unsorted_indices)]
            return teletensor.nn.utils.rnn.PackedSequence(self(value.data), self(value.batch_sizes), *indices)
        if isinstance(value, torch.nn.parameter.UninitializedTensorMixin):
            kind = getattr(teletensor.nn, type(value).__name__)
            return kind(device=str(value.device), dtype=getattr(teletensor, dtype_name(value.dtype)))
        if isinstance(value, torch.nn.PairwiseDistance):
            return super().__call__(value)
        if isinstance(value, torch.nn.Module):
            return counterpart(value)
        if type(value).__name__ == "LinearCrossEntropyOptions":
            fields = dataclasses.asdict(value)
            return teletensor.nn.LinearCrossEntropyOptions(**{k: self(v) for k, v in fields.items()})
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            return function_of(value)
        if isinstance(value, functools.partial):
            raise Unconvertible("a partial function")
        return super().__call__(value)


def noncontiguous(value: Any) -> Any:
    """The same values, with tensors in memory with gaps and reversed order of dimensions."""
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return value
    if isinstance(value, torch.Tensor):
        if value.dim() == 0 or value.numel() < 2:
            return value
        order = list(reversed(range(value.dim())))
        view = torch.zeros([*reversed(value.shape), 2], dtype=value.dtype)[..., 1].permute(order)
        view.copy_(value.detach())
        return view.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(map(noncontiguous, value))
    if isinstance(value, dict):
        return {k: noncontiguous(v) for k, v in value.items()}
    return value
