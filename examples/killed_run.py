"""Trains a character GPT whose client is killed after a third of the run, and whose engine after two thirds.

    python examples/killed_run.py                  # 300 steps, about two minutes
    python examples/killed_run.py --steps 1000 --every 50

The engine writes a checkpoint every few steps while the training goes on (docs/checkpoints.md): parameters, the optimizer's
state, the schedule and the state of the random numbers, by which the engine draws the batches. Both are killed by SIGKILL, so
that neither can prepare for it. A new client continues from the last complete checkpoint; after the death of the engine the
same client connects to a new one. The same run without interruption is the reference: every loss must be equal, bit by bit.
Writes both curves as a picture to examples/out/.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from char_gpt import GPT, OUT, draw_windows, find_text, loss_of, make_optimizer, read_text
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import teletensor as torch
from teletensor import checkpoint

LENGTH = 64  # characters of context
RECONNECT = 120  # seconds that a client waits for the next engine


def report(**event) -> None:
    """Prints an event as a line of JSON, for the process that started this client."""
    print(json.dumps(event), flush=True)


class Run:
    """A training run in the current session, new or continued from its checkpoint."""

    def __init__(self, args):
        symbols, text = read_text(find_text(args.data))
        self.args, self.text, self.step = args, torch.from_numpy(text), 0
        torch.manual_seed(0)
        self.model = GPT(len(symbols), LENGTH, args.width)
        self.optimizer, self.schedule = make_optimizer(self.model, 1e-3, args.steps)
        self.pending: checkpoint.PendingSave | None = None

    def load(self) -> None:
        """Continues from the checkpoint, if there is one."""
        try:
            state = checkpoint.load(self.args.name)
        except FileNotFoundError:
            report(event="started", step=0)
            return
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        torch.set_rng_state(state["random"])
        self.step = state["step"]
        report(event="resumed", step=self.step)

    def save(self) -> None:
        """Completes the previous save, and starts the next, which the engine writes during the following steps."""
        if self.pending is not None:
            self.pending.result()
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "random": torch.get_rng_state(),
            "step": self.step,
        }
        self.pending = checkpoint.save_async(state, self.args.name)

    def train(self) -> None:
        losses: deque = deque()
        while self.step < self.args.steps:
            loss = loss_of(self.model, draw_windows(self.text, 12, LENGTH + 1))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            self.step += 1
            losses.append((self.step, loss.item_async()))
            if self.step % self.args.every == 0:
                self.save()
            while losses and (self.step == self.args.steps or losses[0][1].done()):
                step, value = losses.popleft()
                report(step=step, loss=value.wait())
            time.sleep(self.args.pause)
        if self.pending is not None:
            self.pending.result()


def run_client(args) -> None:
    """Trains to the last step. If the engine is lost, connects to the next engine at the address and continues."""
    lost = 0.0
    while True:
        try:
            torch.connect(args.address)
            lost = 0.0
            run = Run(args)
            run.load()
            run.train()
            return
        except ConnectionError as error:
            if not lost:
                lost = time.monotonic()
                report(event="lost", reason=str(error).splitlines()[0])
            elif time.monotonic() - lost > RECONNECT:
                raise
            time.sleep(0.1)


class Engine:
    """A teletensord with a folder for checkpoints."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.address = f"unix:{folder}/engine.sock"
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        package = Path(torch.__file__).parent
        places = [os.environ.get("TELETENSOR_DAEMON", ""), package / "teletensord", package / "bin/teletensord",
                  package.parents[1] / "bin/teletensord", shutil.which("teletensord") or ""]  # fmt: skip
        daemon = next((place for place in places if place and os.access(place, os.X_OK)), None)
        if daemon is None:
            raise SystemExit("teletensord was not found; set TELETENSOR_DAEMON to its path")
        root = self.folder / "checkpoints"
        root.mkdir(exist_ok=True)
        socket = self.folder / "engine.sock"
        socket.unlink(missing_ok=True)  # a killed engine leaves it
        command = [daemon, "--listen", self.address, "--no-auth", "--checkpoint-root", root]
        with open(self.folder / "engine.log", "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while not socket.exists():
            if self.process.poll() is not None:
                raise SystemExit((self.folder / "engine.log").read_text())
            time.sleep(0.01)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Client:
    """A client process that trains, and the losses that it reported: a list of (step, loss) per attempt."""

    def __init__(self, engine: Engine, name: str, args, progress: Progress, bar):
        options = [f"--{option}={getattr(args, option)}" for option in ("steps", "every", "width", "pause", "data")]
        command = [sys.executable, __file__, *options, f"--name={name}", f"--address={engine.address}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.attempts: list[list[tuple[int, float]]] = []
        self._progress, self._bar = progress, bar

    def follow(self, until: int = 0) -> None:
        """Reads what the client reports until it has finished a step or, without a step, until it ends."""
        for line in self.process.stdout:
            event = json.loads(line)
            if "loss" in event:
                self.attempts[-1].append((event["step"], event["loss"]))
                self._progress.update(self._bar, completed=event["step"])
                if event["step"] == until:
                    return
            elif event["event"] == "lost":
                self._progress.console.print(f"the client reports: {event['reason']}", markup=False)
            else:
                self.attempts.append([])
                self._progress.console.print(f"{event['event']} at step {event['step']}")
        if self.process.wait() or until:
            raise SystemExit(f"a client ended early, with exit code {self.process.returncode}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def interrupted_run(engine: Engine, args, progress: Progress) -> list[list[tuple[int, float]]]:
    """Trains, and kills first the client and then the engine. Returns the losses of the three attempts."""
    say = progress.console.print
    bar = progress.add_task("killed twice", total=args.steps)
    first = Client(engine, "killed", args, progress, bar)
    first.follow(until=args.steps // 3)
    first.kill()
    say(f"killed the client at step {first.attempts[-1][-1][0]}")
    second = Client(engine, "killed", args, progress, bar)
    second.follow(until=2 * args.steps // 3)
    engine.kill()
    say(f"killed the engine at step {second.attempts[-1][-1][0]}")
    engine.start()
    second.follow()
    if len(second.attempts) != 2:
        raise SystemExit("the run was complete before its engine was killed; use more --steps, or --pause")
    return first.attempts + second.attempts


def draw(reference, attempts, file: Path) -> None:
    """Draws both curves as a PNG file."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 4.5))
    axes.plot(*zip(*reference), color="lightgray", lw=6, label="without interruption")
    for number, attempt in enumerate(attempts):
        axes.plot(*zip(*attempt), lw=1.2, color=f"C{number}", label=f"steps {attempt[0][0]} to {attempt[-1][0]}")
    for attempt, what in zip(attempts, ("client", "engine")):
        axes.axvline(attempt[-1][0], ls="--", lw=1, color="black")
        axes.annotate(f" {what} killed", (attempt[-1][0], axes.get_ylim()[1]), va="top", fontsize=9)
    axes.set(xlabel="step", ylabel="loss", title="A run that was killed twice, on teletensor")
    axes.grid(alpha=0.3)
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120, bbox_inches="tight")
    print(f"wrote {os.path.relpath(file)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="A training run whose client and engine are killed. Takes about two minutes."
    )
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=20, help="number of steps between checkpoints")
    parser.add_argument("--width", type=int, default=128, help="width of the GPT, which has two layers")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait after each step of a very short run")
    parser.add_argument("--data", type=Path, help="a text; by default tinyshakespeare, downloaded once")
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the picture")
    parser.add_argument("--name", help=argparse.SUPPRESS)  # of the checkpoint, in a client
    parser.add_argument("--address", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.data = find_text(args.data)
    if args.name:
        run_client(args)
        return

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with tempfile.TemporaryDirectory() as folder, Progress(*columns) as progress:
        engine = Engine(Path(folder))
        engine.start()
        try:
            bar = progress.add_task("without interruption", total=args.steps)
            whole = Client(engine, "whole", args, progress, bar)
            whole.follow()
            attempts = interrupted_run(engine, args, progress)
        finally:
            engine.kill()

    reference = dict(whole.attempts[0])
    table = Table("attempt", "steps", "computed again", "losses equal to the reference", "ended by")
    ends, done, equal = ("SIGKILL of the client", "SIGKILL of the engine", "the last step"), 0, True
    for number, (attempt, end) in enumerate(zip(attempts, ends), 1):
        same = sum(reference[step] == loss for step, loss in attempt)
        equal = equal and same == len(attempt)
        repeated = max(done - attempt[0][0] + 1, 0)
        done = attempt[-1][0]
        table.add_row(str(number), f"{attempt[0][0]} to {done}", str(repeated), f"{same} of {len(attempt)}", end)
    Console().print(table)
    draw(whole.attempts[0], attempts, args.out / "killed_run.png")
    if not equal or done != args.steps:
        raise SystemExit("the curves differ")
    print(f"the curves are equal: the last loss is {reference[args.steps]!r} in both runs")


if __name__ == "__main__":
    main()
