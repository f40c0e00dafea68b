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

# Families of names that are missing on purpose, by prefix, with the reason.
REASONS = {
    "torch.jit": "TorchScript is not supported",
    "torch._jit_internal": "TorchScript is not supported",
    "torch._C": "internal to PyTorch",
    "torch.classes": "classes of TorchScript",
    "torch.ops": "operators are declared in the engine",
    "torch.onnx": "internal to the TorchScript exporter",
    "torch.hub": "code is never loaded from the network",
    "torch.multiprocessing": "processes share an engine by connecting to it",
    "torch.distributed": "process groups belong to the engine",
    "torch.batch_norm_": "kernels of synchronised batch norm; process groups belong to the engine",
    "torch.nn.parallel": "process groups belong to the engine",
    "torch.nn.DataParallel": "process groups belong to the engine",
    "Tensor.indices": "a method of sparse tensors; the count includes all methods of that name",
    "Tensor.values": "a method of sparse tensors; the count includes all methods of that name, mostly dict's",
    "Tensor.index": "not a method of PyTorch's tensors; the count is of list.index",
    "torch.utils.cpp_extension": "operators are declared in the engine",
    "torch.utils.tensorboard": "use the tensorboard package",
    "torch.utils.model_zoo": "code is never loaded from the network",
    "torch.utils.collect_env": "describes a PyTorch installation",
    "torch.utils.data._utils": "workers are threads of the client",
    "torch.utils.data.functional_datapipe": "data pipes are deprecated in PyTorch",
    "torch.utils.data.IterDataPipe": "data pipes are deprecated in PyTorch",
    "torch.utils.data.dataloader.": "workers are threads of the client",
    "torch.quantization": "no quantized dtypes",
    "torch.quantize": "no quantized dtypes",
    "torch.qint": "no quantized dtypes",
    "torch.quint": "no quantized dtypes",
    "Tensor.dequantize": "no quantized dtypes",
    "torch.backends": "backends are chosen by the engine",
    "torch.__config__": "describes a PyTorch installation",
    "torch.fx": "not implemented yet",
    "torch.autograd.profiler": "the profiler is not implemented yet",
    "torch.profiler": "the profiler is not implemented yet",
    "torch.ByteStorage": "storages belong to the engine",
    "torch.Storage": "storages belong to the engine",
    "torch.Stream": "streams belong to the engine",
    "torch.cuda._": "internal to PyTorch",
    "torch.autograd.Variable._execution_engine": "internal to PyTorch",
    "torch.autograd._": "internal to PyTorch",
    "torch._utils.ExceptionWrapper": "internal to PyTorch",
    "torch.serialization": "PyTorch's files are rejected, since unpickling runs code",
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
    lines = ["# Names of PyTorch that are missing", ""]
    lines += ["Generated by `make coverage`; counts are of projects that use a name.", ""]
    lines += ["| used by | names | available | missing | without a reason |", "|---:|---:|---:|---:|---:|"]
    for limit in (100, 10, 3, 1):
        used = sum(count >= limit for count in names.values())
        lacking = [row for row in rows if row[0] >= limit]
        unexplained = sum(not why for _, _, why in lacking)
        lines.append(f"| {limit} or more | {used} | {used - len(lacking)} | {len(lacking)} | {unexplained} |")
    lines += ["", f"Missing names used by {least} or more projects:", "", "| projects | name | why |", "|---:|---|---|"]
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
