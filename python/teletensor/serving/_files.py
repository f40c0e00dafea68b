"""Native models: a folder with `program.pb` and `model.safetensors`, which a daemon serves (docs/serving-python.md)."""

from __future__ import annotations

import contextlib
import json
import math
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from .. import _C
from .._C import Tensor
from .._checkpoint.files import _NAMES
from .._version import __version__
from ._decoder import Decoder, decoder_entries
from ._entries import Entry, TracedEntry, model_bytes, trace_entry

PROGRAM, WEIGHTS = "program.pb", "model.safetensors"
_HEADER_ALIGNMENT = 8


def entries_of(
    model_or_fn: Callable | None, entries: Mapping[str, Entry] | None, dynamic_batch: bool, **options: Any
) -> list[TracedEntry]:
    """Traces the entries of a model: that for requests, from its options, and further ones."""
    if isinstance(model_or_fn, Decoder):
        if options.get("example_inputs") is not None or entries or options.get("states"):
            raise ValueError("[serving] expected no example_inputs, entries or states of a Decoder, which has its own")
        entries, model_or_fn = decoder_entries(model_or_fn)[0], None
    numbers = count()
    traced = []
    if model_or_fn is not None:
        if not callable(model_or_fn):
            raise TypeError(f"[serving] expected a function or module, got {type(model_or_fn).__name__}")
        if options.get("example_inputs") is None:
            raise ValueError("[serving] expected example_inputs")
        if isinstance(options["example_inputs"], Tensor):
            options["example_inputs"] = (options["example_inputs"],)
        traced.append(trace_entry("", Entry(model_or_fn, **options), dynamic_batch, numbers))
    for name, entry in (entries or {}).items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"[serving] expected names of entries, got {name!r}")
        traced.append(trace_entry(name, entry, False, numbers))
    if not traced:
        raise ValueError("[serving] expected a function or entries, got neither")
    return traced


def weights_of(entries: Sequence[TracedEntry]) -> dict[str, Tensor]:
    """The weights of all entries, which share those of one name."""
    weights: dict[str, Tensor] = {}
    for entry in entries:
        for name, tensor in entry.weights.items():
            if _C.handle_number(weights.setdefault(name, tensor)) != _C.handle_number(tensor):
                raise ValueError(f"[serving] expected entries of one model, got two tensors named {name!r}")
    return weights


def description_of(entries: Sequence[TracedEntry], model_or_fn: Callable | None, attributes: Mapping[str, str] | None) -> bytes:
    """The contents of `program.pb`."""
    own = decoder_entries(model_or_fn)[1] if isinstance(model_or_fn, Decoder) else {}
    return model_bytes(entries, {**own, **(attributes or {})}, f"teletensor {__version__}")


def save(
    model_or_fn: Callable | Decoder | None,
    path: str | os.PathLike,
    example_inputs: Tensor | Sequence[Tensor] | None = None,
    *,
    dynamic_batch: bool | None = None,
    dynamic_shapes: Mapping[str, Mapping[int, str]] | Sequence[Mapping[int, str]] = (),
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    states: Mapping[str, Tensor] | Sequence[str] = (),
    entries: Mapping[str, Entry] | None = None,
    attributes: Mapping[str, str] | None = None,
) -> None:
    """Writes a model that a daemon serves: `program.pb` and `model.safetensors` in the folder `path`.

    The folder is a version in a model repository: ``models/NAME/1``. The function is traced once, without gradients; its
    parameters, buffers and other captured tensors are downloaded. Existing files are replaced, the Program last.

    Args:
        model_or_fn: a function of tensors or a module, in evaluation mode; or a Decoder. None: only `entries`.
        path: a folder on this machine; it is created, with those around it.
        example_inputs: a tensor or tensors, whose dtypes and static sizes requests must have.
        dynamic_batch: the first dimension of every input is the batch, of any size. None: True without states.
        dynamic_shapes: further dynamic dimensions: by input, in order or by name, their names by number.
        input_names, output_names: None: the function's parameters, and "output" or "output_0", "output_1", ...
        states: tensors that the engine keeps between the requests of a sequence, zero at its start: names of the module's
            buffers; or examples by name, which the function receives after the inputs and changes in place.
        entries: further functions that share the weights, by name (teletensor.serving.Entry).
        attributes: texts that the file contains, for loaders of some subject.

    Raises:
        ValueError: an argument is invalid, or the function cannot be served with other dynamic sizes.
        What torch.compiler.trace() raises.
    """
    traced = entries_of(
        model_or_fn, entries, not states if dynamic_batch is None else dynamic_batch, example_inputs=example_inputs,
        dynamic_shapes=dynamic_shapes, input_names=input_names, output_names=output_names, states=states,
    )  # fmt: skip
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    _write_safetensors(folder / WEIGHTS, weights_of(traced))
    with _replacement(folder / PROGRAM) as file:
        file.write(description_of(traced, model_or_fn, attributes))


def read(path: str | os.PathLike) -> dict[str, Any]:
    """What `program.pb` of a folder contains, without the Programs: names, dtypes, sizes, attributes.

    Raises:
        ValueError: the file is not a model.
    """
    return json.loads(_C.model_json((Path(path) / PROGRAM).read_bytes()))


@contextlib.contextmanager
def _replacement(path: Path):
    """A new file that takes the place of `path` at the end of the context, or is removed if that raises."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _write_safetensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes tensors by name, one of them in memory at a time."""
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        begin, end = end, end + math.prod(tensor.shape) * tensor.dtype.itemsize
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _HEADER_ALIGNMENT)
    with _replacement(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            value = _C.PendingRead(tensor.detach())
            value.wait()
            file.write(value)
