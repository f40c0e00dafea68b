"""The trainer: trains a small network from a fixed seed while faults are caused, and reports events as lines of JSON.

Usage: ``python -m tests.chaos.trainer STEPS [--save NAME] [--every N] [--pause SECONDS]``, with the engine's address in
TELETENSOR_ADDRESS. With ``--save`` it writes a checkpoint every N steps; if the engine is lost, it connects to the next
engine at the address and continues from the checkpoint. Without, the loss of its session ends it.

Its last event has a digest of the weights and `count`, which the engine increments once per step: it is the number of
steps if each instruction was executed exactly once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import time

import numpy as np

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor import checkpoint

RECONNECT = 60  # seconds that the trainer waits for the next engine


def report(event: str, **fields) -> None:
    """Prints an event."""
    print(json.dumps({"event": event, **fields}), flush=True)


class Run:
    """A training run in the current session: new, or continued from its checkpoint."""

    def __init__(self, args):
        self.args, self.step = args, 0
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self.model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        numbers = np.random.default_rng(1)
        self.images = numbers.standard_normal((512, 64), np.float32)
        self.labels = numbers.integers(0, 10, 512)
        self.count = torch.zeros((), dtype=torch.int64)
        if args.save:
            self.load()
        report("begun", step=self.step)

    def load(self) -> None:
        """Continues from the checkpoint, if there is one."""
        try:
            state = checkpoint.load(self.args.save)
        except FileNotFoundError:
            return
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.count.copy_(state["count"])
        torch.set_rng_state(state["random"])
        self.step = state["step"]

    def save(self) -> None:
        """Writes a checkpoint; reports a failure and continues, unless the engine is lost."""
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "count": self.count,
                 "random": torch.get_rng_state(), "step": self.step}
        try:
            checkpoint.save(state, self.args.save)
            report("saved", step=self.step)
        except ConnectionError:
            raise
        except (OSError, RuntimeError) as error:
            report("not saved", step=self.step, reason=str(error).splitlines()[0])

    def train(self) -> None:
        """Trains to the last step."""
        while self.step < self.args.steps:
            batch = slice(self.step * 64 % 512, self.step * 64 % 512 + 64)
            images, labels = torch.tensor(self.images[batch]), torch.tensor(self.labels[batch])  # uploads 17 kB
            loss = F.cross_entropy(self.model(images), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.count.add_(1)
            loss.item()
            self.step += 1
            report("step", step=self.step)
            if self.args.save and self.step % self.args.every == 0:
                self.save()
            if self.step in self.args.stop_at:
                os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(self.args.pause)
        weights = b"".join(p.detach().numpy().tobytes() for p in self.model.parameters())
        report("done", digest=hashlib.sha256(weights).hexdigest(), count=self.count.item())


def main() -> None:
    """Trains, through the loss of engines if it has checkpoints."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("steps", type=int)
    parser.add_argument("--save", default="", help="name of the checkpoint; by default there is none")
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--pause", type=float, default=0.002, help="seconds between steps")
    parser.add_argument("--stop-at", type=int, nargs="*", default=[], help="steps after which the process stops itself "
                        "(SIGSTOP) until somebody continues it")
    args = parser.parse_args()
    lost = 0.0
    while True:
        try:
            torch.connect()
            lost = 0.0
            return Run(args).train()
        except ConnectionError as error:
            if not args.save or (lost and time.monotonic() - lost > RECONNECT):
                raise
            if not lost:
                lost = time.monotonic()
                report("lost", reason=str(error).splitlines()[0])
            time.sleep(0.05)


if __name__ == "__main__":
    main()
