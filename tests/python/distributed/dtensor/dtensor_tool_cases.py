"""Functions of local tensors, rules of a program's operators, counts of collectives. Each function runs on all ranks."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tempfile
from pathlib import Path

import teletensor as torch
import teletensor.distributed as dist
import teletensor.nn as nn
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from teletensor.distributed.tensor.debug import CommDebugMode, visualize_sharding
from teletensor.distributed.tensor.experimental import local_map, register_sharding
from teletensor.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from teletensor.utils._python_dispatch import TorchDispatchMode


def _error(call) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any error is a result
        return f"{type(error).__name__}: {error}"
    return "no error"


def mapped(rank: int, size: int) -> dict:
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    w, x = torch.randn(4, 2 * size), torch.randn(2 * size, 3)
    product = local_map(lambda mesh, a, b: a @ b, out_placements=[Partial()], in_placements=(None, [Shard(1)], [Shard(0)]))
    w_divided, x_divided = distribute_tensor(w, mesh, [Shard(1)]), distribute_tensor(x, mesh, [Shard(0)])
    w_divided.requires_grad = True
    y = product(mesh, w_divided, x_divided)
    y.full_tensor().square().sum().backward()
    expected = w.clone().requires_grad_()
    (expected @ x).square().sum().backward()
    twice = local_map(lambda a: (a * 2, a.sum().item()), out_placements=([Shard(0)], None))
    moved = local_map(lambda a: a, [Replicate()], ([Replicate()],), redistribute_inputs=True)(x_divided)
    return {
        "difference": (y.full_tensor() - w @ x).abs().max().item(),
        "gradient": (w_divided.grad.full_tensor() - expected.grad).abs().max().item(),
        "pair": twice(x_divided)[0].placements == (Shard(0),) and isinstance(twice(x_divided)[1], float),
        "moved": moved.to_local().shape[0] == 2 * size,
        "plain": type(twice(x)[0]) is torch.Tensor,
        "errors": [
            _error(lambda: product(mesh, x_divided, x_divided)),
            _error(lambda: local_map(lambda a: a, [Shard(0)], ([Shard(0)], None))(x_divided)),
            _error(lambda: local_map(lambda a: 1, [Shard(0)])(x_divided)),
        ],
    }


class _Log(TorchDispatchMode):
    """Notes the operators and the types of the tensors that it receives."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, list[str]]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((str(func), [kind.__name__ for kind in types]))
        return NotImplemented if types and func is torch.ops.aten.neg.default else func(*args, **(kwargs or {}))


def dispatched(rank: int, size: int) -> dict:
    """Operators on DTensors reach modes, and other handlers may call the handler of DTensor."""
    mesh = init_device_mesh("cpu", (size,))
    values = torch.arange(6.0 * size).reshape(2 * size, 3)
    x, index = distribute_tensor(values, mesh, [Shard(0)]), distribute_tensor(torch.tensor([2, 0]), mesh)
    with _Log() as log:
        total = (x + x)[1:, None].mT.sum()
        largest, picked, negative = torch.max(x, 1), x[:, index], -x
        x.detach().clone().mul_(2)
    by_handler = DTensor.__torch_dispatch__(torch.ops.aten.mul.Tensor, (DTensor,), (x, x), {})
    register_sharding(torch.ops.aten.tanh.default)(lambda x: [([Replicate()], [Replicate()])])
    try:
        placement = torch.tanh(x).placements
    finally:
        torch.ops.aten.tanh.default.sharded = None
    return {
        "calls": log.calls,
        "values": [
            total.item() == (values * 2)[1:].sum().item(), torch.equal(largest.values.full_tensor(), values.max(1).values),
            torch.equal(picked.full_tensor(), values[:, [2, 0]]), torch.equal(by_handler.full_tensor(), values * values),
            torch.equal(negative.full_tensor(), -values),
        ],
        "placements": [str(placement), str(torch.tanh(x).placements)],
    }  # fmt: skip


def registered(rank: int, size: int) -> dict:
    """A custom operator that can be computed by rows, or as a sum over columns."""
    mesh = init_device_mesh("cpu", (size,))
    op = f"tools{rank}::row_sums"
    row_sums = torch.library.custom_op(op, lambda x, scale: (x * scale).sum(1), mutates_args=(), schema="(Tensor x, float scale) -> Tensor")
    row_sums.register_autograd(lambda ctx, g: (g.unsqueeze(1).expand(ctx.shape) * ctx.scale, None), setup_context=_keep)
    overload = getattr(torch.ops, f"tools{rank}").row_sums.default
    register_sharding(overload)(
        lambda x, scale: [([Replicate()], [Replicate(), None]), ([Shard(0)], [Shard(0), None]), ([Partial()], [Shard(1), None])]
    )
    x = torch.arange(2.0 * size * size).reshape(2 * size, size)
    found = {}
    for placement in (Shard(0), Shard(1), Replicate()):
        divided = distribute_tensor(x, mesh, [placement])
        divided.requires_grad = True
        y = overload(divided, 3.0)
        (y.full_tensor() * torch.arange(2.0 * size)).sum().backward()
        expected = (torch.arange(2.0 * size) * 3).unsqueeze(1).expand(2 * size, size)
        found[str(placement)] = [
            str(y.placements[0]), (y.full_tensor() - x.sum(1) * 3).abs().max().item(),
            (divided.grad.full_tensor() - expected).abs().max().item(),
        ]  # fmt: skip
    return found


def _keep(ctx, inputs, output) -> None:
    ctx.shape, ctx.scale = inputs[0].shape, inputs[1]


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8, bias=False), nn.Linear(8, 4, bias=False)

    def forward(self, x):
        return self.down(self.up(x).relu())


def counted(rank: int, size: int) -> dict:
    """Counts by operator, and the text that the first rank prints."""
    mesh = init_device_mesh("cpu", (size,))
    module = parallelize_module(FeedForward(), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    x = torch.randn(3, 4, requires_grad=True)
    divided, partial = distribute_tensor(torch.ones(4, 4), mesh, [Shard(0)]), DTensor.from_local(torch.ones(4, 4), mesh, [Partial()])
    blocks = {
        "parallel": lambda: module(x).sum().backward(),
        "gather": lambda: divided.redistribute(placements=[Replicate()]),
        "scatter": lambda: [partial.redistribute(placements=[Shard(0)]), distribute_tensor(torch.ones(4), mesh, None, src_data_rank=None)],
        "exchange": lambda: divided.redistribute(placements=[Shard(1)]),
        "plain": lambda: [dist.all_reduce(torch.ones(3)), dist.broadcast(torch.ones(3), 0), dist.barrier()],
        "many": lambda: [partial.redistribute(placements=[Shard(0)]) for _ in range(100)],
        "none": lambda: torch.ones(3) + 1,
    }
    found = {}
    for name, block in blocks.items():
        with CommDebugMode() as mode:
            block()
        found[name] = {str(k): v for k, v in mode.get_comm_counts().items()}
        assert mode.get_total_counts() == sum(found[name].values())
        if name == "parallel":
            found["placements"] = {k: str(v) for k, v in mode.get_sharding_info().items()}
            assert mode.get_comm_counts()[torch.ops.c10d_functional.all_reduce] == found[name]["c10d_functional.all_reduce"]
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        visualize_sharding(distribute_tensor(torch.ones(4, 3), mesh, [Shard(0)]), use_rich=True)
    found["text"] = text.getvalue()
    return found


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.norm = FeedForward(), nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(self.body(x))


def traced(rank: int, size: int) -> dict:
    """Tables and files of a block by module, and the operations that they have at each noise level."""
    mesh = init_device_mesh("cpu", (size,))
    module = parallelize_module(Twice(), mesh, {"body.up": ColwiseParallel(), "body.down": RowwiseParallel()})
    x = torch.randn(3, 4, requires_grad=True)
    with CommDebugMode() as mode:
        module(x).sum().backward()
    folder = Path(tempfile.mkdtemp())
    text, tree = folder / "log.txt", folder / "log.json"
    mode.log_comm_debug_tracing_table_to_file(text, noise_level=0)
    found = {"table": text.read_text(), "coloured": mode.generate_comm_debug_tracing_table(), "levels": []}
    mode.log_comm_debug_tracing_table_to_file(text, noise_level=2)
    found["operations"] = text.read_text()
    for level in range(4):
        mode.generate_json_dump(tree, noise_level=level)
        found["levels"].append(tree.read_text().count('"is_bw"'))
    found["json"] = json.loads(tree.read_text())
    shutil.rmtree(folder)
    x, partial = torch.ones(4, 4, requires_grad=True), DTensor.from_local(torch.ones(4, 4), mesh, [Partial()])
    with CommDebugMode() as mode:
        distribute_tensor(torch.ones(4), mesh, [Shard(0)], src_data_rank=None)  # moves no bytes
        for _ in range(2):
            partial.redistribute(placements=[Shard(0)])
        gathered = DTensor.from_local(x, mesh, [Shard(0)]).redistribute(placements=[Replicate()])
        gathered.to_local(grad_placements=[Partial()]).sum().backward()
    del mode.comm_module_counts["Global"]["forward"][torch.ops.c10d_functional.all_gather_into_tensor]
    found["sums"] = {
        name: {str(k).rpartition(".")[2]: n for k, n in counts.items()} for name, counts in mode.comm_module_counts["Global"].items()
    }
    return found


def factored(rank: int, size: int) -> list[str]:
    """Functions of linear algebra that are computed from others; returns those whose results differ."""
    mesh, linalg = init_device_mesh("cpu", (size,)), torch.linalg
    matrix = torch.arange(16.0).reshape(4, 4) @ torch.arange(16.0).reshape(4, 4).T + 50 * torch.eye(4)
    functions = {
        "inv": linalg.inv, "matrix_power": lambda a: linalg.matrix_power(a, -2), "lu": lambda a: linalg.lu(a)[0] @ linalg.lu(a)[2],
        "cholesky_inverse": lambda a: torch.cholesky_inverse(linalg.cholesky(a)), "qr": lambda a: linalg.qr(a)[1].abs(),
        "tensorinv": lambda a: linalg.tensorinv(a.reshape(2, 2, 2, 2)), "vander": lambda a: torch.vander(a[0] / 100),
        "householder": lambda a: linalg.householder_product(a / 100, a[0] / 100),
    }  # fmt: skip
    different = []
    for name, function in functions.items():
        for placement in (Replicate(), Shard(0), Shard(1)):
            result = function(distribute_tensor(matrix, mesh, [placement])).full_tensor()
            if (result - function(matrix)).abs().max() > 1e-3:
                different.append(f"{name} {placement}")
    divided = distribute_tensor(matrix, mesh, [Shard(0)])
    from teletensor.distributed.tensor.experimental import implicit_replication

    with implicit_replication():
        total = divided + torch.ones(4)
    if not total.full_tensor().equal(matrix + 1) or "mixed torch.Tensor and DTensor" not in _error(lambda: divided + torch.ones(4)):
        different.append("implicit_replication")
    return different
