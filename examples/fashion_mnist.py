"""Trains a small convolutional network on Fashion-MNIST (Xiao et al. 2017), on an engine in another process.

    make demo                                    # starts a private engine
    TELETENSOR_ADDRESS=gpu-box:7070 make demo    # uses a running engine

Shows loss and speed during training, then the test accuracy and the lines where the script waited for
the engine. The data set's page lists a test accuracy of 0.916 for two convolutions with max pooling. Writes the loss curve and
some predictions as pictures to examples/out/.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import os
import time
from collections import deque
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from teletensor.utils.data import DataLoader, TensorDataset

OUT = Path(__file__).resolve().parent / "out"
PUBLISHED = 0.916  # two convolutions with max pooling; table in github.com/zalandoresearch/fashion-mnist
CLASSES = ["T-shirt", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot"]


def read_idx(path: Path) -> np.ndarray:
    """Reads one file of the data set: big-endian sizes, then bytes."""
    with gzip.open(path) as file:
        raw = file.read()
    ndim = raw[3]
    sizes = np.frombuffer(raw, ">i4", ndim, 4)
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * ndim).reshape(sizes)


def load(folder: Path, split: str, device) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns normalised images (N, 1, 28, 28) and labels (N,), both on the device."""
    images = torch.from_numpy(read_idx(folder / f"{split}-images-idx3-ubyte.gz")).to(device)
    labels = torch.from_numpy(read_idx(folder / f"{split}-labels-idx1-ubyte.gz")).to(device)
    return ((images.float() / 255 - 0.2860) / 0.3530).unsqueeze(1), labels.long()


class Net(nn.Module):
    """Two convolutions, two linear layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.norm2 = nn.BatchNorm2d(64)
        self.fc1 = nn.Linear(64 * 6 * 6, 128)
        self.drop = nn.Dropout(0.3)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(self.drop(x))


def train(model: Net, images, labels, args) -> list[tuple[int, float]]:
    """Trains for args.epochs or args.steps; returns (step, loss) every 20 steps."""
    steps = args.steps or args.epochs * (len(images) // args.batch)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=steps)
    history, losses, step, started = [], deque(), 0, time.perf_counter()
    issued = torch.connection().counters()["instructions"]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # The images are in the engine, which makes each batch from the indices that the loader sends.
    loader = DataLoader(TensorDataset(images, labels), args.batch, shuffle=True, drop_last=True)
    with Progress(*columns) as progress:
        task = progress.add_task("training", total=steps)
        while step < steps:
            for x, y in itertools.islice(loader, steps - step):
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
                step += 1
                if step % 20 == 0 or step == steps:
                    losses.append((step, loss.item_async()))
                # Nothing waits before the last step: a loss is shown when it has arrived.
                while losses and (step == steps or losses[0][1].done()):
                    computed, value = losses.popleft()
                    history.append((computed, value.wait()))
                    seconds = time.perf_counter() - started
                    ops = torch.connection().counters()["instructions"] - issued
                    text = f"loss {history[-1][1]:.3f}  {computed * args.batch / seconds:6.0f} images/s  {ops / seconds:6.0f} ops/s"
                    progress.update(task, completed=computed, description=text)
    return history


@torch.no_grad()
def predict(model: Net, images) -> torch.Tensor:
    """Returns the class of each image."""
    model.eval()
    return torch.cat([model(chunk).argmax(1) for chunk in images.split(1000)])


def draw(history, images, labels, predictions, out: Path) -> None:
    """Draws the loss curve and two rows of predictions as PNG files."""
    try:
        import matplotlib
    except ImportError:
        print("no pictures: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(7, 4))
    axes.plot(*zip(*history))
    axes.set(xlabel="step", ylabel="loss", yscale="log", title="Fashion-MNIST on teletensor")
    axes.grid(alpha=0.3)
    figure.savefig(out / "loss.png", dpi=120, bbox_inches="tight")
    figure, grid = plt.subplots(2, 8, figsize=(12, 3.6))
    for cell, image, label, guess in zip(grid.flat, images[:16, 0].cpu().numpy(), labels.tolist(), predictions.tolist()):
        cell.imshow(image, cmap="gray")
        cell.set_title(CLASSES[guess], color="green" if guess == label else "red", fontsize=9)
        cell.axis("off")
    figure.savefig(out / "predictions.png", dpi=120, bbox_inches="tight")
    print(f"wrote {os.path.relpath(out)}/loss.png and {os.path.relpath(out)}/predictions.png")


def main() -> None:
    parser = argparse.ArgumentParser(description="Fashion-MNIST on a teletensor engine. With five minutes: no options are needed.")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=0, help="number of steps to train instead of epochs; tests on 1000 images")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--device", default="cpu", help="device to compute on: cpu or cuda")
    parser.add_argument(
        "--data", type=Path, default="/usr/share/datasets/fashion-mnist", help="folder of Debian's dataset-fashion-mnist"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the pictures")
    args = parser.parse_args()

    torch.manual_seed(0)
    engine = torch.connection().engine()
    print(f"engine {engine['version']} with {', '.join(d['name'] for d in engine['devices'])}")
    images, labels = load(args.data, "train", args.device)
    model = Net().to(args.device)
    started = time.perf_counter()
    history = train(model, images, labels, args)
    length = f"{args.steps} steps" if args.steps else f"{args.epochs} epochs"
    print(f"trained {length} in {time.perf_counter() - started:.0f} s")
    test_images, test_labels = load(args.data, "t10k", args.device)
    if args.steps:
        test_images, test_labels = test_images[:1000], test_labels[:1000]
    predictions = predict(model, test_images)
    accuracy = (predictions == test_labels).float().mean().item()
    print(f"test accuracy {accuracy:.4f} (published: {PUBLISHED})")
    draw(history, test_images[:16], test_labels[:16], predictions[:16], args.out)
    print(torch.sync_report())


if __name__ == "__main__":
    main()
