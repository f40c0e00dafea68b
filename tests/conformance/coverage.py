"""`python -m tests.conformance.coverage --names FILE [--out PAGE]`: names of PyTorch that are missing here, by use
count.

FILE has lines `count|name`. A name is `torch.nn.Linear`, `Tensor.view`, or a bare operator name (`abs`, `add.Tensor`,
`_softmax`; text after a second `|` is ignored). A bare name is covered by a public function of that name, or by an
entry of `covering.py`. Checks the package on the path (a build's `python/`), since names are defined in declarations,
C++ and Python.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from types import ModuleType

from .covering import COVERED_BY, PLACES

# Families that are missing on purpose, by name prefix, with the reason.
REASONS = {
    "torch.jit": "nothing is compiled to TorchScript, saved as it, or loaded",
    "torch._jit_internal": "graphs are Programs of the engine, not scripts",
    "torch._C": "PyTorch's own internals",
    "torch.classes": "scripts' classes",
    "torch.ops": "operators are declared in the engine",
    "torch.onnx": "no exporter yet",
    "torch.hub": "no code from the network",
    "torch.multiprocessing": "several processes share an engine by connecting to it",
    "torch.distributed": "process groups are the engine's",
    "torch.batch_norm_": "kernels of synchronised batch norm: process groups are the engine's",
    "torch.nn.parallel": "process groups are the engine's",
    "torch.nn.DataParallel": "process groups are the engine's",
    "torch.sparse": "no sparse layouts",
    "torch.spmm": "no sparse layouts",
    "Tensor.to_sparse": "no sparse layouts",
    "Tensor.coalesce": "no sparse layouts",
    "Tensor.indices": "of sparse tensors; counted are all methods of that name",
    "Tensor.values": "of sparse tensors; counted are all methods of that name, mostly dictionaries'",
    "Tensor.index": "no method of PyTorch's tensors: counted are lists'",
    "torch.utils.cpp_extension": "operators are declared in the engine",
    "torch.utils.tensorboard": "TensorBoard's own package writes its files",
    "torch.utils.model_zoo": "no code from the network",
    "torch.utils.collect_env": "about an installation of PyTorch",
    "torch.utils.data._utils": "workers are threads of the client",
    "torch.utils.data.functional_datapipe": "data pipes were given up by PyTorch",
    "torch.utils.data.IterDataPipe": "data pipes were given up by PyTorch",
    "torch.utils.data.dataloader.": "workers are threads of the client",
    "torch.quantization": "no quantized dtypes",
    "torch.quantize": "no quantized dtypes",
    "torch.qint": "no quantized dtypes",
    "torch.quint": "no quantized dtypes",
    "Tensor.dequantize": "no quantized dtypes",
    "torch.backends": "the engine decides how it computes",
    "torch.__config__": "about an installation of PyTorch",
    "torch.fx": "not written yet",
    "torch.autograd.profiler": "the profiler is not written yet",
    "torch.profiler": "the profiler is not written yet",
    "torch.ByteStorage": "storages are the engine's own",
    "torch.Storage": "storages are the engine's own",
    "torch.Stream": "streams are the engine's",
    "torch.cuda._": "PyTorch's own internals",
    "torch.autograd.Variable._execution_engine": "PyTorch's own internals",
    "torch.autograd._": "PyTorch's own internals",
    "torch._utils.ExceptionWrapper": "PyTorch's own internals",
    "torch.serialization": "PyTorch's own files are refused: unpickling runs code",
}


def read_names(path: Path) -> dict[str, int]:
    """Maps each name to the number of projects that use it; 1 if the file has no count."""
    names: dict[str, int] = {}
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        first, _, rest = line.partition("|")
        count, name = (int(first), rest) if first.strip().isdigit() else (1, first)
        names[name.strip()] = count
    return names


def find(package: ModuleType, name: str) -> object:
    """The package's object for `torch.a.b` or `Tensor.c`; None if it is missing."""
    first, *path = name.split(".")
    found: object = package.Tensor if first == "Tensor" else package
    dotted = package.__name__
    for part in path:
        dotted = f"{dotted}.{part}"
        if hasattr(found, part):
            found = getattr(found, part)
            continue
        if not isinstance(found, ModuleType):
            return None
        try:  # a submodule that was not imported yet
            found = importlib.import_module(dotted)
        except ImportError:
            return None
    return found


def has(package: ModuleType, name: str) -> bool:
    """Whether the package has `torch.a.b` or `Tensor.c`."""
    return find(package, name) is not None


def covers(package: ModuleType, name: str) -> bool:
    """Whether the package has the name, or covers a bare operator name; overload suffixes are ignored."""
    if name.startswith(("torch.", "Tensor.", f"{package.__name__}.")):
        return has(package, name)
    base, _, overload = name.partition(".")
    public = [COVERED_BY[base][0]] if base in COVERED_BY else [place + name for place in PLACES]
    if overload and base not in COVERED_BY:
        public += [place + base for place in PLACES if callable(find(package, place + base))]
    return any(has(package, path) for path in public)


def reason(name: str) -> str:
    """The reason why the name is missing; empty if none is listed."""
    return next((why for beginning, why in REASONS.items() if name.startswith(beginning)), "")


def missing(package: ModuleType, names: dict[str, int]) -> list[tuple[int, str, str]]:
    """(uses, name, reason) of each missing name, the most used first."""
    return [(count, name, reason(name)) for name, count in sorted(names.items(), key=lambda row: (-row[1], row[0]))
            if not covers(package, name)]  # fmt: skip


def emit(rows: list[tuple[int, str, str]], names: dict[str, int], least: int) -> str:
    """The page as Markdown."""
    lines = ["# What PyTorch has and we do not", ""]
    lines += ["Generated by `make coverage`; counted are projects that use a name.", ""]
    lines += ["| used by | names | here | missing | without a reason |", "|---:|---:|---:|---:|---:|"]
    for limit in (100, 10, 3, 1):
        used = sum(count >= limit for count in names.values())
        lacking = [row for row in rows if row[0] >= limit]
        unexplained = sum(not why for _, _, why in lacking)
        lines.append(f"| {limit} or more | {used} | {used - len(lacking)} | {len(lacking)} | {unexplained} |")
    lines += ["", f"Missing names that {least} projects or more use:", "", "| projects | name | why |", "|---:|---|---|"]
    lines += [f"| {count} | `{name}` | {why} |" for count, name, why in rows if count >= least]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.conformance.coverage", description=__doc__)
    parser.add_argument("--names", type=Path, required=True, help="lines of count|name")
    parser.add_argument("--out", type=Path, help="output file (default: standard output)")
    parser.add_argument("--least", type=int, default=3, help="list names with at least this many uses")
    args = parser.parse_args()
    names = read_names(args.names)
    page = emit(missing(importlib.import_module("teletensor"), names), names, args.least)
    if args.out is None:
        print(page, end="")
        return
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(page)


if __name__ == "__main__":
    main()
