"""save() and load(): programs in PyTorch's .pt2 archives: JSON and the bytes of tensors in a zip file, without pickled code."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from typing import Any

from .. import _C
from .._C import Tensor
from ..nn import Parameter
from ..serialization._load import load as load_objects
from ..serialization._save import save as save_objects
from ._archive_reader import ArchiveReader, check_packed
from ._deserialize import program_of
from ._serialize import program_json, tensor_meta
from .exported_program import ExportedProgram

_COMPARISONS = "teletensor_comparisons.json"  # of sizes, which a program checks
# What reading damaged contents raises, besides RuntimeError.
_DAMAGE = (
    ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, OSError, StopIteration, SyntaxError, TypeError,
    ValueError, pickle.UnpicklingError, struct.error, zipfile.BadZipFile, zlib.error,
)  # fmt: skip
_ALIGNMENT = 16  # bytes; a multiple of all dtypes' sizes
_FOLDERS = {"weights": "weight", "constants": "tensor"}


def _bytes(tensor: Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(_C.uint8).numpy().tobytes() if flat.numel() else b""


def _shared(tensors: dict[str, Tensor]) -> dict[int, list[Tensor]]:
    """For each of the tensors that share memory with others, by id, those tensors."""
    groups: dict[Any, dict[int, Tensor]] = {}
    for tensor in tensors.values():
        if tensor.numel() and not (tensor.is_conj() or tensor.is_neg()):
            groups.setdefault((tensor.untyped_storage().data_ptr(), tensor.device), {})[id(tensor)] = tensor
    for group in groups.values():
        if len({t.dtype for t in group.values()}) > 1:  # PyTorch reads all of them with the dtype of one
            names = [n for n, t in tensors.items() if id(t) in group]
            raise NotImplementedError(f"[export.save] tensors of different dtypes that share memory: {', '.join(names)}")
    return {i: list(group.values()) for group in groups.values() if len(group) > 1 for i in group}


def _range(tensor: Tensor) -> tuple[int, int]:
    """The first byte of a tensor's elements in its memory, and the one after the last."""
    start = tensor.storage_offset()
    stop = start + sum((n - 1) * s for n, s in zip(tuple(tensor.shape), tensor.stride())) + 1
    return start * tensor.dtype.itemsize, stop * tensor.dtype.itemsize


def _write_tensors(archive: zipfile.ZipFile, root: str, folder: str, tensors: dict[str, Tensor]) -> None:
    config: dict[str, dict] = {}
    paths: dict[int, tuple[str, int]] = {}  # by tensor: its member, and the first byte of the memory that it has
    shared = _shared(tensors)
    for name, tensor in tensors.items():
        if id(tensor) not in paths:
            path = f"{_FOLDERS[folder]}_{len({p for p, _ in paths.values()})}"
            if id(tensor) in shared:
                ranges = [_range(t) for t in shared[id(tensor)]]
                first = min(start for start, _ in ranges) // _ALIGNMENT * _ALIGNMENT
                memory = _C.torch.empty(0, dtype=_C.uint8, device=tensor.device).set_(tensor.untyped_storage())
                content = _bytes(memory[first : max(stop for _, stop in ranges)])
                paths.update((id(t), (path, first)) for t in shared[id(tensor)])
            else:
                content, paths[id(tensor)] = _bytes(tensor), (path, 0)
            archive.writestr(f"{root}/data/{folder}/{path}", content)
        path, first = paths[id(tensor)]
        meta = tensor_meta(tensor.detach() if id(tensor) in shared else tensor.detach().contiguous(), None, tensor.requires_grad)
        if id(tensor) in shared:
            meta["storage_offset"] = {"as_int": tensor.storage_offset() - first // tensor.dtype.itemsize}
        config[name] = {"path_name": path, "is_param": isinstance(tensor, Parameter), "use_pickle": False, "tensor_meta": meta}
    archive.writestr(f"{root}/data/{folder}/model_{folder}_config.json", json.dumps({"config": config}))


def save(
    ep: ExportedProgram, f: Any, *, extra_files: dict[str, Any] | None = None, opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:  # fmt: skip
    """Writes a program to a .pt2 file, which PyTorch 2.15 reads if it has all operators of the graph.

    Args:
        ep: the program. Arguments of its example are stored if torch.save can store them.
        f: a path, or a binary file.
        extra_files: further texts or bytes by name.

    Raises:
        TypeError: ep is no ExportedProgram.
        NotImplementedError: a part of the graph has no form in the file, or another option is given.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead.")
    if opset_version is not None or pickle_protocol != 2:
        raise NotImplementedError("[export.save] opset_version and pickle_protocol")
    root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if isinstance(f, (str, os.PathLike)) else "archive"
    text = json.dumps(program_json(ep), allow_nan=True)
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{root}/archive_format", "pt2")
        archive.writestr(f"{root}/byteorder", "little")
        archive.writestr(f"{root}/archive_version", "0")
        archive.writestr(f"{root}/models/model.json", text)
        _write_tensors(archive, root, "weights", ep.state_dict)
        _write_tensors(archive, root, "constants", ep.constants)
        if ep.example_inputs is not None:
            buffer = io.BytesIO()
            save_objects(ep.example_inputs, buffer)
            archive.writestr(f"{root}/data/sample_inputs/model.pt", buffer.getvalue())
        comparisons = ep._input_check.comparisons if ep._input_check is not None else []
        if comparisons:  # the format has no place for them that PyTorch reads
            archive.writestr(f"{root}/extra/{_COMPARISONS}", json.dumps({"comparisons": comparisons}))
        for name, content in (extra_files or {}).items():
            archive.writestr(f"{root}/extra/{name}", content)
        archive.writestr(f"{root}/.data/version", "3\n")


def load(f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None) -> ExportedProgram:
    """Reads a program from a .pt2 file of this package or of PyTorch 2.15. No code of the file runs.

    Names and numbers of the file are checked, and its sizes are compared before memory is allocated. The program may call
    operators that compute, and those that this process registered with torch.library.

    Args:
        f: a path, or a binary file.
        extra_files: names of further files; their contents are stored in the dict.

    Raises:
        NotImplementedError: the program calls operators that do not exist here, or a tensor is pickled.
        RuntimeError: the file is no .pt2 archive, of another version, damaged, or calls operators that reach outside the
            session.
    """
    if expected_opset_version is not None:
        raise NotImplementedError("[export.load] expected_opset_version")
    file = open(f, "rb") if isinstance(f, (str, os.PathLike)) else f
    try:
        return _loaded(file, extra_files if extra_files is not None else {})
    except RuntimeError as e:
        if isinstance(e, RecursionError):
            raise RuntimeError("[export.load] expected less nesting in the file") from e
        raise
    except _DAMAGE as e:
        raise RuntimeError(f"[export.load] the file does not follow the .pt2 format: {type(e).__name__}: {str(e)[:200]}") from e
    finally:
        if file is not f:
            file.close()


def _loaded(file: Any, extra_files: dict[str, Any]) -> ExportedProgram:
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, OSError, struct.error, EOFError) as e:
        raise RuntimeError(f"[export.load] expected a .pt2 archive: {e}") from e
    with archive:
        reader = ArchiveReader(archive)
        for name in extra_files:
            extra_files[name] = reader.read(f"extra/{name}").decode()
        examples = None
        if reader.has("data/sample_inputs/model.pt"):
            content = io.BytesIO(reader.read("data/sample_inputs/model.pt"))
            check_packed(content)
            examples = load_objects(content, weights_only=True)
            if not (isinstance(examples, tuple) and len(examples) == 2 and [type(e) for e in examples] == [tuple, dict]):
                raise RuntimeError("[export.load] expected example inputs as a tuple of a tuple and a dict")
        state, constants = (reader.tensors(folder) for folder in ("weights", "constants"))
        program = program_of(reader.json("models/model.json"), state, constants, examples)
        if reader.has(f"extra/{_COMPARISONS}"):
            program._input_check.compare(reader.json(f"extra/{_COMPARISONS}")["comparisons"])
        return program
