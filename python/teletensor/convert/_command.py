"""The command `teletensor convert`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.description = (
        "Converts a model: from .onnx or .pt2 to .onnx, .pt2, a folder with a native model (program.pb, model.safetensors), or "
        ".safetensors for its weights. Prints a report; the exit status is 1 if the model was not converted."
    )
    parser.add_argument("source", metavar="IN", help="an .onnx or .pt2 file")
    parser.add_argument("target", metavar="OUT", help="an .onnx, .pt2 or .safetensors file, or a folder")
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N", help="record the model with this size for an open one"
    )
    parser.add_argument("--opset", type=int, default=None, help="the operator set of an ONNX target")
    parser.add_argument("--static", action="store_true", help="fix every size to that of the examples")
    parser.add_argument("--no-check", action="store_true", help="do not run source and target for the example inputs")
    parser.add_argument("--no-lower", action="store_true", help="keep the operators of quantized layers in a native model")
    parser.add_argument("--report", metavar="FILE", help="write the report there as JSON")


def _sizes(texts: list[str]) -> dict[str, int]:
    found = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        if not name or not number.isdigit() or int(number) < 1:
            raise ValueError(f"[convert] expected --size NAME=N, got {text!r}")
        found[name] = int(number)
    return found


def run(args: argparse.Namespace) -> int:
    """Converts, prints the report, and returns the exit status."""
    from ._convert import ConversionFailed, convert

    try:
        report = convert(
            args.source,
            args.target,
            sizes=_sizes(args.size),
            opset=args.opset,
            static=args.static,
            check=not args.no_check,
            lower=not args.no_lower,
        )
    except ConversionFailed as error:
        report = error.report
    print(report, file=sys.stderr if report.failed else sys.stdout)
    if args.report:
        Path(args.report).write_text(report.json())
    return int(report.failed)
