"""Reading of models: each format as a module with named inputs, examples of them, and names of the sizes that are open."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import teletensor as torch

from .. import nn


@dataclasses.dataclass
class Source:
    """A model that was read.

    Attributes:
        module: takes the inputs by position, in order; returns a tensor or a tuple.
        names: of the inputs.
        examples: tensors for them.
        open_sizes: by input, the names of open sizes by dimension.
        output_names: None if the format has none.
        program: the ExportedProgram, if the model is one.
    """

    module: nn.Module
    names: list[str]
    examples: list[torch.Tensor]
    open_sizes: list[dict[int, str]]
    output_names: list[str] | None = None
    program: Any = None


class Named(nn.Module):
    """A module whose forward() has parameters of given names, in place of *args."""

    def __init__(self, module: nn.Module, names: list[str], call: Callable) -> None:
        super().__init__()
        self.model = module

        def forward(*args: torch.Tensor) -> Any:
            return call(*args)

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        forward.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in identifiers(names)])
        self.forward = forward


def identifiers(names: list[str]) -> list[str]:
    """Names as different identifiers of Python."""
    found: list[str] = []
    for name in names:
        name = re.sub(r"[^0-9A-Za-z_]", "_", name) or "_"
        name = f"_{name}" if name[0].isdigit() else name
        while name in found:
            name += "_"
        found.append(name)
    return found


def _size_of(name: str, given: Mapping[str, int], taken: dict[str, int], is_first: bool) -> int:
    """The size of an open dimension in examples: given, or a number of its own."""
    if name in given:
        return given[name]
    if name not in taken:
        taken[name] = 2 if is_first and 2 not in taken.values() else 16 + len(taken)
    return taken[name]


def from_onnx(path: Path, sizes: Mapping[str, int], device: Any) -> Source:
    """Reads an ONNX model."""
    model = torch.onnx.load(path, device=device)
    taken: dict[str, int] = {}
    examples, open_sizes = [], []
    for name in model.input_names:
        kind, dims = model.inputs[name]
        if not kind or dims is None:
            raise NotImplementedError(f"[convert] the input {name!r} is not a tensor of a known number of dimensions")
        if kind == 8:
            raise NotImplementedError(f"[convert] the input {name!r} has strings, which Programs cannot have")
        names = {d: n if isinstance(n, str) else f"{name}_{d}" for d, n in enumerate(dims) if not isinstance(n, int)}
        shape = [_size_of(names[d], sizes, taken, d == 0) if d in names else n for d, n in enumerate(dims)]
        examples.append(_example(shape, model.dtype_of(name), device))
        open_sizes.append(names)
    module = Named(model, model.input_names, model.forward)
    return Source(module, model.input_names, examples, open_sizes, model.output_names)


def _example(shape: list[int], dtype: torch.dtype, device: Any) -> torch.Tensor:
    if dtype.is_floating_point:
        generator = torch.Generator().manual_seed(0)
        return torch.randn(shape, generator=generator).to(dtype).to(device)
    return torch.ones(shape, dtype=dtype, device=device)


def from_pt2(path: Path, sizes: Mapping[str, int], device: Any) -> Source:
    """Reads a program of torch.export. Its own example inputs are used, or ones of the sizes that it was recorded with."""
    program = torch.export.load(path)
    names = list(program.graph_signature.user_inputs)
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    if any(not isinstance(n, str) or n not in nodes for n in names):
        raise NotImplementedError("[convert] programs with constants among their inputs are not convertible")
    found, open_sizes = [], []
    for name in names:
        value = nodes[name].meta["val"]
        dims = {d: str(text) for d, text in (nodes[name].meta.get("symbolic_sizes") or {}).items()}
        shape = [sizes.get(dims[d], int(n)) if d in dims else int(n) for d, n in enumerate(value.shape)]
        found.append(_example(shape, value.dtype, device))
        open_sizes.append(dims)
    given = program.example_inputs
    if given is not None and not sizes:
        leaves = [t for t in torch.utils._pytree.tree_leaves(given) if isinstance(t, torch.Tensor)]
        found = leaves if len(leaves) == len(names) else found
    return Source(program.module(check_guards=False), names, found, open_sizes, None, program)
