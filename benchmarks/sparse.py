"""`python -m benchmarks.sparse`: operators on components of sparse tensors, beside PyTorch's sparse tensors (--peers).

Rows are a number of rows and columns of a square matrix and a density; columns of the dense operand as in the name.
"mm", "mv": CSR times dense. "dense gradient": the transpose of CSR times dense. "value gradient": products of rows at the
entries of CSR (sampled_addmm in PyTorch). "matmul": CSR times CSR. "coalesce": rows of 256 numbers for 8192 tokens of a
vocabulary of 50000. "adam": a step of SparseAdam on their rows. "to_dense": CSR to dense. These rows are operators of the
engine beside PyTorch's functions. Rows with "Python" are the same Python functions in both: "csr @ x" and "coo @ x" without
gradients, "embedding" with sparse=True forwards and backwards, "training step" with SparseAdam besides. Milliseconds until a number of
the result was read, the least of the calls, because other processes may use the machine. PyTorch runs in a process of its
own, before and after ours: the ratio is that of the lesser of its two times to ours.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks import peers

SIZE, TOKENS, VOCABULARY, WIDTH = 4096, 8192, 50000, 256
DENSITIES = (0.01, 0.05, 0.1)
COLUMNS = (16, 64, 256)


def components(size: int, density: float, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR components of a random matrix with the same number of entries in each row."""
    rng = np.random.default_rng(0)
    each = max(1, int(size * density))
    col = np.concatenate([np.sort(rng.choice(size, each, replace=False)) for _ in range(size)])
    return np.arange(size + 1) * each, col, rng.standard_normal(len(col)).astype(dtype)


def engine_products(torch, crow, col, values, dense) -> dict[str, Callable]:
    """Products with operators of the engine."""
    ops = importlib.import_module("teletensor._C").ops
    size = dense.shape[0]
    return {
        "mm": lambda: ops.sparse_csr_mm(crow, col, values, dense),
        "dense gradient": lambda: ops.sparse_csr_mm_transposed(crow, col, values, dense, size),
        "value gradient": lambda: ops.sparse_csr_sddmm(crow, col, dense, dense),
    }


def torch_products(torch, crow, col, values, dense) -> dict[str, Callable]:
    """Products with PyTorch's CSR tensors."""
    size = dense.shape[0]
    a = torch.sparse_csr_tensor(crow, col, values, (size, size))
    transposed = torch.sparse_csc_tensor(crow, col, values, (size, size))
    pattern = torch.sparse_csr_tensor(crow, col, torch.zeros_like(values), (size, size))
    return {
        "mm": lambda: torch.sparse.mm(a, dense),
        "dense gradient": lambda: torch.mm(transposed, dense),
        "value gradient": lambda: torch.sparse.sampled_addmm(pattern, dense, dense.T, beta=0.0).values(),
    }


def engine_others(torch, crow, col, values, rows, grad, vector) -> dict[str, Callable]:
    """The other rows with operators of the engine."""
    ops = importlib.import_module("teletensor._C").ops
    size = len(crow) - 1
    param, average, square = (torch.zeros(VOCABULARY, WIDTH) for _ in range(3))
    columns, sums, _ = ops.sparse_coalesce(rows[None], grad, [VOCABULARY])

    def adam():
        ops.sparse_adam_step(param, average, square, columns[0], sums, 1e-3, 0.9, 0.999, 1e-8, 1, False)
        return param

    def to_dense():
        return ops.sparse_scatter(torch.stack([ops.sparse_expand(crow, len(col)), col]), values, [size, size])

    return {
        "mv": lambda: ops.sparse_csr_mm(crow, col, values, vector[:, None]),
        "matmul": lambda: ops.sparse_csr_matmul(crow, col, values, crow, col, values, size)[2],
        "coalesce": lambda: ops.sparse_coalesce(rows[None], grad, [VOCABULARY])[1],
        "adam": adam,
        "to_dense": to_dense,
    }


def torch_others(torch, crow, col, values, rows, grad, vector) -> dict[str, Callable]:
    """The other rows with PyTorch's sparse tensors."""
    size = len(crow) - 1
    a = torch.sparse_csr_tensor(crow, col, values, (size, size))
    param = torch.zeros(VOCABULARY, WIDTH, requires_grad=True)
    param.grad = torch.sparse_coo_tensor(rows[None], grad, (VOCABULARY, WIDTH)).coalesce()
    optimizer = torch.optim.SparseAdam([param])

    def adam():
        optimizer.step()
        return param

    return {
        "mv": lambda: a @ vector,
        "matmul": lambda: torch.sparse.mm(a, a).values(),
        "coalesce": lambda: torch.sparse_coo_tensor(rows[None], grad, (VOCABULARY, WIDTH)).coalesce().values(),
        "adam": adam,
        "to_dense": lambda: a.to_dense(),
    }


def python_calls(torch, crow, col, values, rows) -> dict[str, Callable]:
    """Functions of torch.sparse and torch.nn, which both packages have."""
    size = len(crow) - 1
    csr, found = torch.sparse_csr_tensor(crow, col, values, (size, size)), {}
    coo = csr.to_sparse()
    for k in COLUMNS:
        x = torch.randn(size, k)
        found[f"Python: csr @ x, {k} columns"] = functools.partial(csr.__matmul__, x)
        found[f"Python: coo @ x, {k} columns"] = functools.partial(coo.__matmul__, x)
    few = torch.eye(8).to_sparse_csr()
    found["Python: csr @ x, 8 entries"] = functools.partial(few.__matmul__, torch.randn(8, 8))
    layer = torch.nn.Embedding(VOCABULARY, WIDTH, sparse=True)
    optimizer = torch.optim.SparseAdam(layer.parameters())

    def embedding(index):
        layer.weight.grad = None
        with torch.enable_grad():
            layer(index).sum().backward()
        return layer.weight.grad._values()

    def training_step():
        embedding(rows)
        optimizer.step()
        return layer.weight.detach()

    found["Python: embedding, 256 tokens"] = functools.partial(embedding, rows[:256])
    found[f"Python: embedding, {TOKENS} tokens"] = functools.partial(embedding, rows)
    found[f"Python: training step, {TOKENS} tokens"] = training_step
    return found


def least(call: Callable[[], object], seconds: float = 0.6) -> float:
    """Milliseconds of call(), until an element of its result was read."""
    times, until = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < until:
        start = time.perf_counter()
        call().reshape(-1)[0].item()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def measure(package: str) -> dict[str, float]:
    """Times of this process by row."""
    torch = importlib.import_module(package)
    torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
    ours = package != "torch"
    found = {}
    with torch.no_grad():
        for density in DENSITIES:
            for dtype in ("float32", "float64"):
                crow, col, values = (torch.tensor(a) for a in components(SIZE, density, dtype))
                for k in COLUMNS if dtype == "float32" else COLUMNS[1:2]:
                    dense = torch.randn(SIZE, k, dtype=values.dtype)
                    calls = (engine_products if ours else torch_products)(torch, crow, col, values, dense)
                    for name, call in calls.items():
                        found[f"{name}, {k} columns, {density:.0%}, {dtype}"] = least(call)
        crow, col, values = (torch.tensor(a) for a in components(SIZE, 0.01))
        rows = torch.tensor(np.random.default_rng(0).integers(0, VOCABULARY, TOKENS))
        grad = torch.randn(TOKENS, WIDTH)
        calls = (engine_others if ours else torch_others)(torch, crow, col, values, rows, grad, torch.randn(SIZE))
        for name, call in {**calls, **python_calls(torch, crow, col, values, rows)}.items():
            found[name] = least(call)
    return found


def main() -> None:
    """Runs the benchmark."""
    options = peers.parse_options(__doc__)
    if options.package:
        import json

        print(json.dumps(measure(options.package)))
        sys.exit()
    runs = [peers.measured_with_pytorch("benchmarks.sparse", options.threads)] if options.peers else []
    ours = measure("teletensor")
    runs += [peers.measured_with_pytorch("benchmarks.sparse", options.threads)] if options.peers else []
    table = Table(title=f"Milliseconds of {SIZE} x {SIZE} matrices, {options.threads} thread(s)")
    for column in ("", "teletensor", *(("PyTorch", "ratio") if runs else ())):
        table.add_column(column)
    for name, mine in ours.items():
        theirs = [min(run[name] for run in runs)] if runs else []
        table.add_row(name, f"{mine:.3f}", *(f"{t:.3f}" for t in theirs), *(f"{t / mine:.2f}" for t in theirs))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
