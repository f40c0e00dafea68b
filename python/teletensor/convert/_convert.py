"""convert(): from the file of one format to one of another."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import teletensor as torch

from .. import serving
from ..serving._files import _write_safetensors
from ._report import Report
from ._sources import Source, from_onnx, from_pt2

ONNX, PT2, NATIVE, WEIGHTS = "ONNX", "torch.export", "native model", "safetensors"
_SUFFIXES = {".onnx": ONNX, ".pt2": PT2, ".safetensors": WEIGHTS}
_REFUSED = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, MemoryError, OSError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip


class ConversionFailed(RuntimeError):  # noqa: N818 - as in "the conversion has failed"
    """A model could not be converted. `report` has the reasons."""

    def __init__(self, report: Report) -> None:
        super().__init__("[convert] " + "; ".join(report.problems))
        self.report = report


def format_of(path: Path) -> str:
    """The format that a path names: by its suffix; a folder, or a name without a suffix, is a native model.

    Raises:
        ValueError: the suffix is that of no format.
    """
    if path.suffix in _SUFFIXES and not path.is_dir():
        return _SUFFIXES[path.suffix]
    if path.suffix == "" or path.is_dir():
        return NATIVE
    raise ValueError(
        f"[convert] expected a path that ends in .onnx, .pt2 or .safetensors, or a folder, got {str(path)!r}"
    )


def convert(
    source: str | os.PathLike, target: str | os.PathLike, *, sizes: Mapping[str, int] | None = None, opset: int | None = None,
    static: bool = False, check: bool = True, lower: bool = True, device: Any = "cpu",
) -> Report:  # fmt: skip
    """Converts a model from one file to another. An existing target is replaced, if the conversion succeeds.

    Args:
        source: an .onnx or .pt2 file.
        target: an .onnx or .pt2 file; a folder for a native model (program.pb and model.safetensors), which is made with
            those around it, or a .safetensors file for the weights alone.
        sizes: for sizes that the model leaves open, numbers of at least 1 to record it with, by name.
        opset: the operator set of an ONNX target.
        static: makes every size that of the examples.
        check: runs source and target for the example inputs, and fails if they differ.
        lower: computes quantized layers of a .pt2 file (PT2E) with integers in a native model, as lower_pt2e() does.
        device: where the model is read to.

    Returns:
        What was converted, and which open sizes became fixed.

    Raises:
        ConversionFailed: the model was not converted. Its `report` lists the reasons.
        ValueError: a path or an argument is invalid.
    """
    source, target = Path(source), Path(target)
    formats = format_of(source), format_of(target)
    report = Report(str(source), str(target), formats)
    if opset is not None and formats[1] != ONNX:
        raise ValueError(f"[convert] expected opset for an ONNX target only, got a target of the format {formats[1]}")
    try:
        read = _read(source, formats, dict(sizes or {}), device)
        if lower and formats == (PT2, NATIVE):
            _lower(report, read)
        _describe(report, read)
        with torch.no_grad(), _staged(target, formats[1]) as part:
            _write(report, read, part, formats[1], opset, static)
            if check and formats[1] != WEIGHTS:
                _compare(report, read, part, formats[1], device)
    except _REFUSED as error:
        notes = getattr(error, "__notes__", [])
        report.problems.append("; ".join([f"{type(error).__name__}: {error}", *notes]))
        report.failed = True
        raise ConversionFailed(report) from error
    return report


@contextlib.contextmanager
def _staged(target: Path, kind: str) -> Iterator[Path]:
    """A path to write to. What is there at the end of the context takes the target's place; nothing does if that raises."""
    inside = kind == NATIVE and target.is_dir()
    if kind == NATIVE and not inside and (target.exists() or target.is_symlink()):
        raise ValueError(f"[convert] expected a folder, or a path where nothing is, got {str(target)!r}")
    if kind != NATIVE and not target.parent.is_dir():
        raise FileNotFoundError(f"[convert] the folder of {str(target)!r} does not exist")
    with _parents(target):
        yield from _staged_in(target, kind, target if inside else target.parent)


@contextlib.contextmanager
def _parents(target: Path) -> Iterator[None]:
    """The folders around a path, which are made. Those that are new are removed if the context raises."""
    missing = [p for p in target.parents if not p.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in missing:
            with contextlib.suppress(OSError):  # something else is in it by now
                folder.rmdir()
        raise


def _staged_in(target: Path, kind: str, folder: Path) -> Iterator[Path]:
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=folder))
    try:
        part = staging / target.name
        yield part
        if kind == NATIVE:
            target.mkdir(exist_ok=True)
        # The model last: external data before it, weights before the Program.
        files = sorted((part if kind == NATIVE else staging).iterdir(), key=lambda p: p.name in (target.name, "program.pb"))
        for file in files:
            os.replace(file, (target if kind == NATIVE else target.parent) / file.name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _read(source: Path, formats: tuple[str, str], sizes: dict[str, int], device: Any) -> Source:
    kind, to = formats
    if not source.exists():
        raise FileNotFoundError(f"[convert] {str(source)!r} does not exist")
    if kind == to:
        raise NotImplementedError(f"[convert] source and target both have the format {kind}")
    if kind == NATIVE:
        raise NotImplementedError(
            "[convert] a native model has a Program of the engine, without the operators of other formats; convert its source"
        )
    if kind == WEIGHTS:
        raise NotImplementedError("[convert] a .safetensors file has weights, but no model")
    if any(n < 1 for n in sizes.values()):
        raise ValueError(f"[convert] expected sizes of at least 1, got {sizes}")
    read = from_onnx(source, sizes, device) if kind == ONNX else from_pt2(source, sizes, device)
    unknown = [n for n in sizes if n not in _names(read.open_sizes)]
    if unknown:
        raise ValueError(f"[convert] expected names of the open sizes {_names(read.open_sizes)}, got {unknown}")
    return read


def _lower(report: Report, read: Source) -> None:
    """Replaces quantized layers by integer kernels, if there are any."""
    if not any(str(node.target).startswith("quantized_decomposed.") for node in read.module.graph.nodes):
        return
    from ..ao.quantization.pt2e.lowering import lower_pt2e

    read.module = lower_pt2e(read.module, inplace=True)
    count = sum(str(node.target).startswith("teletensor.int8_") for node in read.module.graph.nodes)
    report.notes.append(f"{count} quantized layers compute with integers")


def _text(name: str, tensor: Any, dims: Mapping[int, str]) -> str:
    shape = ", ".join(dims.get(d, str(n)) for d, n in enumerate(tensor.shape))
    return f"{name}: {str(tensor.dtype).removeprefix('torch.')}[{shape}]"


def _describe(report: Report, read: Source) -> None:
    report.inputs = [_text(n, t, d) for n, t, d in zip(read.names, read.examples, read.open_sizes)]
    weights = list(read.module.state_dict().values())
    report.weights, report.bytes = len(weights), sum(t.numel() * t.element_size() for t in weights)


def _attempts(read: Source, static: bool) -> list[list[dict[int, str]]]:
    """The open sizes to try: all, the batches alone, none."""
    none: list[dict[int, str]] = [{} for _ in read.names]
    if static or not any(read.open_sizes):
        return [none]
    batches = [{d: n for d, n in dims.items() if d == 0} for dims in read.open_sizes]
    return [read.open_sizes, *([batches] if batches != read.open_sizes and any(batches) else []), none]


def _write(report: Report, read: Source, target: Path, kind: str, opset: int | None, static: bool) -> None:
    if kind == WEIGHTS:
        weights = {name.removeprefix("model."): t for name, t in read.module.state_dict().items()}
        _write_safetensors(target, weights)
        report.notes.append("only the weights were written")
        return
    attempts = [[]] if read.program is not None and kind == ONNX and not static else _attempts(read, static)
    for number, open_sizes in enumerate(attempts):
        try:
            _write_with(read, target, kind, opset, open_sizes)
        except _REFUSED as error:
            if number + 1 == len(attempts):
                raise
            report.notes.append(f"with the open sizes {_names(open_sizes)}: {type(error).__name__}: {str(error)[:300]}")
            continue
        kept = _names(open_sizes if open_sizes or not attempts[0] == [] else read.open_sizes)
        report.kept_symbols = kept
        lost = [n for n in _names(read.open_sizes) if n not in kept]
        if lost:
            report.notes.append(f"fixed to the sizes of the examples: {', '.join(lost)}")
        return


def _names(open_sizes: list[dict[int, str]]) -> list[str]:
    return list(dict.fromkeys(n for dims in open_sizes for n in dims.values()))


def _write_with(read: Source, target: Path, kind: str, opset: int | None, open_sizes: list[dict[int, str]]) -> None:
    if kind == NATIVE:
        serving.save(
            read.module, target, read.examples, dynamic_batch=False, dynamic_shapes=open_sizes, input_names=read.names,
            output_names=read.output_names,
        )  # fmt: skip
        return
    examples = tuple(read.examples)
    if kind == PT2:
        dims = {n: torch.export.Dim(n) for n in _names(open_sizes)}
        shapes = tuple({d: dims[n] for d, n in own.items()} for own in open_sizes) if dims else None
        torch.export.save(torch.export.export(read.module, examples, dynamic_shapes=shapes), target)
        return
    options = {} if opset is None else {"opset_version": opset}
    torch.onnx.export(
        read.program, examples, target, input_names=read.names, external_data=read_bytes(read) > 1 << 30, **options
    )


def read_bytes(read: Source) -> int:
    """The size of the weights."""
    return sum(t.numel() * t.element_size() for t in read.module.state_dict().values())


def _compare(report: Report, read: Source, target: Path, kind: str, device: Any) -> None:
    """Runs source and target, except native models, which only a daemon runs."""
    expected = torch.utils._pytree.tree_leaves(read.module(*read.examples))
    report.outputs = [
        _text(n, t, {}) for n, t in zip(read.output_names or [f"output_{i}" for i in range(len(expected))], expected)
    ]
    if kind == NATIVE:
        described = serving.read(target)
        if len(described["entries"][0]["outputs"]) != len(expected):
            raise RuntimeError(f"[convert] expected {len(expected)} outputs in the target")
        return
    found = torch.export.load(target).module() if kind == PT2 else torch.onnx.load(target, device=device)
    results = torch.utils._pytree.tree_leaves(found(*read.examples))
    if len(results) != len(expected):
        raise RuntimeError(f"[convert] expected {len(expected)} outputs of the target, got {len(results)}")
    worst = 0.0
    for a, b in zip(expected, results):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise RuntimeError(
                f"[convert] the target's output is {b.dtype}{list(b.shape)}, the source's {a.dtype}{list(a.shape)}"
            )
        if not a.numel():
            continue
        if not torch.equal(torch.isnan(a.to(torch.float64)), torch.isnan(b.to(torch.float64))):
            raise RuntimeError("[convert] outputs of source and target differ: one of them is not a number")
        difference = (a.to(torch.float64) - b.to(torch.float64)).abs().nan_to_num(0.0).max().item()
        scale = max(1.0, a.to(torch.float64).abs().nan_to_num(0.0, 0.0, 0.0).max().item())
        worst = max(worst, difference)
        if difference > 1e-3 * scale:
            raise RuntimeError(f"[convert] outputs of source and target differ by {difference:.3g}")
    report.difference = worst
