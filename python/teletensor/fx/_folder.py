"""GraphModule.to_folder: a module as an importable package, and the files of its submodules.

The package consists of module.py, state_dict.pt and, for each submodule that is not written as an expression, its structure
in <name>.pkl and the values of its tensors in <name>.pt. Importing it runs the code in it, as for any package.
"""

from __future__ import annotations

import io
import os
import pickle
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import nn
from .._C import Tensor
from ..nn.modules.module import _addindent
from ..serialization import load, save
from ..utils import _pytree as pytree
from ._namespace import _custom_builtins
from ._source import _format_import_block

if TYPE_CHECKING:
    from .graph_module import GraphModule

_TAB = " " * 4


class _Pickler(pickle.Pickler):
    """Pickles modules; tensors are collected in a list."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.tensors: list[Tensor] = []
        self._index: dict[int, int] = {}

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, Tensor):
            return None
        index = self._index.setdefault(id(obj), len(self.tensors))
        if index == len(self.tensors):
            self.tensors.append(obj)
        return "parameter" if isinstance(obj, nn.Parameter) else "tensor", index, obj.requires_grad


class _Unpickler(pickle.Unpickler):
    """Reads what _Pickler wrote."""

    def __init__(self, file: Any, tensors: list[Tensor]) -> None:
        super().__init__(file)
        self._tensors = tensors
        self._made: dict[int, Tensor] = {}

    def persistent_load(self, pid: Any) -> Tensor:
        kind, index, requires_grad = pid
        if index not in self._made:
            tensor = self._tensors[index]
            self._made[index] = nn.Parameter(tensor, requires_grad) if kind == "parameter" else tensor
        return self._made[index]


def save_module(module: nn.Module, path: Path) -> None:
    """Writes a module's structure to `path` and its tensors next to it."""
    structure = io.BytesIO()
    pickler = _Pickler(structure)
    pickler.dump(module)
    save([tensor.detach() for tensor in pickler.tensors], str(path.with_suffix(".pt")))
    path.write_bytes(structure.getvalue())


def load_module(path: str | os.PathLike) -> nn.Module:
    """Reads a module that to_folder() wrote. The file can run code: load only what you trust."""
    path = Path(path)
    tensors = load(str(path.with_suffix(".pt")))
    return _Unpickler(io.BytesIO(path.read_bytes()), list(tensors)).load()


def _expression(module: nn.Module) -> str | None:
    """An expression over the names of torch.nn that creates a module like this one; None if its repr() is not such an
    expression.
    """
    if type(module) is not getattr(nn, type(module).__name__, None) or list(module.children()):
        return None
    text = repr(module)
    try:
        created = eval(text, dict(vars(nn.modules._all)))
    except Exception:  # noqa: BLE001 - repr() is no expression, or lacks an argument
        return None
    options = {name: value for name, value in vars(created).items() if _is_plain(value)}
    same = repr(created) == text and all(vars(module).get(name) == value for name, value in options.items() if name != "training")
    sizes = [(name, t.shape, t.dtype) for name, t in created.state_dict().items()]
    found = [(name, t.shape, t.dtype) for name, t in module.state_dict().items()]
    return f"torch.nn.{text}" if same and sizes == found else None


def _is_plain(value: Any) -> bool:
    return isinstance(value, (bool, int, float, str, tuple, type(None)))


def write_folder(module: GraphModule, folder: str | os.PathLike, module_name: str) -> None:
    """Writes module.py, __init__.py, state_dict.pt and the files of submodules and of buffers outside of the state dict."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    save(module.state_dict(), str(folder / "state_dict.pt"))
    generated = module.graph.python_code(root_module="self")
    names = {name: obj for name, obj in generated.globals.items() if name not in _custom_builtins}
    files: list[str] = []
    body = ["super().__init__()", *_module_lines(module, "self", "", folder, files), *_state_lines(module)]
    imports = [builtin.import_str for builtin in _custom_builtins.values()] + _format_import_block(names).split("\n")
    wraps, _, function = generated.src.partition("\ndef ")
    lines = [
        "from pathlib import Path", "", *filter(None, imports), "from teletensor.fx._folder import load_module", "",
        "_FOLDER = Path(__file__).parent", *filter(None, wraps.split("\n")), "", "",
        f"class {module_name}(torch.nn.Module):", f"{_TAB}def __init__(self):", *(f"{_TAB * 2}{line}" for line in body), "",
        f"{_TAB}{_addindent(f'def {function.strip()}', 4)}",
    ]  # fmt: skip
    (folder / "module.py").write_text("\n".join(lines) + "\n")
    (folder / "__init__.py").write_text("from .module import *\n")
    if files:
        warnings.warn(
            f"Was not able to save the following children modules as reprs -saved as pickled files instead: {files}",
            stacklevel=3,
        )


def _module_lines(module: nn.Module, place: str, path: str, folder: Path, files: list[str]) -> list[str]:
    """The statements that create the children, buffers and parameters of a module.

    Args:
        place: the expression for the module.
        path: its qualified name with a dot after it, or "".
        files: receives the names of submodules that are written to files.
    """
    lines = []
    for name, child in module.named_children():
        expression = _expression(child)
        if type(child) is nn.Module:  # a container, created for a qualified name
            lines.append(f"{place}.add_module({name!r}, torch.nn.Module())")
            lines += _module_lines(child, f"self.get_submodule({path + name!r})", f"{path}{name}.", folder, files)
            continue
        if expression is None:
            save_module(child, folder / f"{path}{name}.pkl")
            expression = f"load_module(_FOLDER / {f'{path}{name}.pkl'!r})"
            files.append(path + name)
        lines.append(f"{place}.add_module({name!r}, {expression})")
    for name, tensor in module._buffers.items():
        if tensor is not None and name in module._non_persistent_buffers_set:
            save(tensor, str(folder / f"{path}{name}.buffer.pt"))
            value = f"torch.load(str(_FOLDER / {f'{path}{name}.buffer.pt'!r}))"
            lines.append(f"{place}.register_buffer({name!r}, {value}, persistent=False)")
        elif tensor is not None:
            value = f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"
            lines.append(f"{place}.register_buffer({name!r}, {value})")
    for name, tensor in module._parameters.items():
        if tensor is not None:
            value = f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"
            lines.append(f"{place}.register_parameter({name!r}, torch.nn.Parameter({value}, {tensor.requires_grad}))")
    return lines


def _state_lines(module: GraphModule) -> list[str]:
    """The statements that load the values, and set what differs from a new module's."""
    lines = ["self.load_state_dict(torch.load(str(_FOLDER / 'state_dict.pt')))", f"self.train({module.training})"]
    for name, below in module.named_modules():
        if below.training != module.training:
            lines.append(f"self.get_submodule({name!r}).training = {below.training}")
    for name, parameter in module.named_parameters():
        if not parameter.requires_grad:
            lines.append(f"self.get_parameter({name!r}).requires_grad_(False)")
    for name in ("_in_spec", "_out_spec"):
        spec = getattr(module, name, None)
        if spec is not None:
            lines.append(f"self.{name} = pytree.treespec_loads({pytree.treespec_dumps(spec)!r})")
    return lines
