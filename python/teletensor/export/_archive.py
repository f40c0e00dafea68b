"""save() and load(): programs in PyTorch's .pt2 archives: JSON and the bytes of tensors in a zip file, without pickled code."""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import Any

import teletensor

from .. import _C
from .._C import Tensor
from ..nn import Parameter
from ..serialization._load import load as load_objects
from ..serialization._save import save as save_objects
from ._deserialize import number_of, program_of
from ._schema import dtype_of
from ._serialize import program_json, tensor_meta
from .exported_program import ExportedProgram

_FOLDERS = {"weights": "weight", "constants": "tensor"}


def _bytes(tensor: Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(_C.uint8).numpy().tobytes() if flat.numel() else b""


def _write_tensors(archive: zipfile.ZipFile, root: str, folder: str, tensors: dict[str, Tensor]) -> None:
    config: dict[str, dict] = {}
    paths: dict[int, str] = {}
    for name, tensor in tensors.items():
        path = paths.get(id(tensor))
        if path is None:
            path = paths[id(tensor)] = f"{_FOLDERS[folder]}_{len(paths)}"
            archive.writestr(f"{root}/data/{folder}/{path}", _bytes(tensor))
        plain = tensor.detach().contiguous()
        meta = tensor_meta(plain, None, tensor.requires_grad)
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
        for name, content in (extra_files or {}).items():
            archive.writestr(f"{root}/extra/{name}", content)
        archive.writestr(f"{root}/.data/version", "3\n")


def _read_tensors(archive: zipfile.ZipFile, root: str, folder: str) -> dict[str, Tensor]:
    path = f"{root}/data/{folder}/model_{folder}_config.json"
    if path not in archive.namelist():
        return {}
    found: dict[str, Tensor] = {}
    known: dict[str, Tensor] = {}
    for name, entry in json.loads(archive.read(path))["config"].items():
        if entry["use_pickle"]:
            raise NotImplementedError(f"[export.load] {name} is pickled in the file; only tensors without a class of their own are read")
        key = f"{entry['path_name']}:{json.dumps(entry['tensor_meta'])}"
        if key not in known:
            known[key] = _tensor(archive.read(f"{root}/data/{folder}/{entry['path_name']}"), entry["tensor_meta"], entry["is_param"])
        found[name] = known[key]
    return found


def _tensor(content: bytes, meta: dict, is_parameter: bool) -> Tensor:
    dtype = dtype_of(meta["dtype"])
    sizes, strides = ([number_of(n) for n in meta[k]] for k in ("sizes", "strides"))
    flat = teletensor.frombuffer(bytearray(content), dtype=dtype) if content else _C.torch.empty(0, dtype=dtype)
    tensor = flat.as_strided(sizes, strides, number_of(meta["storage_offset"])).clone()
    if meta["device"]["type"] != "cpu":
        tensor = tensor.to(meta["device"]["type"])
    return Parameter(tensor, meta["requires_grad"]) if is_parameter else tensor.requires_grad_(meta["requires_grad"])


def load(f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None) -> ExportedProgram:
    """Reads a program from a .pt2 file of this package or of PyTorch 2.15. No code of the file runs.

    Args:
        f: a path, or a binary file.
        extra_files: names of further files; their contents are stored in the dict.

    Raises:
        NotImplementedError: the program calls operators that do not exist here, or a tensor is pickled.
        RuntimeError: the file is no .pt2 archive, or of another version.
    """
    if expected_opset_version is not None:
        raise NotImplementedError("[export.load] expected_opset_version")
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile as e:
        raise RuntimeError(f"[export.load] expected a .pt2 archive: {e}") from e
    with archive:
        model = next((n for n in archive.namelist() if n.endswith("/models/model.json")), None)
        if model is None:
            raise RuntimeError("[export.load] expected a .pt2 archive with a program named model")
        root = model.removesuffix("/models/model.json")
        for name in extra_files or {}:
            extra_files[name] = archive.read(f"{root}/extra/{name}").decode()
        examples, path = None, f"{root}/data/sample_inputs/model.pt"
        if path in archive.namelist():
            examples = load_objects(io.BytesIO(archive.read(path)), weights_only=True)
        state, constants = (_read_tensors(archive, root, folder) for folder in ("weights", "constants"))
        return program_of(json.loads(archive.read(model)), state, constants, examples)
