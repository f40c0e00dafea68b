"""The commands ``teletensor models`` and ``teletensor serve``: the models that an engine serves, and an engine for some."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from . import _C, _printable
from .ray import find_daemon

_START_SECONDS = 60.0
_NATIVE = "program.pb"
_FILES = {".onnx": "model.onnx", ".pt2": "model.pt2"}


def add_arguments(models: argparse.ArgumentParser, serve: argparse.ArgumentParser) -> None:
    """Adds the arguments of both commands."""
    models.set_defaults(json=False)
    actions = models.add_subparsers(dest="action", metavar="ACTION")
    listed = actions.add_parser("list", help="a table of the models (default)")
    listed.add_argument("--json", action="store_true", help="print JSON")
    for name, text in (
        ("load", "load a model of the repository, or again if its files have changed"),
        ("unload", "stop serving a model"),
        ("show", "inputs, outputs, configuration and statistics of a model"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("name", help="of the model")
        if name == "show":
            action.add_argument("--version", default="", help="of the model (default: the newest one)")
    serve.add_argument("path", help="a model repository DIR/NAME/VERSION/, the folder of a native model, or a file .onnx or .pt2")
    serve.add_argument("--name", default="", help="of a single model (default: that of the file or folder)")
    serve.add_argument("--listen", default="127.0.0.1:7070", help="address of gRPC (default: 127.0.0.1:7070)")
    serve.add_argument("--http", default="127.0.0.1:8000", help="address of REST, metrics and the status page (default: 127.0.0.1:8000)")
    serve.add_argument("--open", action="store_true", help="answer inference requests without a token")
    serve.add_argument("--once", action="store_true", help="print the table when the models are loaded, then only run the engine")
    serve.add_argument("--option", action="append", default=[], metavar="TEXT",
                       help="of teletensord, such as --option=--model-poll=1; may be repeated")  # fmt: skip


def _table(rows: list[dict[str, Any]], statistics: list[dict[str, Any]]) -> Any:
    from rich.table import Table
    from rich.text import Text

    by_version = {(s["name"], s["version"]): s for s in statistics}
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("model", "version", "state", "requests", "rows", "batches", "mean time", "memory", "reason"):
        table.add_column(column, justify="left" if column in ("model", "version", "state", "reason") else "right")
    for row in rows:
        found = by_version.get((row["name"], row["version"]), {})
        success = found.get("inference_stats", {}).get("success", {})
        count = int(success.get("count", 0))
        held = sum(int(memory.get("byte_size", 0)) for memory in found.get("memory_usage", []))
        cells = (
            row["name"], row["version"], row["state"], str(count), str(found.get("inference_count", 0)),
            str(found.get("execution_count", 0)), f"{int(success.get('ns', 0)) / count / 1e6:.2f} ms" if count else "",
            f"{held / 2**20:.1f} MiB" if held else "", row["reason"],
        )  # fmt: skip
        table.add_row(*map(Text, cells))  # a publisher chooses names and reasons: no markup
    return table


def _show_table(engine: _C.Inference) -> Any:
    return _table(_printable.loads(engine.index())["models"], _printable.loads(engine.statistics())["model_stats"])


def run_models(args: argparse.Namespace) -> int:
    """Runs ``teletensor models``. Returns its exit status."""
    token = args.admin_token or args.token or os.environ.get("TELETENSOR_ADMIN_TOKEN", "")
    engine = _C.Inference(args.address, token, args.fingerprint, args.ca)
    if args.action == "load":
        engine.load(args.name)
        print(f"{args.name} is loaded")
    elif args.action == "unload":
        engine.unload(args.name)
        print(f"{args.name} is unloaded")
    elif args.action == "show":
        shown = {
            "metadata": json.loads(engine.metadata(args.name, args.version)),
            **json.loads(engine.config(args.name, args.version)),
            "statistics": json.loads(engine.statistics(args.name, args.version))["model_stats"],
        }
        print(json.dumps(shown, indent=2))
    elif args.json:
        print(json.dumps(json.loads(engine.index()), indent=2))
    else:
        from rich.console import Console

        Console().print(_show_table(engine))
    return 0


def _repository(path: Path, name: str, scratch: Path) -> Path:
    """The repository that contains what the path names: itself, or a new one with one model, which links to it."""
    if not path.exists():
        raise ValueError(f"[serve] expected a folder or a file, got {os.fspath(path)!r}")
    if path.is_dir() and not (path / _NATIVE).exists():
        if name:
            raise ValueError("[serve] expected --name with a single model only")
        return path
    if path.is_file() and path.suffix not in _FILES:
        raise ValueError(f"[serve] expected a file with one of the endings {', '.join(_FILES)}, got {path.name!r}")
    version = scratch / (name or (path.stem if path.is_file() else path.name)) / "1"
    version.parent.mkdir(parents=True)
    if path.is_dir():
        shutil.copytree(path, version)
    else:
        version.mkdir()
        shutil.copyfile(path, version / _FILES[path.suffix])
        for data in (*path.parent.glob(f"{path.name}.data"), *path.parent.glob(f"{path.name}_data")):  # ONNX's external data
            shutil.copyfile(data, version / data.name)
    return scratch


def _wait_until_ready(engine: _C.Inference, process: subprocess.Popen) -> None:
    until = time.monotonic() + _START_SECONDS
    while process.poll() is None:
        with contextlib.suppress(ConnectionError, PermissionError, ValueError):
            models = json.loads(engine.index())["models"]
            if models and all(m["state"] == "READY" or m["reason"] for m in models) or time.monotonic() > until:
                return
        time.sleep(0.1)
    raise ValueError(f"teletensord has ended with the status {process.returncode}")


def run_serve(args: argparse.Namespace) -> int:
    """Runs ``teletensor serve``: an engine, and a table of its models until it ends. Returns the engine's exit status."""
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with tempfile.TemporaryDirectory(prefix="teletensor-models-") as scratch:
        models = _repository(Path(args.path), args.name, Path(scratch))
        command = [find_daemon(), "--listen", args.listen, "--http", args.http, "--models", os.fspath(models.absolute())]
        command += ["--models-open"] if args.open else []
        process = subprocess.Popen([*command, *args.option])
        try:
            engine = _C.Inference(args.listen, args.admin_token or args.token)
            _wait_until_ready(engine, process)
            console.print(f"gRPC at {args.listen}, REST at http://{args.http}/v2; Ctrl+C ends the engine")
            if args.once or not console.is_terminal:
                console.print(_show_table(engine))
                return process.wait()
            with Live(_show_table(engine), console=console, auto_refresh=False) as live:
                while process.poll() is None:
                    time.sleep(1)
                    with contextlib.suppress(ConnectionError):
                        live.update(_show_table(engine), refresh=True)
            return process.returncode
        except KeyboardInterrupt:
            return 0
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(20)
            if process.poll() is None:
                process.kill()
            sys.stdout.flush()
