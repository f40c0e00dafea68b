"""Checks that imports of python/teletensor, also those inside functions, point down its layers and form no circles.

`python_floors.txt` lists the exceptions that remain. The test fails for an exception that is not listed and for a listed
one that no longer exists. `python tests/test_python_floors.py` prints all of them.
"""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "python/teletensor"
LISTED = Path(__file__).resolve().parent / "python_floors.txt"

# The layers, lowest first, each with its files (without .py) and folders. The longest entry that contains a file decides.
LAYERS = {
    # The bindings (_C) and what needs nothing but them.
    "bindings": """
        __future__
        _absent_autocast _absent_device _absent_dtypes _active_profile _composites _config_module _connection _data_errors
        _default_group _dlpack
        _engine_package _generator
        _gradients _grad_mode _html _integers _layouts _lazy
        _mt19937 _named_results _not_implemented _older_paths _options _pending_array _printable _quantized_names _random _script
        _small_integers _status_history _status_rows
        _status_view _storage _symbolic_bool _symbolic_float _tensor_types _threads _trace_runs _tracing_state _transforms _version
        futures torch_version utils version
    """,
    # Tensors, storages, functions of tensors, devices.
    "tensor": """
        __config__ _address _autocast_lists _by_value _connection_html _event _functions _ops _overridable
        _plugin_devices _quantized
        _component_tensor _composed_operators _sparse _subclass _tensor
        _tensor_html _tensor_str _toplevel _utils accelerator array_api backends cpu cuda fft foreach linalg masked monitor mps mtia _nested
        nested
        random
        signal sparse special storage testing types utils/dlpack xpu
    """,
    # Gradients, autocast, function transforms.
    "autograd": "_higher_order_ops amp autograd cpu/amp cuda/amp func linalg/_roots return_types",
    # The names of the module `torch`: `import teletensor` inside the package.
    "namespace": "__init__ _torch_c_compat _torch_c_compat/_fft _torch_c_compat/_linalg _torch_c_compat/_special",
    # Modules, optimizers, distributions, data, files.
    "nn": """
        _VF _checkpoint _torch_c_compat/_nn
        backends/cuda distributions func/_batch_norm functional hub multiprocessing nn optim overrides quasirandom serialization
        utils/_checkpoint_names utils/_checkpoint_runs utils/_foreach_utils utils/backend_registration utils/data utils/hooks
        utils/model_zoo utils/_swap
    """,
    # Graphs, operators as objects, measurements, checkpoints.
    "fx": """
        _functorch/predispatch _functorch/vmap _torch_c_compat/_functorch _torch_c_compat/_profiler
        _audio_operators _named_programs _programs _custom_ops _decomp _library _subclasses _vmap_internals autograd/profiler checkpoint fx
        autograd/forward_ad autograd/functional autograd/gradcheck _guards
        func/_batch_call func/_batch_composites func/_batch_layers func/_batch_recurrent func/_batch_rules func/_batched func/_dual
        func/_forward_call func/_forward_rules func/_forward_table func/_functionalized func/_linearized func/_sparse_batches
        func/_transformed func/batching
        func/derivatives func/forward
        _quantized/decomposed _quantized/define _quantized/fbgemm _quantized/onednn _quantized/operators
        library nn/utils/_per_sample_grad ops profiler
        utils/benchmark utils/bottleneck
        utils/_selective_checkpoint utils/checkpoint utils/flop_counter utils/tensorboard
    """,
    # Several processes and engines.
    "distributed": "distributed nn/parallel utils/data/distributed",
    # Compilation and conversion.
    "compiler": """
        _dynamo _functorch _inductor _jit_internal compiler export jit onnx ao quantization package serving torchao functorch
    """,
    # Programs, and `torch` under its own name.
    "tools": """
        _models_command _operators_command _principals _top _torch_path/functorch _torch_path/torch _torch_path/torchao
        _torch_pickles __main__ as_torch cli
        convert distributed/elastic/agent
        distributed/launch distributed/launcher distributed/run launch ray utils/collect_env
    """,
}
ENTRIES = {entry: layer for layer, entries in LAYERS.items() for entry in entries.split()}
# Files that import modules by computed names: lazy attributes of their own package, or names that the caller gives.
DYNAMIC = {
    "_config_module", "_older_paths", "array_api/__init__", "utils/data/datapipes/datapipe",
    "_dynamo/_backends", "_dynamo/_fingerprints",
    "_dynamo/_opcodes_311", "_ops/__init__", "_torch_c_compat/__init__", "_lazy", "_library/aten", "as_torch", "ops", "cuda/amp/__init__",
    "distributed/__init__",
    "distributed/elastic/__init__", "fx/__init__", "fx/experimental/__init__", "fx/passes/__init__", "nn/utils/__init__",
    "package/_importers", "serialization/__init__", "serialization/_program", "_torch_path/torch/__init__",
    "_torch_path/torchao/__init__", "_torch_path/functorch/__init__",
}  # fmt: skip


def layer_of(file: str) -> str | None:
    """The layer of a file, such as "nn/functional.py"; None if the table lacks it."""
    path = file.removesuffix(".py")
    while path and path not in ENTRIES:
        path = path.rpartition("/")[0]
    return ENTRIES.get(path)


def module_files(root: Path) -> dict[str, str]:
    """Returns the modules of the package, as "teletensor.nn.functional", with their files relative to `root`."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        parts = relative.with_suffix("").parts
        found[".".join(("teletensor", *(parts[:-1] if parts[-1] == "__init__" else parts)))] = relative.as_posix()
    return found


def _last_name(node: ast.AST) -> str:
    """The name of a variable or an attribute; "" for other expressions."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class Imports(ast.NodeVisitor):
    """Collects the modules of the package that a file imports, by its statements and by attributes of what it imports."""

    def __init__(self, module: str, is_package: bool, files: dict[str, str], lazy: dict[str, str]) -> None:
        self.package = module if is_package else module.rpartition(".")[0]
        self.files, self.lazy = files, lazy
        self.imported: set[str] = set()  # executed
        self.annotated: set[str] = set()  # for type checkers only
        self.bound: dict[str, str] = {}  # local names of packages
        self.attributes: set[tuple[str, ...]] = set()  # `a.b.c` as its names
        self.for_types = False
        self.computes = False  # the file imports modules by computed names

    def absolute(self, name: str) -> str:
        """The full name of a module that the file imports, perhaps by a relative name (".functional")."""
        relative = name.lstrip(".")
        level = len(name) - len(relative)
        base = self.package.split(".")[: self.package.count(".") + 2 - level] if level else []
        return ".".join([*base, *([relative] if relative else [])])

    def resolve(self, module: str, name: str) -> str:
        """The module that an attribute of a module comes from, as far as names of modules say it."""
        if f"{module}.{name}" in self.files:
            return f"{module}.{name}"
        if module == "teletensor" and name in self.lazy:
            return self.lazy[name]
        return module

    def add(self, module: str) -> None:
        if module in self.files:
            (self.annotated if self.for_types else self.imported).add(module)

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802
        for alias in node.names:
            if alias.name.split(".")[0] == "teletensor":
                module = alias.name if alias.asname else "teletensor"
                self.bound[alias.asname or "teletensor"] = module
                self.add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: N802
        module = self.absolute("." * node.level + (node.module or ""))
        if module.split(".")[0] != "teletensor" or module.startswith("teletensor._C"):
            return
        for alias in node.names:
            if module == "teletensor" and alias.name == "_C":
                continue
            found = self.resolve(module, alias.name)
            self.add(found)
            if found == f"{module}.{alias.name}":
                self.bound[alias.asname or alias.name] = found

    def visit_If(self, node: ast.If) -> None:  # noqa: N802
        if "TYPE_CHECKING" not in map(_last_name, ast.walk(node.test)):
            return self.generic_visit(node)
        self.for_types = True
        for statement in node.body:
            self.visit(statement)
        self.for_types = False
        for statement in node.orelse:
            self.visit(statement)

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802
        if _last_name(node.func).endswith(("import_module", "__import__")) and node.args:
            if isinstance(node.args[0], ast.Constant):
                self.add(self.absolute(node.args[0].value))
            else:
                self.computes = True
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802
        names = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            self.attributes.add((node.id, *reversed(names)))
        else:
            self.visit(node)

    def finish(self) -> None:
        """Adds the modules that are reached as attributes: `torch.distributed` after `import teletensor as torch`."""
        for base, *names in self.attributes:
            module = self.bound.get(base)
            for name in names if module else ():
                found = self.resolve(module, name)
                if found == module:
                    break
                self.add(found)
                module = found


def imports(root: Path) -> tuple[dict[str, set[str]], dict[str, set[str]], list[str]]:
    """Returns what each file imports, what it imports for type checkers, and files with imports by computed names."""
    files = module_files(root)
    names = runpy.run_path(str(root / "_toplevel/__init__.py"))["NAMES"] if (root / "_toplevel").exists() else {}
    lazy = {name.partition("=")[0]: f"teletensor.{module}" for module, text in names.items() for name in text.split()}
    imported, annotated, dynamic = {}, {}, []
    for module, file in files.items():
        text = (root / file).read_text()
        visitor = Imports(module, file.endswith("__init__.py"), files, lazy)
        tree = ast.parse(text)
        visitor.visit(tree)
        visitor.finish()
        imported[file] = {files[m] for m in visitor.imported} - {file}
        annotated[file] = {files[m] for m in visitor.annotated} - {file} - imported[file]
        if visitor.computes:
            dynamic.append(file)
    return imported, annotated, dynamic


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Returns the groups of files that import each other, directly or through others of the group (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found = []

    def visit(file: str) -> None:
        index[file] = low[file] = len(index)
        stack.append(file)
        on_stack.add(file)
        for other in sorted(graph[file]):
            if other not in index:
                visit(other)
            if other in on_stack:
                low[file] = min(low[file], low[other])
        if low[file] == index[file]:
            group = stack[stack.index(file) :]
            del stack[stack.index(file) :]
            on_stack.difference_update(group)
            if len(group) > 1:
                found.append(sorted(group))

    for file in sorted(graph):
        if file not in index:
            visit(file)
    return found


def violations(root: Path = PACKAGE) -> list[str]:
    """Returns a line for each import that points up, each circle of files within a layer and each unassigned file."""
    imported, annotated, dynamic = imports(root)
    layers = {file: layer_of(file) for file in imported}
    order = list(LAYERS)
    found = [f"{file}: in no layer" for file, layer in layers.items() if layer is None]
    found += [f"{file}: import_module of a computed name" for file in dynamic if file.removesuffix(".py") not in DYNAMIC]

    def up(file: str, other: str) -> bool:
        return None not in (layers[file], layers[other]) and order.index(layers[file]) < order.index(layers[other])

    for file in imported:
        found += [f"{file} -> {other}" for other in imported[file] | annotated[file] if up(file, other)]
    downward = {file: {other for other in others if not up(file, other)} for file, others in imported.items()}
    found += ["circle: " + " ".join(group) for group in circles(downward)]
    return sorted(found)


def test_violations_are_the_listed_ones():
    assert violations() == LISTED.read_text().splitlines()


@pytest.mark.parametrize(
    ("file", "text", "other"),
    [
        ("linalg/a.py", "from ..nn.functional import pad", "nn/functional.py"),
        ("linalg/a.py", "from .. import nn", "nn/__init__.py"),
        ("nn/modules/a.py", "def f():\n    from ... import distributed", "distributed/__init__.py"),
        ("nn/modules/a.py", "import teletensor as torch\ntorch.distributed.f()", "distributed/__init__.py"),
        ("nn/modules/a.py", "import teletensor.distributed.run", "distributed/run.py"),
        ("nn/a.py", "import importlib\nimportlib.import_module('teletensor.distributed')", "distributed/__init__.py"),
        ("nn/a.py", "import importlib\nimportlib.import_module('..distributed', __package__)", "distributed/__init__.py"),
        ("autograd/a.py", "from teletensor import split", "functional.py"),  # a lazy name of the main module
        ("nn/a.py", "if TYPE_CHECKING:\n    from .parallel import Copies", "nn/parallel/__init__.py"),
        ("amp/a.py", "import teletensor", "__init__.py"),
    ],
)
def test_a_planted_violation_is_found(tmp_path, file, text, other):
    names = 'NAMES = {"functional": "split"}\n'
    for name, content in {"__init__.py": "", "_toplevel/__init__.py": names, other: "", file: text}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    for folder in {path.parent for path in tmp_path.rglob("*.py")}:
        (folder / "__init__.py").touch()
    assert f"{file} -> {other}" in violations(tmp_path)


def test_circles_and_unassigned_files_are_found(tmp_path):
    (tmp_path / "_toplevel").mkdir()
    (tmp_path / "optim").mkdir()
    files = {
        "_toplevel/__init__.py": "NAMES = {}", "optim/a.py": "from . import b", "optim/b.py": "def f():\n    from .c import g",
        "optim/c.py": "from . import a", "other.py": "", "optim/d.py": "import importlib\nimportlib.import_module(__name__ + '.e')",
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert violations(tmp_path) == [
        "circle: optim/a.py optim/b.py optim/c.py",
        "optim/d.py: import_module of a computed name",
        "other.py: in no layer",
    ]


def test_no_entry_of_the_table_is_out_of_date():
    files = {file.removesuffix(".py") for file in module_files(PACKAGE).values()}
    entries = {entry for text in LAYERS.values() for entry in text.split()} | DYNAMIC
    assert [entry for entry in sorted(entries) if entry not in files and f"{entry}/__init__" not in files] == []


if __name__ == "__main__":
    print("\n".join(violations()))
