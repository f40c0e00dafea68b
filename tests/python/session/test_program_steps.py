"""Whole training steps as Programs: forward, backward and the optimizer's step are one instruction."""

from __future__ import annotations

import copy

import pytest

import teletensor as torch
import teletensor.nn as nn
import teletensor.nn.functional as F
from tests.python.session.test_programs import same

trace = torch.compiler.trace

OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1),
    "AMSGrad": lambda p: torch.optim.Adam(p, lr=0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.01, maximize=True),
    "groups": lambda p: torch.optim.AdamW([{"params": p[:1], "lr": 0.1}, {"params": p[1:], "weight_decay": 0}]),
}


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setenv("TELETENSOR_EXACT_PROGRAMS", "1")


def make(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))


def step_of(model, optimizer, clip=None):
    def step(x, target):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), target)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        return loss.detach()

    return step


def batches(count: int):
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(16, 8, generator=generator), torch.randint(0, 4, (16,), generator=generator)) for _ in range(count)
    ]


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_has_the_bits_of_single_calls(name, clip):
    models = make(), make()
    optimizers = [OPTIMIZERS[name](list(m.parameters())) for m in models]
    schedules = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in optimizers]
    eager = step_of(models[1], optimizers[1], clip)
    program = trace(step_of(models[0], optimizers[0], clip), *batches(1)[0])
    assert "which has failed" not in program.explain(*batches(1)[0])  # forward, backward and step as one list of calls
    for k, (x, target) in enumerate(batches(6)):
        same(program(x, target), eager(x, target))
        for schedule in schedules:
            schedule.step()
        if k == 3:
            for optimizer in optimizers:
                optimizer.param_groups[0]["weight_decay"] = 0.2
    for p, q in zip(models[0].parameters(), models[1].parameters()):
        same(p.detach(), q.detach())
        same(p.grad, q.grad)
    ours, theirs = (o.state_dict()["state"] for o in optimizers)
    assert ours.keys() == theirs.keys()
    for key in ours:
        for field, value in theirs[key].items():
            assert torch.equal(ours[key][field], value), field


def test_single_calls_continue_a_program_and_the_reverse():
    model, other = make(), make()
    ours, theirs = torch.optim.AdamW(model.parameters()), torch.optim.AdamW(other.parameters())
    one, two = step_of(model, ours), step_of(other, theirs)
    program = None
    for k, (x, target) in enumerate(batches(7)):
        if k == 2:
            program = trace(one, x, target)
        same((program if program and k != 4 else one)(x, target), two(x, target))
    for p, q in zip(model.parameters(), other.parameters()):
        same(p.detach(), q.detach())


def test_one_instruction_and_its_passes():
    model = make()
    optimizer = torch.optim.Adam(model.parameters())
    (x, target), *_ = batches(1)
    program = trace(step_of(model, optimizer), x, target)
    text = program.explain(x, target).split("# after")[-1]
    assert "= backward(" not in text and text.count("adam_step_with") == 1
    program(x, target).item()
    before = torch.connection().counters()["instructions"]
    for _ in range(10):
        program(x, target)
    assert (
        torch.connection().counters()["instructions"] - before <= 2 * 10
    )  # a run, and the drop of the gradients before it


def test_a_replaced_state_is_noticed():
    model = make()
    optimizer = torch.optim.AdamW(model.parameters())
    (x, target), *_ = batches(1)
    program = trace(step_of(model, optimizer), x, target)
    program(x, target)
    saved = copy.deepcopy(optimizer.state_dict())
    optimizer.load_state_dict(saved)
    with pytest.raises(RuntimeError, match="groups, parameters or state"):
        program(x, target)
    program = trace(step_of(model, optimizer), x, target)
    program(x, target)
    optimizer.param_groups[0]["amsgrad"] = True
    with pytest.raises(RuntimeError, match="amsgrad"):
        program(x, target)


def test_what_changes_the_step_is_noticed():
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (x, target), *_ = batches(1)
    program = trace(step_of(model, optimizer), x, target)
    optimizer.load_state_dict(optimizer.state_dict())  # other groups
    with pytest.raises(RuntimeError, match="groups, parameters or state"):
        program(x, target)
    program = trace(step_of(model, optimizer), x, target)
    optimizer.param_groups[0]["momentum"] = 0.9
    with pytest.raises(RuntimeError, match="'momentum': '0'"):
        program(x, target)
    optimizer.param_groups[0]["momentum"] = 0
    removed = optimizer.param_groups[0]["params"].pop()
    with pytest.raises(RuntimeError, match="groups, parameters or state"):
        program(x, target)
    optimizer.param_groups[0]["params"].append(removed)
    hook = optimizer.register_step_post_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="hooks of step"):
        program(x, target)
    hook.remove()
    optimizer.param_groups[0]["lr"] = 0.5
    with pytest.raises(NotImplementedError, match="while another one is traced"):
        trace(lambda x: program(x, target), x)
    other = copy.deepcopy(model)
    step_of(other, torch.optim.SGD(other.parameters(), lr=0.5))(x, target)
    program(x, target)
    for p, q in zip(model.parameters(), other.parameters()):
        same(p.detach(), q.detach())


def test_a_default_device_does_not_move_the_numbers():
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (x, target), *_ = batches(1)
    with torch.device("meta"):
        program = trace(step_of(model, optimizer), x, target)
    optimizer.param_groups[0]["lr"] = 0.2
    before = model[0].weight.detach().clone()
    with torch.device("meta"):
        program(x, target)
    assert torch.allclose(model[0].weight.detach(), before - 0.2 * model[0].weight.grad)


def test_steps_of_some_parameters_are_counted_apart():
    models = make(), make()
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.1) for m in models]
    (x, target), *_ = batches(1)
    program = trace(step_of(models[0], optimizers[0]), x, target)
    program(x, target)
    step_of(models[1], optimizers[1])(x, target)
    for model, optimizer in zip(models, optimizers):
        for _ in range(2):
            optimizer.zero_grad()
            model[3](torch.ones(1, 32)).sum().backward()  # the last layer's
            optimizer.step()
        model(x).sum().backward()
        optimizer.step()
    for p, q in zip(models[0].parameters(), models[1].parameters()):
        same(p.detach(), q.detach())
    assert [s["step"].item() for s in optimizers[0].state_dict()["state"].values()] == [2, 2, 2, 2, 4, 4]
    with pytest.raises(RuntimeError, match="a step of other parameters"):
        program(x, target)


class OwnStep(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


class OwnUpdate(torch.optim.Adam):
    def _update(self, group, params, grads):
        return super()._update(group, params, grads)


@pytest.mark.parametrize(
    "optimizer,match",
    [
        (lambda p: torch.optim.Adafactor(p), "steps of LBFGS"),
        (lambda p: torch.optim.LBFGS(p), "steps of LBFGS"),
        (lambda p: OwnStep(p, lr=0.1), "steps of LBFGS"),
        (lambda p: OwnUpdate(p), "steps of LBFGS"),
        (lambda p: torch.optim.Adam(p, differentiable=True), "differentiable"),
        (lambda p: torch.optim.SGD(p, momentum=0.9, dampening=0.1), "first step"),
    ],
)
def test_what_cannot_be_traced(optimizer, match):
    model = make()
    (x, target), *_ = batches(1)
    with pytest.raises(NotImplementedError, match=match):
        trace(step_of(model, optimizer(model.parameters())), x, target)


COUNTED_IN_CLIENT = {
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, centered=True, momentum=0.5, weight_decay=0.1),
    "plain RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.05, lr_decay=0.1),
    "Adadelta": lambda p: torch.optim.Adadelta(p, lr=1.0, weight_decay=0.01, maximize=True),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.01),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.01),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.05, t0=2, lambd=0.01),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "groups": lambda p: torch.optim.NAdam([{"params": p[:1], "lr": 0.1}, {"params": p[1:], "weight_decay": 0.1}]),
}


@pytest.mark.parametrize("name", COUNTED_IN_CLIENT)
def test_optimizers_that_count_in_the_client(name):
    models = make(), make()
    optimizers = [COUNTED_IN_CLIENT[name](list(m.parameters())) for m in models]
    schedules = [torch.optim.lr_scheduler.StepLR(o, 4, 0.5) for o in optimizers]
    ours, theirs = (step_of(*both) for both in zip(models, optimizers))
    program = trace(ours, *batches(1)[0])
    for k, (x, target) in enumerate(batches(9)):
        loss = ours(x, target) if k == 5 else program(x, target)  # single calls may alternate with runs
        same(loss, theirs(x, target))
        for schedule in schedules:
            schedule.step()
    for p, q in zip(models[0].parameters(), models[1].parameters()):
        same(p.detach(), q.detach())
    states = [o.state_dict()["state"] for o in optimizers]
    for key, values in states[1].items():
        assert states[0][key]["step"] == values["step"] == 9
        for field, value in values.items():
            same(states[0][key][field], value)


@pytest.mark.parametrize("name", ["RMSprop", "Adagrad", "RAdam", "ASGD"])
@pytest.mark.parametrize("dtype,sizes", [(torch.float32, ()), (torch.bfloat16, (5, 7))])
def test_steps_of_numbers_and_of_16_bits_have_the_bits_of_single_calls(name, dtype, sizes):
    torch.manual_seed(0)
    start, x = torch.randn(sizes).to(dtype), torch.randn(sizes).to(dtype)
    parameters = [start.clone().requires_grad_() for _ in range(2)]

    def step_of(p):
        optimizer = COUNTED_IN_CLIENT[name]([p])

        def step(x):
            optimizer.zero_grad()
            (p * x).tanh().float().sum().backward()
            optimizer.step()

        return step

    ours, theirs = map(step_of, parameters)
    program = trace(ours, x)
    for _ in range(8):
        program(x)
        theirs(x)
    assert torch.equal(*parameters) and not torch.equal(parameters[0], start)


def test_a_step_that_only_some_parameters_have_taken_is_noticed():
    model = make()
    optimizer = torch.optim.RMSprop(model.parameters())
    (x, target), *_ = batches(1)
    program = trace(step_of(model, optimizer), x, target)
    program(x, target)
    optimizer.zero_grad()
    model[3](torch.ones(1, 32)).sum().backward()
    optimizer.step()
    program(x, target)  # the coefficients of RMSprop do not depend on the step
    optimizer = torch.optim.NAdam(model.parameters())
    program = trace(step_of(model, optimizer), x, target)
    program(x, target)
    optimizer.zero_grad()
    model[3](torch.ones(1, 32)).sum().backward()
    optimizer.step()
    with pytest.raises(RuntimeError, match="as many steps as each other"):
        program(x, target)


def test_hooks_of_tensor_operators_belong_to_the_program():
    models, calls = (make(), make()), []
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in models]

    def halve(optimizer, args, kwargs):
        calls.append(optimizer)
        with torch.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.grad.mul_(0.5)

    def limit(optimizer, args, kwargs):
        with torch.no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    p.clamp_(-0.25, 0.25)

    for optimizer in optimizers:
        optimizer.register_step_pre_hook(halve)
        optimizer.register_step_post_hook(limit)
    for model in models:
        model[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
        model[3].register_forward_hook(lambda module, args, result: result - 1)
    program, eager = trace(step_of(models[0], optimizers[0]), *batches(1)[0]), step_of(models[1], optimizers[1])
    for x, target in batches(3):
        same(program(x, target), eager(x, target))
    for p, q in zip(models[0].parameters(), models[1].parameters()):
        same(p.detach(), q.detach())
    assert calls.count(optimizers[0]) == 1  # during the trace


@pytest.mark.parametrize("make_optimizer", [
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), lambda p: torch.optim.AdamW(p, lr=0.01),
])  # fmt: skip
@pytest.mark.parametrize("unscales", [False, True])
def test_a_grad_scaler_decides_in_each_run(make_optimizer, unscales):
    def scaled_step(model, optimizer, scaler):
        def step(x, target):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            scaler.scale(loss).backward()
            if unscales:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        return step

    models = make(), make()
    optimizers = [make_optimizer(m.parameters()) for m in models]
    scalers = [torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2) for _ in models]
    ours, theirs = (scaled_step(*each) for each in zip(models, optimizers, scalers))
    data = batches(6)
    data[3] = (data[3][0] * float("inf"), data[3][1])  # this step does not count, and the scale decreases
    program = trace(ours, *data[0])
    scales = []
    for x, target in data:
        same(program(x, target), theirs(x, target))
        scales.append([s.get_scale() for s in scalers])
    assert [a for a, _ in scales] == [b for _, b in scales] and scales[3][0] == scales[2][0] / 2
    for p, q in zip(models[0].parameters(), models[1].parameters()):
        same(p.detach(), q.detach())
    scalers[0].set_growth_interval(5)
    with pytest.raises(RuntimeError, match="growth interval"):
        program(*data[0])


def test_a_grad_scaler_of_other_optimizers_is_refused():
    model = make()
    optimizer, scaler = torch.optim.RMSprop(model.parameters()), torch.amp.GradScaler("cpu")

    def step(x, target):
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(x), target)).backward()
        scaler.step(optimizer)
        scaler.update()

    with pytest.raises(NotImplementedError, match="decides in each run"):
        trace(step, *batches(1)[0])


def test_closures_are_refused():
    model = make()
    (x, target), *_ = batches(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closing(x):
        return optimizer.step(lambda: model(x).sum())

    with pytest.raises(NotImplementedError, match="closure"):
        trace(closing, x)


def test_options_of_the_wrong_kind_are_errors():
    p, g = torch.zeros(3), torch.ones(3)
    for options in (torch.zeros(3, dtype=torch.float64), torch.zeros(4), torch.zeros(2, 2, dtype=torch.float64)):
        with pytest.raises(RuntimeError, match="expected options of 4 float64 numbers"):
            torch._C.ops.sgd_step_with([p], [g], [], options, nesterov=False, maximize=False)
    torch._C.ops.sgd_step_with(
        [p], [g], [], torch.tensor([0.5, 0, 0, 0], dtype=torch.float64), nesterov=False, maximize=False
    )
    assert p.tolist() == [-0.5] * 3


def test_training_of_a_network_with_norms_that_write():
    """The running statistics are written in the middle of the step, before its backward pass."""

    def network():
        torch.manual_seed(2)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(288, 4)
        )

    models = network(), network()
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in models]
    x, target = torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    program, eager = trace(step_of(models[0], optimizers[0]), x, target), step_of(models[1], optimizers[1])
    assert "= backward(" not in program.explain(x, target).split("# after")[-1]
    for _ in range(3):
        same(program(x, target), eager(x, target))
    for p, q in zip(models[0].state_dict().values(), models[1].state_dict().values()):
        same(p, q)
