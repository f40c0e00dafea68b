"""`python -m benchmarks.transforms`: function transforms, beside a loop over the entries and beside PyTorch (--peers).

Per-sample gradients, models with their own parameters, Jacobians and Hessians; and forward mode beside two backward passes,
for which "loop" is the derivative of a backward pass, and beside the function itself. Medians in milliseconds until a number of the result
was read. PyTorch runs in a process of its own, with as many threads.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

from benchmarks import peers


def cases(torch) -> dict[str, tuple[Callable, Callable]]:
    """By case: the transform, and the same as a loop; both return a tensor."""
    nn, func = torch.nn, torch.func
    torch.manual_seed(0)
    mlp = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 10))
    cnn = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(),
                        nn.Linear(16 * 11 * 11, 10))  # fmt: skip
    images, rows, labels = torch.randn(32, 1, 28, 28), torch.randn(64, 64), torch.randint(0, 10, (64,))

    def per_sample(model, x):
        params = {k: v.detach() for k, v in model.named_parameters()}
        target = labels[: len(x)]

        def loss(p, one, label):
            return nn.functional.cross_entropy(func.functional_call(model, p, (one[None],)), label[None])

        mapped = torch.vmap(func.grad(loss), (None, 0, 0))
        first = next(iter(params))

        def looped():
            return torch.stack([func.grad(loss)(params, x[i], target[i])[first] for i in range(len(x))])

        return lambda: mapped(params, x, target)[first], looped

    models = [nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.LayerNorm(64), nn.Linear(64, 10)) for _ in range(16)]
    stacked = func.stack_module_state(models)

    def ensemble():
        return torch.vmap(lambda p, b: func.functional_call(models[0], (p, b), (rows,)))(*stacked)

    weight = torch.randn(16, 16) / 4
    point = torch.randn(16)

    def energy(x):
        return torch.tanh(weight @ x).square().sum() + x.prod()

    def hessian_rows():
        return torch.stack([func.grad(lambda z, i=i: func.grad(energy)(z)[i])(point) for i in range(16)])

    deep = nn.Sequential(*(layer for n in (256, 512, 512) for layer in (nn.Linear(n, 512), nn.GELU())), nn.Linear(512, 10))
    network = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(),
                            nn.Linear(32 * 13 * 13, 10))  # fmt: skip

    def forward_mode(model, x):
        """The derivative of a network along a direction of its input, and the same by two backward passes."""
        model.requires_grad_(False)
        direction = torch.randn_like(x)

        def twice():
            leaf = x.detach().requires_grad_()
            output = model(leaf)
            vector = torch.zeros_like(output).requires_grad_()
            product = torch.autograd.grad(output, leaf, vector, create_graph=True)[0]
            return torch.autograd.grad(product, vector, direction)[0]

        return lambda: func.jvp(model, (x,), (direction,))[1], twice

    def function_itself(model, x):
        model.requires_grad_(False)
        return lambda: model(x), lambda: model(x)

    def layer(x):
        return torch.tanh(weight @ x)

    def columns():
        return torch.stack([func.jvp(layer, (point,), (unit,))[1] for unit in torch.eye(16)], 1)

    batch, pictures = torch.randn(64, 256), torch.randn(16, 3, 32, 32)
    return {
        "MLP of 4 layers": function_itself(deep, batch),
        "jvp of it": forward_mode(deep, batch),
        "CNN": function_itself(network, pictures),
        "jvp of the CNN": forward_mode(network, pictures),
        "jacfwd, 16 x 16": (lambda: func.jacfwd(layer)(point), columns),
        "per-sample gradients of an MLP, 64": per_sample(mlp, rows),
        "per-sample gradients of a CNN, 32": per_sample(cnn, images),
        "16 models with 64 inputs": (ensemble, lambda: torch.stack([m(rows) for m in models])),
        "Hessian, 16 x 16": (lambda: func.hessian(energy)(point), hessian_rows),
    }


def median(run: Callable, seconds: float = 1.5) -> float:
    """The median time of `run` until a number of its result was read, in milliseconds."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run().flatten()[0].item()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e3


def measure(package: str) -> dict[str, dict[str, float]]:
    """Times of all cases in this process."""
    torch = importlib.import_module(package)
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    rows = {}
    for name, (mapped, looped) in cases(torch).items():
        want, got = looped().detach(), mapped().detach()
        assert (want - got).abs().max().item() <= 1e-4 * want.abs().max().item() + 1e-5, name
        rows[name] = {"transform": median(mapped), "loop": median(looped)}
    return rows


def main() -> None:
    """Runs the benchmark."""
    options, ours, theirs = peers.measured(__doc__, "benchmarks.transforms", measure)
    table = Table(title=f"Milliseconds per call, {options.threads} thread(s)")
    table.add_column("function")
    columns = ["transform", "loop", *(["PyTorch: transform", "PyTorch: loop", "transform / PyTorch's"] if theirs else [])]
    for column in columns:
        table.add_column(column, justify="right")
    for name, row in ours.items():
        cells = [name, f"{row['transform']:.2f}", f"{row['loop']:.2f}"]
        if theirs:
            peer = theirs[name]
            cells += [f"{peer['transform']:.2f}", f"{peer['loop']:.2f}", f"{row['transform'] / peer['transform']:.2f}"]
        table.add_row(*cells)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    main()
