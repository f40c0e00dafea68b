"""`python -m tests.conformance.coverage --names FILE [--out PAGE]`: what PyTorch has and we do not, by use count.

FILE has lines `count|name`, names as `torch.nn.Linear` or `Tensor.view`, or bare names of operators (`abs`, `add.Tensor`,
`_softmax`; what follows a `|` is left out), which a public function of that name covers, or one that `covering.py` names.
The package that is asked is the one on the path (a build's `python/`), since a name may come from a declaration, from
C++ or from Python alike.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from types import ModuleType

from .covering import COVERED_BY, PLACES

# Families that we do not have on purpose, by the beginnings of their names, and why.
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
    """Name -> how many projects use it; 1 where the file does not say."""
    names: dict[str, int] = {}
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        first, _, rest = line.partition("|")
        count, name = (int(first), rest) if first.strip().isdigit() else (1, first)
        names[name.strip()] = count
    return names


def find(package: ModuleType, name: str) -> object:
    """What the package has as `torch.a.b` or `Tensor.c`; None where it has nothing."""
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
        try:  # a module that is there but was not imported yet
            found = importlib.import_module(dotted)
        except ImportError:
            return None
    return found


def has(package: ModuleType, name: str) -> bool:
    """Whether the package answers to `torch.a.b` or `Tensor.c`."""
    return find(package, name) is not None


def covers(package: ModuleType, name: str) -> bool:
    """Whether the package has the name, or, of a bare one, what covers it: any overload of a name is that name."""
    if name.startswith(("torch.", "Tensor.", f"{package.__name__}.")):
        return has(package, name)
    base, _, overload = name.partition(".")
    public = [COVERED_BY[base][0]] if base in COVERED_BY else [place + name for place in PLACES]
    if overload and base not in COVERED_BY:
        public += [place + base for place in PLACES if callable(find(package, place + base))]
    return any(has(package, path) for path in public)


def reason(name: str) -> str:
    """Why we lack the name; empty where there is no reason but that nobody wrote it."""
    return next((why for beginning, why in REASONS.items() if name.startswith(beginning)), "")


def missing(package: ModuleType, names: dict[str, int]) -> list[tuple[int, str, str]]:
    """(uses, name, reason) of what the package lacks, the most used first."""
    return [(count, name, reason(name)) for name, count in sorted(names.items(), key=lambda row: (-row[1], row[0]))
            if not covers(package, name)]  # fmt: skip


def emit(rows: list[tuple[int, str, str]], names: dict[str, int], least: int) -> str:
    """The page."""
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
    parser.add_argument("--out", type=Path, help="the page; standard output where not given")
    parser.add_argument("--least", type=int, default=3, help="list names with at least so many uses")
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
