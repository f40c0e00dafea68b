"""Trains the Fashion-MNIST network or a character GPT on several engines with DistributedDataParallel.

    teletensor launch -n 2 examples/data_parallel.py --model gpt      # two ranks, each with a private engine
    python examples/data_parallel.py --model gpt --engines 1 2 4      # three such runs, compared

A global batch is divided among the ranks, so that every number of engines trains the same model: the loss per epoch is equal
except for rounding. Batch norm amplifies rounding: after 32 steps the classifier's losses on one and two engines differ by 3e-4
of their value in float32, and by less than 1e-11 in float64. Rank 0 reports the progress of all ranks.

With --engines, each engine has one thread. Writes data_parallel_<model>.md, a table of speed and loss, and
data_parallel_<model>.png, the speed-up beside the cost model's: the step of one engine, divided by the number of
engines (or of cores, if there are fewer cores), plus an all_reduce of the gradients' size, measured alone on as many engines.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from char_gpt import GPT, find_text, read_text
from fashion_mnist import OUT, Net, load
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import teletensor as torch
import teletensor.distributed as dist
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor.nn.parallel import DistributedDataParallel
from teletensor.utils.data import DataLoader, DistributedSampler, TensorDataset

FASHION = Path("/usr/share/datasets/fashion-mnist")  # Debian's dataset-fashion-mnist
WARM_UP = 3  # steps that are not timed
REPORT = re.compile(r"step (\d+)/(\d+)  (loss .*)")  # the line with which rank 0 reports progress


def task(args) -> tuple[nn.Module, TensorDataset]:
    """Returns the model, equal on all ranks, and the data set, stored in each engine."""
    torch.manual_seed(0)
    if args.model == "fashion":
        images, labels = load(args.data, "train", "cpu")
        model = Net()
        # The ranks' masks would differ from those of one engine, and so would the losses.
        model.drop = nn.Identity()
        return nn.SyncBatchNorm.convert_sync_batchnorm(model), TensorDataset(images, labels)
    symbols, text = read_text(args.data)
    text = torch.from_numpy(text)
    count = (len(text) - 1) // args.length
    inputs, targets = (text[i : i + count * args.length].reshape(count, args.length) for i in (0, 1))
    return GPT(len(symbols), args.length), TensorDataset(inputs, targets)


class Reporter:
    """Prints the losses of rank 0's requests when they have arrived, without waiting for them."""

    def __init__(self, steps: int, batch: int):
        self._steps, self._batch = steps, batch
        self._pending: deque = deque()
        self._started = time.perf_counter()

    def add(self, step: int, loss: torch.Tensor) -> None:
        self._pending.append((step, loss.item_async()))

    def show(self, wait: bool = False) -> None:
        """Prints the losses that have arrived, or waits and prints all."""
        while self._pending and (wait or self._pending[0][1].done()):
            step, loss = self._pending.popleft()
            rate = step * self._batch / (time.perf_counter() - self._started)
            print(f"step {step}/{self._steps}  loss {loss.wait():.3f}  {rate:,.0f} samples/s", flush=True)


def train(model: nn.Module, data: TensorDataset, args) -> dict:
    """Trains; returns the mean loss of each epoch over all ranks, and the seconds per step."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if args.batch % ranks:
        raise SystemExit(f"data_parallel: expected --batch to be a multiple of {ranks} ranks, got {args.batch}")
    per_epoch = min(args.steps or len(data), len(data) // args.batch)
    steps = args.epochs * per_epoch
    # Rank r has the indices r, r + ranks, ..., so that the ranks' batches together equal the batch of one engine.
    sampler = DistributedSampler(data, shuffle=True, seed=0)
    loader = DataLoader(data, args.batch // ranks, sampler=sampler, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    reporter = Reporter(steps, args.batch)
    every = max(1, steps // 50)
    step, started, losses = 0, 0.0, []
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(())
        for x, y in itertools.islice(loader, per_epoch):
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            step += 1
            if step == min(WARM_UP, steps - 1):
                loss.item()
                dist.barrier()
                started, timed = time.perf_counter(), steps - step
            if step % every == 0 or step == steps:
                shown = loss.detach().clone()
                dist.all_reduce(shown, dist.ReduceOp.AVG)
                if rank == 0:
                    reporter.add(step, shown)
            if rank == 0:
                reporter.show()
        dist.all_reduce(total, dist.ReduceOp.AVG)
        losses.append(total / per_epoch)
    losses = [loss.item() for loss in losses]
    seconds = time.perf_counter() - started
    reporter.show(wait=True)
    return {"losses": losses, "step": seconds / timed}


def all_reduce_seconds(count: int, repeats: int = 20) -> float:
    """Returns the seconds of an all_reduce of `count` float32 numbers, the best of three rounds."""
    x = torch.zeros(count)
    best = float("inf")
    for _ in range(3):
        dist.all_reduce(x)
        x[0].item()
        dist.barrier()
        started = time.perf_counter()
        for _ in range(repeats):
            dist.all_reduce(x)
        x[0].item()
        best = min(best, (time.perf_counter() - started) / repeats)
    return best


def run_rank(args) -> None:
    """Runs one rank. Rank 0 writes its measurements to --result."""
    dist.init_process_group()
    model, data = task(args)
    numbers = sum(p.numel() for p in model.parameters())
    result = train(DistributedDataParallel(model), data, args)
    result |= {"engines": dist.get_world_size(), "numbers": numbers, "all_reduce": all_reduce_seconds(numbers)}
    if dist.get_rank() == 0:
        for epoch, loss in enumerate(result["losses"], 1):
            print(f"epoch {epoch}: mean loss {loss:.6f}", flush=True)
        if args.result:
            args.result.write_text(json.dumps(result))
    dist.barrier()
    dist.destroy_process_group()


def launch(engines: int, args, progress: Progress) -> dict:
    """Runs this script on a number of engines with `teletensor launch`; returns rank 0's measurements."""
    bar = progress.add_task(f"{engines} engine{'s' * (engines > 1)}", total=None)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "result.json"
        options = [f"--{name}={getattr(args, name)}"
                   for name in ("model", "data", "epochs", "steps", "batch", "length", "lr")]  # fmt: skip
        command = [
            sys.executable,
            "-m",
            "teletensor.launch",
            "-n",
            str(engines),
            __file__,
            *options,
            f"--result={file}",
        ]
        environment = {"TELETENSOR_THREADS": "1", "OMP_NUM_THREADS": "1", **os.environ}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if found := REPORT.search(line):
                    progress.update(
                        bar, completed=int(found[1]), total=int(found[2]), description=f"{engines}: {found[3]}"
                    )
                else:
                    progress.console.print(line.rstrip(), markup=False, highlight=False)
        if process.returncode:
            raise SystemExit(process.returncode)
        return json.loads(file.read_text())


def compare(args) -> None:
    """Runs all numbers of engines one after the other, and writes the table and the plot."""
    others = os.getloadavg()[0]  # processes of other programs that compete for cores
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        results = [launch(engines, args, progress) for engines in args.engines]
    cores = len(os.sched_getaffinity(0))
    first = results[0]
    alone = first["step"] * min(first["engines"], cores)  # estimated if the first run has several engines
    for result in results:
        engines, reduce = result["engines"], result["all_reduce"] if result["engines"] > 1 else 0.0
        result["predicted"] = alone / min(engines, cores) + reduce
        result["predicted_apart"] = alone / engines + reduce
        result["difference"] = max(abs(a - b) / abs(b) for a, b in zip(result["losses"], first["losses"]))
    lines = [
        f"# {args.model}: global batch {args.batch}, {first['numbers']:,} parameters, {cores} cores, one thread per engine",
        "",
        "| engines | step, ms | all_reduce, ms | predicted, ms | with a core per engine, ms | speed-up | predicted | "
        "loss per epoch | largest relative difference |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        milliseconds = (f"{r[name] * 1e3:.2f}" for name in ("step", "all_reduce", "predicted", "predicted_apart"))
        losses = ", ".join(f"{loss:.5f}" for loss in r["losses"])
        lines.append(f"| {r['engines']} | {' | '.join(milliseconds)} | {alone / r['step']:.2f} | "
                     f"{alone / r['predicted']:.2f} | {losses} | {r['difference']:.1e} |")  # fmt: skip
    if cores < max(args.engines):
        lines += [
            "",
            f"More than {cores} engines share {cores} cores: on an idle machine their speed-up is at most {cores}.",
        ]
    if others > 0.5:
        lines += [
            "",
            f"Other programs used the cores too (load average {others:.1f}), which changes the measured speed-ups.",
        ]
    args.out.mkdir(exist_ok=True)
    table = args.out / f"data_parallel_{args.model}.md"
    table.write_text("\n".join(lines) + "\n")
    print(table.read_text())
    draw(results, alone, cores, args)


def draw(results: list[dict], alone: float, cores: int, args) -> None:
    """Draws the speed-ups."""
    try:
        import matplotlib
    except ImportError:
        print("no plot: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    engines = [r["engines"] for r in results]
    figure, axes = plt.subplots(figsize=(6, 4))
    axes.plot(engines, [alone / r["step"] for r in results], "o-", label="measured")
    axes.plot(engines, [alone / r["predicted"] for r in results], "s--", label=f"cost model, {cores} cores")
    axes.plot(engines, [alone / r["predicted_apart"] for r in results], ":", label="cost model, one core per engine")
    axes.set(
        xlabel="engines with one thread",
        ylabel="speed-up",
        xticks=engines,
        title=f"{args.model}, global batch {args.batch}",
    )
    axes.grid(alpha=0.3)
    axes.legend()
    file = args.out / f"data_parallel_{args.model}.png"
    figure.savefig(file, dpi=120, bbox_inches="tight")
    print(f"wrote {os.path.relpath(file.with_suffix('.md'))} and {os.path.relpath(file)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Data-parallel training on several engines.")
    parser.add_argument("--model", choices=["fashion", "gpt"], default="fashion")
    parser.add_argument("--engines", type=int, nargs="+", help="numbers of engines to compare")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=0, help="maximum number of steps per epoch")
    parser.add_argument("--batch", type=int, help="global batch size: by default 128 images or 32 samples of text")
    parser.add_argument("--length", type=int, default=64, help="characters per sample of the GPT")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--data", type=Path, help="folder of the images, or file with the text")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the table and the plot")
    parser.add_argument("--result", type=Path, help="file for the measurements of rank 0, as JSON")
    args = parser.parse_args()
    args.data = args.data or FASHION if args.model == "fashion" else find_text(args.data)
    args.batch = args.batch or (128 if args.model == "fashion" else 32)
    if not args.data.exists():
        parser.error(f"expected the data in {args.data}; --data names another place")
    if args.engines:
        compare(args)
    else:
        run_rank(args)


if __name__ == "__main__":
    main()
