"""Serves the ONNX model of the package `magika`, which recognises the type of a file from its first and last bytes.

    pip install magika tritonclient[grpc]
    python examples/serve_onnx.py README.md examples/serve_onnx.py

`teletensor convert` makes a native model of the ONNX file; a daemon serves it, and a client of the Open Inference Protocol, which
knows nothing of teletensor, asks for the types of the given files. The features are those of magika's own client: 1,024 bytes
from the beginning and 1,024 from the end, without whitespace, padded with 256.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from serve_llama import daemon, wait_until_ready  # noqa: E402

PADDING = 256


def find_model() -> Path:
    """The folder of the package's newest standard model, with model.onnx and config.min.json."""
    spec = importlib.util.find_spec("magika")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package magika is missing: pip install magika")
    found = sorted(Path(spec.submodule_search_locations[0]).glob("models/standard_v*/model.onnx"))
    if not found:
        raise SystemExit("the package magika has no standard model")
    return found[-1].parent


def features(data: bytes, config: dict) -> np.ndarray:
    """The model's input of one file: int32 [beginning + end]."""
    begin, end, block = config["beg_size"], config["end_size"], config["block_size"]
    first = data[:block].lstrip()[:begin]
    last = data[-block:].rstrip()[-end:] if end else b""
    row = np.full(begin + end, config["padding_token"], np.int32)
    row[: len(first)] = list(first)
    if end:
        row[begin + end - len(last) :] = list(last)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    args = parser.parse_args()
    import tritonclient.grpc as grpc

    model = find_model()
    config = json.loads((model / "config.min.json").read_text())
    rows = np.stack([features(path.read_bytes(), config) for path in args.files])
    with tempfile.TemporaryDirectory() as folder:
        version = Path(folder, "models/magika/1")
        version.parent.mkdir(parents=True)
        subprocess.run([sys.executable, "-m", "teletensor.cli", "convert", str(model / "model.onnx"), str(version)], check=True)
        with daemon(version.parents[1], Path(folder, "log")) as (address, token):
            wait_until_ready(address, token, "magika")
            with grpc.InferenceServerClient(address) as client:
                headers = {"authorization": f"Bearer {token}"}
                described = client.get_model_metadata("magika", headers=headers)
                tensor = grpc.InferInput(described.inputs[0].name, list(rows.shape), described.inputs[0].datatype)
                tensor.set_data_from_numpy(rows)
                result = client.infer("magika", [tensor], headers=headers)
                scores = result.as_numpy(described.outputs[0].name)
    for path, row in zip(args.files, scores):
        print(f"{path}: {config['target_labels_space'][int(row.argmax())]} ({row.max():.1%})")


if __name__ == "__main__":
    main()
