"""Pipelines beside the same training on one engine. Each function runs on all ranks."""

from __future__ import annotations

import itertools
import time

import numpy as np

import teletensor as torch
import teletensor.distributed as dist
from teletensor import nn
from teletensor._connection import connection
from teletensor.distributed import pipelining
from teletensor.distributed.device_mesh import init_device_mesh
from teletensor.distributed.fsdp import fully_shard
from teletensor.distributed.pipelining import PipelineStage, SplitPoint, pipeline
from teletensor.distributed.pipelining.microbatch import TensorChunkSpec
from teletensor.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class

BATCH, WIDTH, CLASSES = 24, 10, 3
STEPS = 3


def layers(count: int, seed: int = 1) -> list[nn.Module]:
    """The stages of a model, of different widths."""
    torch.manual_seed(seed)
    widths = [WIDTH, *(12 + i for i in range(count - 1)), CLASSES]
    return [
        nn.Sequential(nn.Linear(a, b), nn.Tanh(), nn.Linear(b, b)) for a, b in zip(widths, widths[1:], strict=False)
    ]


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = np.random.default_rng(step)
    return (torch.tensor(generator.standard_normal((BATCH, WIDTH), dtype=np.float32)),
            torch.tensor(generator.integers(0, CLASSES, BATCH)))  # fmt: skip


def optimizer(parameters) -> torch.optim.Optimizer:
    return torch.optim.SGD(parameters, lr=0.5)


def alone(stages: int) -> tuple[list[nn.Module], list[float], torch.Tensor]:
    """The modules after training on one engine, the losses, and the outputs of the last step."""
    modules = layers(stages)
    model = nn.Sequential(*modules)
    steps, losses, output = optimizer(model.parameters()), [], None
    for step in range(STEPS):
        x, y = batch(step)
        steps.zero_grad()
        output = model(x)
        loss = nn.functional.cross_entropy(output, y)
        loss.backward()
        steps.step()
        losses.append(loss.item())
    return modules, losses, output


def difference(a: nn.Module, b: nn.Module) -> float:
    """The largest difference of two modules' parameters."""
    return max((p - q).abs().max().item() for p, q in zip(a.parameters(), b.parameters(), strict=True))


def train(schedule, stages: list[PipelineStage]) -> tuple[list[float], torch.Tensor | None]:
    """Trains the stages; returns the mean loss of each step and the output of the last one, on the last stage's rank."""
    steps, means, output = optimizer([p for s in stages for p in s.submod.parameters()]), [], None
    has_first, has_last = (any(getattr(s, name) for s in stages) for name in ("is_first", "is_last"))
    for step in range(STEPS):
        x, y = batch(step)
        steps.zero_grad()
        losses: list = []
        output = schedule.step(*([x] if has_first else []), target=y if has_last else None, losses=losses)
        steps.step()
        means += [torch.stack(losses).mean().item()] if losses else []
    return means, output


def compare(stages: list[PipelineStage], means: list[float], output) -> list[float]:
    """The differences of parameters, losses and outputs to those of one engine."""
    modules, losses, expected = alone(stages[0].num_stages)
    differences = [difference(s.submod, modules[s.stage_index]) for s in stages]
    if any(s.is_last for s in stages):
        differences += [abs(a - b) for a, b in zip(means, losses, strict=True)]
        differences.append((output - expected).abs().max().item())
    else:
        assert output is None and not means
    return differences


def trains(rank: int, size: int, schedule: str, microbatches: int, given_shapes: bool = False) -> list[float]:
    """A schedule with one stage per rank."""
    module = layers(size)[rank]
    shapes = {}
    if given_shapes:
        widths = [WIDTH, *(12 + i for i in range(size - 1)), CLASSES]
        shapes = {"input_args": torch.empty(BATCH // microbatches, widths[rank], device="meta"),
                  "output_args": torch.empty(BATCH // microbatches, widths[rank + 1], device="meta")}  # fmt: skip
    stage = PipelineStage(module, rank, size, torch.device("cpu"), **shapes)
    runner = get_schedule_class(schedule)(stage, microbatches, nn.functional.cross_entropy)
    return compare([stage], *train(runner, [stage]))


def trains_several(rank: int, size: int, schedule: str, microbatches: int, local: int) -> list[float]:
    """A schedule with several stages per rank."""
    modules = layers(size * local)
    stages = [PipelineStage(modules[i], i, size * local, "cpu") for i in range(rank, size * local, size)]
    runner = get_schedule_class(schedule)(stages, microbatches, nn.functional.cross_entropy)
    return compare(stages, *train(runner, stages))


def trains_v(rank: int, size: int, schedule: str, microbatches: int) -> list[float]:
    """A schedule with two stages per rank in the shape of a V."""
    modules = layers(2 * size)
    stages = [PipelineStage(modules[i], i, 2 * size, "cpu") for i in (rank, 2 * size - 1 - rank)]
    runner = get_schedule_class(schedule)(stages, microbatches, nn.functional.cross_entropy)
    return compare(stages, *train(runner, stages))


def own_schedule(rank: int, size: int) -> list[float]:
    """Stages 0 and 3 on rank 0, and 1 and 2 on rank 1: rank 1 passes tensors from one of its stages to the other."""
    from teletensor.distributed.pipelining import _order

    class VShaped(PipelineScheduleMulti):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.pipeline_order = {
                rank: [_order.Action(stage, kind, i)
                       for kind in (_order.FORWARD, _order.BACKWARD)
                       for i in range(self._n_microbatches)
                       for stage in (local if kind is _order.FORWARD else local[::-1])]
                for rank, local in ((0, (0,)), (1, (1, 2)))
            }  # fmt: skip
            inputs, outputs = (
                self.pipeline_order[0][: self._n_microbatches],
                self.pipeline_order[0][self._n_microbatches :],
            )
            tail = [_order.Action(3, kind, i) for i in range(self._n_microbatches)
                    for kind in (_order.FORWARD, _order.BACKWARD)]  # fmt: skip
            self.pipeline_order[0] = inputs + tail + outputs

    modules = layers(4)
    stages = [PipelineStage(modules[i], i, 4, "cpu") for i in ((0, 3), (1, 2))[rank]]
    return compare(stages, *train(VShaped(stages, 3, nn.functional.cross_entropy), stages))


def gradients_are_sums(rank: int, size: int) -> float:
    """scale_grads=False with a loss that is a sum; gradients of two steps accumulate."""
    modules = layers(size)
    stage = PipelineStage(modules[rank], rank, size, "cpu")
    loss_fn = nn.CrossEntropyLoss(reduction="sum")
    schedule = pipelining.Schedule1F1B(stage, 4, loss_fn, scale_grads=False)
    model = nn.Sequential(*layers(size))
    for step in range(2):
        x, y = batch(step)
        schedule.step(*([x] if rank == 0 else []), target=y)
        loss_fn(model(x), y).backward()
    pairs = zip(stage.submod.parameters(), model[rank].parameters(), strict=True)
    return max((p.grad - q.grad).abs().max().item() for p, q in pairs)


class Branching(nn.Module):
    """A stage with two outputs, of which one has no gradient, and a keyword argument."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, positions=None, *, scale=None):
        y = self.linear(x) * (1 if scale is None else scale)
        return y, (torch.arange(x.shape[-1]) if positions is None else positions + 1)


class Joining(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, positions):
        return {"scores": (self.linear(x) * positions)[:, :CLASSES], "total": x.transpose(0, 1)}


def several_values(rank: int, size: int) -> list:
    """Several outputs, integers among them, keyword arguments, other dimensions, and merging of a dict."""

    def modules() -> list[nn.Module]:
        torch.manual_seed(3)
        return [*(Branching() for _ in range(size - 1)), Joining()]

    def loss_fn(output, target):
        return nn.functional.cross_entropy(output["scores"], target)

    x, y = batch(0)
    scale = torch.linspace(1, 2, BATCH)[:, None]
    stage = PipelineStage(modules()[rank], rank, size, "cpu")
    is_last = rank == size - 1
    schedule = pipelining.ScheduleGPipe(
        stage, 4, loss_fn, output_merge_spec={"scores": TensorChunkSpec(0), "total": TensorChunkSpec(1)}
    )
    losses: list = []
    output = schedule.step(
        *([x] if rank == 0 else []), target=y, losses=losses, **({} if is_last else {"scale": scale})
    )
    copies = modules()
    values = (x,)
    for module in copies[:-1]:
        values = module(*values, scale=scale)
    expected = copies[-1](*values)
    loss_fn(expected, y).backward()
    pairs = zip(stage.submod.parameters(), copies[rank].parameters(), strict=True)
    result = [max((p.grad - q.grad).abs().max().item() for p, q in pairs)]
    if is_last:
        result += [(output[key] - expected[key]).abs().max().item() for key in ("scores", "total")]
    return [result, len(losses)]


def evaluates(rank: int, size: int) -> list:
    """eval() gives the outputs and losses and no gradients; step() afterwards, and without a loss."""
    stage = PipelineStage(layers(size)[rank], rank, size, "cpu")
    schedule = pipelining.ScheduleGPipe(stage, 3, nn.functional.cross_entropy)
    x, y = batch(0)
    inputs = [x] if rank == 0 else []
    losses: list = []
    output = schedule.eval(*inputs, target=y, losses=losses)
    has_gradients = any(p.grad is not None for p in stage.submod.parameters())
    with torch.no_grad():
        forward_only = pipelining.ScheduleGPipe(stage, 2).step(*inputs) if size == 1 else None
        again = schedule.eval(*inputs, target=y)
    expected = nn.Sequential(*layers(size))(x)
    schedule.step(*inputs, target=y)
    differences = []
    if rank == size - 1:
        differences = [(t - expected).abs().max().item() for t in (output, again, forward_only) if t is not None]
    return [has_gradients, len(losses), differences, all(p.grad is not None for p in stage.submod.parameters())]


def refused_options(rank: int, size: int) -> list[str]:
    """The exceptions for arguments of schedules and stages that are not supported."""
    stage = PipelineStage(layers(size)[rank], rank, size, "cpu")
    schedule = pipelining.ScheduleGPipe(stage, 2, nn.functional.cross_entropy)
    calls = [lambda name=name: schedule.step(**{name: []}) for name in ("loss_kwargs", "arg_mbs", "kwarg_mbs", "target_mbs")]
    calls += [lambda name=name: schedule.eval(**{name: []}) for name in ("arg_mbs", "kwarg_mbs", "target_mbs")]
    calls.append(lambda: schedule.step(finalize_gradients=False))
    calls += [lambda name=name: PipelineStage(nn.Linear(1, 1), rank, size, "cpu", **{name: ()})
              for name in ("output_grads", "input_grads", "get_mesh")]  # fmt: skip
    options = {"defer_pp_recv": True, "max_active_stages": 2, "unshard_lookahead": "none", "defer_reduce_grad_wait": True,
               "max_outstanding_sends": 1}  # fmt: skip
    for kind in (pipelining.ScheduleInterleaved1F1B, pipelining.ScheduleLoopedBFS):
        calls += [lambda kind=kind, option=option: kind([stage], 2, **dict([option])) for option in options.items()]
    found = []
    for call in calls:
        try:
            call()
            found.append("no error")
        except NotImplementedError as e:
            found.append("" if "is not supported" in str(e) else str(e))
    return found


def frozen(rank: int, size: int) -> list[float]:
    """The first stage has no parameters that require grad; a parameter of the last one is not used."""
    modules, copies = (layers(size) for _ in range(2))
    for m in (modules[0], copies[0]):
        m.requires_grad_(False)
    stage = PipelineStage(modules[rank], rank, size, "cpu")
    x, y = batch(0)
    pipelining.Schedule1F1B(stage, 4, nn.functional.cross_entropy).step(*([x] if rank == 0 else []), target=y)
    nn.functional.cross_entropy(nn.Sequential(*copies)(x), y).backward()
    pairs = [(p.grad, q.grad) for p, q in zip(stage.submod.parameters(), copies[rank].parameters(), strict=True)]
    assert all((p is None) == (q is None) for p, q in pairs)
    return [(p - q).abs().max().item() for p, q in pairs if p is not None] or [0.0]


def divided_with_other_leaves(rank: int, size: int, schedule: str) -> list[float]:
    """Divided backward passes: a loss with a parameter, an input that requires grad, a frozen stage and an unused parameter."""

    def model() -> list[nn.Module]:
        modules = layers(2 * size)
        modules[1].requires_grad_(False)
        for m in modules:
            m.register_parameter("extra", nn.Parameter(torch.ones(2)))
        return modules

    def loss_of(scale: torch.Tensor):
        return lambda output, target: nn.functional.cross_entropy(output * scale, target)

    modules, copies, (x, y) = model(), model(), batch(0)
    scales = [torch.tensor(1.5, requires_grad=True) for _ in range(2)]
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    own = (rank, 2 * size - 1 - rank) if schedule in ("ZBVZeroBubble", "DualPipeV") else (rank, rank + size)
    stages = [PipelineStage(modules[i], i, 2 * size, "cpu") for i in own]
    runner = get_schedule_class(schedule)(stages, 4, loss_of(scales[0]), scale_grads=False)
    has_first, has_last = (any(getattr(s, name) for s in stages) for name in ("is_first", "is_last"))
    for _ in range(2):
        runner.step(*([inputs[0]] if has_first else []), target=y if has_last else None)
        for part, target in zip(inputs[1].chunk(4), y.chunk(4), strict=True):
            loss_of(scales[1])(nn.Sequential(*copies)(part), target).backward()
    pairs = [pair for i in own for pair in zip(modules[i].parameters(), copies[i].parameters(), strict=True)]
    pairs += [tuple(inputs)] * has_first + [tuple(scales)] * has_last
    assert all((p.grad is None) == (q.grad is None) for p, q in pairs)
    return [(p.grad - q.grad).abs().max().item() for p, q in pairs if p.grad is not None]


def split_sequential(rank: int, size: int) -> float:
    """pipeline() on a Sequential; the parts are the stages."""

    def model() -> nn.Sequential:
        torch.manual_seed(2)
        return nn.Sequential(nn.Linear(WIDTH, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, CLASSES))

    x, y = batch(0)
    pipe = pipeline(model(), (x[:4],), split_spec={"1": SplitPoint.END})
    assert pipe.num_stages == 2 and torch.equal(pipe(x), model()(x))
    stage = pipe.build_stage(rank, "cpu")
    pipelining.ScheduleGPipe(stage, 6, nn.functional.cross_entropy).step(*([x] if rank == 0 else []), target=y)
    copy = model()
    nn.functional.cross_entropy(copy(x), y).backward()
    mine = copy[:2] if rank == 0 else copy[2:]
    pairs = zip(stage.submod.parameters(), mine.parameters(), strict=True)
    return max((p.grad - q.grad).abs().max().item() for p, q in pairs)


def does_not_wait(rank: int, size: int) -> list[int]:
    """The number of reads by this process in the first step, and in the second one."""
    stage = PipelineStage(layers(size)[rank], rank, size, "cpu")
    schedule = pipelining.Schedule1F1B(stage, 4, nn.functional.cross_entropy)
    x, y = batch(0)

    def reads() -> int:
        return sum(row[2] for row in connection().wait_report() if row[1] == "read")

    counts = [reads()]
    for _ in range(2):
        schedule.step(*([x] if rank == 0 else []), target=y)
        counts.append(reads())
    return [b - a for a, b in itertools.pairwise(counts)]


def with_sharded_stages(rank: int, size: int) -> float:
    """Two stages of two ranks each, which divide the batch and the parameters of their stage."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    position, stages = mesh.get_coordinate(), layers(2)
    module = fully_shard(stages[position[1]], mesh=mesh["dp"])
    stage = PipelineStage(module, position[1], 2, "cpu", group=mesh.get_group("pp"))
    schedule = pipelining.Schedule1F1B(stage, 3, nn.functional.cross_entropy)
    steps = optimizer(module.parameters())
    for step in range(STEPS):
        x, y = (t[position[0] * BATCH // 2 : (position[0] + 1) * BATCH // 2] for t in batch(step))
        steps.zero_grad()
        schedule.step(*([x] if stage.is_first else []), target=y)
        steps.step()
    expected = alone(2)[0][position[1]]
    pairs = zip(module.parameters(), expected.parameters(), strict=True)
    return max((p.full_tensor() - q).abs().max().item() for p, q in pairs)


def on_devices(rank: int, size: int) -> float:
    """Stages on a GPU."""
    modules, copies = layers(size), layers(size)
    stage = PipelineStage(modules[rank].to("cuda"), rank, size, torch.device("cuda"))
    x, y = batch(0)
    schedule = pipelining.Schedule1F1B(stage, 4, nn.functional.cross_entropy)
    schedule.step(*([x.to("cuda")] if rank == 0 else []), target=y.to("cuda"))
    nn.functional.cross_entropy(nn.Sequential(*copies)(x), y).backward()
    pairs = zip(stage.submod.parameters(), copies[rank].parameters(), strict=True)
    assert all(p.grad.device.type == "cuda" for p in stage.submod.parameters())
    return max((p.grad.cpu() - q.grad).abs().max().item() for p, q in pairs)


def raises(rank: int, size: int) -> list:
    """A stage that raises an exception in the second microbatch."""

    class Failing(nn.Linear):
        calls = 0

        def forward(self, x):
            self.calls += 1
            if rank == 1 and self.calls == 2:
                raise KeyError("the second microbatch")
            return super().forward(x)

    group = dist.new_group(list(range(size)))
    stage = PipelineStage(Failing(WIDTH, WIDTH), rank, size, "cpu", group=group)
    schedule = pipelining.Schedule1F1B(stage, 4, nn.functional.mse_loss)
    x, losses = torch.ones(BATCH, WIDTH), []
    begin = time.monotonic()
    try:
        schedule.step(*([x] if rank == 0 else []), target=x, losses=losses)
        if rank == 0:
            stage.submod.weight.grad.sum().item()
        else:
            losses[-1].item()
        message = "no error"
    except (KeyError, RuntimeError) as error:
        message = f"{type(error).__name__}: {error}"
    dist.all_reduce(total := torch.ones(1))  # the default group is not affected
    return [message, time.monotonic() - begin, total.item()]


def changed_shape(rank: int, size: int) -> list[str]:
    """Another batch size than in the first step is an error in the stage that notices it first."""
    stage = PipelineStage(layers(size)[rank], rank, size, "cpu")
    schedule = pipelining.ScheduleGPipe(stage, 2)
    x, _ = batch(0)
    schedule.step(*([x] if rank == 0 else []))
    dist.barrier()  # the error below ends the group; by now every stage has the shapes of the first step
    if rank != 0:
        return []
    try:
        schedule.step(x[:8])
    except RuntimeError as error:
        return [type(error).__name__, str(error)]
    return ["no error"]


def rejected(rank: int, size: int) -> list[str]:
    """Calls that are errors on each rank alone."""
    module, loss = layers(size)[rank], nn.functional.cross_entropy
    stage = PipelineStage(module, rank, size, "cpu")
    x, y = batch(0)
    calls = (
        lambda: PipelineStage(module, size, size, "cpu"),
        lambda: PipelineStage(module, 0, 1, "cpu"),
        lambda: PipelineStage(module, rank, size, "cpu", dw_builder=print),
        lambda: PipelineStage(module, rank, size, "cpu", output_args=x),
        lambda: PipelineStage(nn.parallel.DistributedDataParallel(nn.Linear(2, 2)), rank, size, "cpu"),
        lambda: pipelining.Schedule1F1B(stage, size - 1, loss),
        lambda: pipelining.ScheduleGPipe(stage, 0, loss),
        lambda: pipelining.ScheduleInterleaved1F1B([stage], 2 * size + 1, loss),
        lambda: pipelining.ScheduleZBVZeroBubble([stage], 4, loss),
        lambda: pipelining.ScheduleDualPipeV([stage], 4, loss),
        lambda: pipelining.ScheduleInterleavedZeroBubble([], 4, loss),
        lambda: get_schedule_class("2F2B"),
        lambda: pipelining.ScheduleGPipe(PipelineStage(module, 1 - rank, size, "cpu"), 2, loss).step(),
        lambda: pipelining.ScheduleGPipe(PipelineStage(module, 0, 2 * size, "cpu"), 2, loss),
        lambda: pipelining.ScheduleGPipe(stage, 2, loss).step(
            x, target=None if rank else y, losses=() if not rank else None
        ),
        lambda: pipelining.ScheduleGPipe(stage, BATCH + 1, loss).step(x) if rank == 0 else int("x"),
        lambda: pipeline(module, (x,), split_spec={"5": SplitPoint.END}),
        lambda: pipeline(nn.Linear(2, 2), (x,), split_spec={"weight": SplitPoint.END}),
        lambda: pipeline(module, (x,), split_spec={"0": SplitPoint.BEGINNING}),
    )
    kinds = []
    for call in calls:
        try:
            call()
            kinds.append("no error")
        except (AssertionError, RuntimeError, ValueError, TypeError) as error:
            kinds.append(type(error).__name__)
    with torch.no_grad():
        try:
            pipelining.ScheduleGPipe(stage, 2, loss).step(target=y)
        except RuntimeError as error:
            kinds.append(type(error).__name__)
    return kinds
