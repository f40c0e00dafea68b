"""`python -m benchmarks.transformers [--rounds N] [--batch N]`: a training step of BERT and GPT-2 of the package transformers.

teletensor runs through `teletensor.as_torch` with a private engine; PyTorch runs eagerly. Both use the environments of
tests/conformance/libraries, alternate, and are measured on the same machine with the same number of threads. A step is
forward, backward, AdamW and zero_grad; a round is the mean of 20 steps after 5 that are not counted, and ends with reading
the loss. The table shows the fastest and the median round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

WARMUP, STEPS = 5, 20
MODELS = ("bert", "gpt2")


def _model(name: str):
    """A small model: 4 layers of width 256, 8 heads, a vocabulary of 8192."""
    import transformers

    if name == "bert":
        config = transformers.BertConfig(
            vocab_size=8192, hidden_size=256, num_hidden_layers=4, num_attention_heads=8, intermediate_size=1024, num_labels=4
        )
        return transformers.BertForSequenceClassification(config)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=8192, n_embd=256, n_layer=4, n_head=8, n_positions=128))


def measure(name: str, batch: int) -> float:
    """Returns the seconds per training step."""
    import torch

    torch.manual_seed(0)
    model = _model(name).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    words = torch.randint(0, 8192, (batch, 128))
    labels = torch.randint(0, 4, (batch,)) if name == "bert" else words
    begin = 0.0
    for step in range(WARMUP + STEPS):
        if step == WARMUP:
            loss.item()  # noqa: F821 - of the last step
            begin = time.perf_counter()
        loss = model(input_ids=words, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loss.item()
    return (time.perf_counter() - begin) / STEPS


def _run(library: str, name: str, batch: int) -> float:
    """One round in a process of its own."""
    from tests.conformance.libraries import environment

    root = environment.ROOT
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, environment.paths(library))), "HF_HUB_OFFLINE": "1"}
    variables["TELETENSOR_DAEMON"] = str(root / "build/bin/teletensord")
    command = [environment.interpreter(library), str(Path(__file__)), "--worker", library, name, str(batch)]
    done = subprocess.run(command, cwd=root, env=variables, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{library} {name}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Prints the table."""
    from rich.console import Console
    from rich.table import Table

    from tests.conformance.libraries import environment

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args()
    environment.prepare()
    title = f"training step, batch {options.batch} x 128"
    table = Table("model", "library", "fastest, ms", "median, ms", "median / PyTorch's", title=title)
    for name in MODELS:
        seconds: dict[str, list[float]] = {"teletensor": [], "torch": []}
        for _ in range(options.rounds):
            for library, found in seconds.items():
                found.append(_run(library, name, options.batch))
                print(f"{name} with {library}: {found[-1] * 1e3:.1f} ms per step", flush=True)
        medians = {library: statistics.median(found) for library, found in seconds.items()}
        for library, found in seconds.items():
            ratio = medians[library] / medians["torch"]
            table.add_row(name, library, f"{min(found) * 1e3:.1f}", f"{medians[library] * 1e3:.1f}", f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        sys.path.pop(0)  # benchmarks/, whose modules are named like packages
        if sys.argv[2] == "teletensor":
            import teletensor.as_torch  # noqa: F401 - `import torch` is teletensor
        print(json.dumps(measure(sys.argv[3], int(sys.argv[4]))))
    else:
        main()
