"""torch.jit.save and load. The files are .pt2 archives of exported programs, not TorchScript."""

from __future__ import annotations

import io
import json
import os
import zipfile
from typing import Any

from .. import export
from ..export import ExportedProgram
from ..nn import Module
from ._script import Calling, Example, RecursiveScriptModule, ScriptFunction, exported, mode_of, set_save

_SETTINGS = "teletensor_jit.json"
_LIMIT = 1 << 16  # bytes of the settings


class _LoadedModule(Module):
    """A loaded program as a module with the modes of the saved one."""

    def __init__(self, program: ExportedProgram, training: bool, any_mode: bool) -> None:
        super().__init__()
        made = program.module()
        for registry in ("_parameters", "_buffers", "_modules"):
            self.__dict__[registry] = made.__dict__[registry]
        self.__dict__.update(_made=made, _program=program, _any_mode=any_mode, _saved=training, training=training)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the program."""
        return self._made(*args, **kwargs)

    def train(self, mode: bool = True) -> _LoadedModule:
        """Sets the mode. A program that depends on it has the saved module's only."""
        if mode != self._saved and not self._any_mode:
            names = ("evaluation", "training")
            raise NotImplementedError(
                f"[jit.load] the program was saved in {names[self._saved]} mode and may compute something else in {names[mode]} mode: "
                f"call .{'train' if mode else 'eval'}() before torch.jit.save()"
            )
        self.__dict__["training"] = mode
        return self


def _any_mode(module: Module, program: ExportedProgram, example: Example) -> bool:
    """Whether a module computes the same in both modes."""
    try:
        with mode_of(module, not module.training):
            return exported(module, example, "jit.save").graph_module.code == program.graph_module.code
    except Exception:  # noqa: BLE001 - whatever the other mode raises, the program lacks it
        return False


def save(m: Any, f: Any, _extra_files: dict[str, Any] | None = None) -> None:
    """Writes what script() or trace() returned to a .pt2 archive, which torch.export.load() reads too.

    The program contains the operators for arguments like those of the trace, or of the first call; sizes may differ as far as the
    module permits. Its mode is the module's. It is not TorchScript: torch.jit.load() of PyTorch does not read it, torch.export.load()
    of PyTorch does.

    Args:
        m: a ScriptModule or ScriptFunction.
        f: a path, or a binary file.
        _extra_files: further texts or bytes by name.

    Raises:
        RuntimeError: arguments are not known, or forward branches on values of tensors.
    """
    if isinstance(m, ScriptFunction):
        module, example = Calling(m._function), m._example
    elif isinstance(m, RecursiveScriptModule):
        module, example = m._original, m._example
    else:
        raise ValueError(f"[jit.save] expected what torch.jit.script() or trace() returned, got {type(m).__name__}")
    if isinstance(module, _LoadedModule):
        program, training, any_mode = module._program, module._saved, module._any_mode
    else:
        program = exported(module, example, "jit.save")
        assert example is not None
        training, any_mode = module.training, _any_mode(module, program, example)
    settings = {"training": training, "any_mode": any_mode, "name": getattr(m, "original_name", "")[:256]}
    extra = {**(_extra_files or {}), _SETTINGS: json.dumps(settings)}
    export.save(program, f, extra_files=extra)


set_save(save)


def load(f: Any, map_location: Any = None, _extra_files: dict[str, Any] | None = None, _restore_shapes: bool = False) -> Any:
    """Reads a .pt2 archive of torch.jit.save(), or of torch.export.save(); returns a ScriptModule. No code of the file runs.

    Args:
        f: a path, or a binary file.
        map_location: the device to which parameters and buffers are moved.
        _extra_files: names of further files; their contents are stored in the dict.
        _restore_shapes: has no effect: the example's sizes are always known.

    Raises:
        NotImplementedError: the file is PyTorch's TorchScript, which consists of pickles and source code.
        RuntimeError: it is no .pt2 archive, or damaged.
    """
    del _restore_shapes
    if not isinstance(f, (str, os.PathLike)):
        f = io.BytesIO(f.read())
    names = _members(f)
    if any(n.split("/", 1)[-1] == "constants.pkl" or n.split("/")[1:2] == ["code"] for n in names):
        raise NotImplementedError(
            "[jit.load] a TorchScript archive consists of pickles and source code, which are not loaded: in PyTorch, load it and write "
            "torch.export.save(torch.export.export(module, args), path)"
        )
    extra = dict.fromkeys(_extra_files or {}, "")
    has_settings = any(n.endswith(f"/extra/{_SETTINGS}") for n in names)
    if has_settings:
        extra[_SETTINGS] = ""
    program = export.load(f, extra_files=extra)
    settings = _settings(extra.pop(_SETTINGS)) if has_settings else {"training": False, "any_mode": False}  # export.save() stores no mode
    if _extra_files is not None:
        _extra_files.update(extra)
    module = _LoadedModule(program, settings["training"], settings["any_mode"])
    if map_location is not None:
        module.to(map_location)
    args, kwargs = program.example_inputs or ((), {})
    return RecursiveScriptModule(module, Example(args, kwargs) if program.example_inputs is not None else None)


def _members(f: Any) -> list[str]:
    try:
        with zipfile.ZipFile(f) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, ValueError) as e:
        raise RuntimeError(f"[jit.load] expected a .pt2 archive: {e}") from e
    finally:
        if not isinstance(f, (str, os.PathLike)):
            f.seek(0)


def _settings(content: str) -> dict[str, Any]:
    try:
        found = json.loads(content) if len(content) <= _LIMIT else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or any(type(found.get(k)) is not bool for k in ("training", "any_mode")):
        raise RuntimeError("[jit.load] expected the modes of the saved module")
    return found
