"""torch.optim: Adafactor, Muon, SparseAdam and the averages of swa_utils."""

from .record import error


def values(torch, *shape):
    """Numbers without a pattern, the same in all runs."""
    n = 1
    for size in shape:
        n *= size
    return (torch.arange(n, dtype=torch.float32) * 1.7).sin().reshape(shape) * 2


def trained(torch, make, shapes, steps=4):
    """The parameters after each of several steps, and the optimizer's state."""
    params = [torch.nn.Parameter(values(torch, *shape)) for shape in shapes]
    optimizer, rows = make(params), []
    for i in range(steps):
        optimizer.zero_grad()
        loss = sum(((p * (i + 1)).sin() * (p - 0.3)).sum() for p in params)
        loss.backward()
        optimizer.step()
        rows.append([p.detach().clone() for p in params])
    state = optimizer.state_dict()
    described = {k: {n: v.clone() for n, v in s.items() if n != "step"} for k, s in state["state"].items()}
    steps_done = [int(s["step"]) for s in state["state"].values() if "step" in s]
    restored = make(params)
    restored.load_state_dict(state)
    loss = sum((p * p).sum() for p in params)
    optimizer.zero_grad()
    loss.backward()
    restored.step()
    return [rows, described, state["param_groups"], steps_done, params]


def case_adafactor(torch):
    shapes = [(3, 4), (5,), (2, 3, 2)]
    settings = [{}, {"lr": 0.3, "weight_decay": 0.1}, {"eps": (1e-4, 0.1), "d": 2.0, "maximize": True}, {"beta2_decay": -0.3, "lr": 2.0}]
    return [trained(torch, lambda p, o=o: torch.optim.Adafactor(p, **o), shapes) for o in settings]


def case_muon(torch):
    shapes, rows = [(3, 4), (6, 2)], []
    for options in (
        {"lr": 0.01},
        {"nesterov": False, "weight_decay": 0, "lr": 0.02},
        {"adjust_lr_fn": "match_rms_adamw", "ns_steps": 3},
        {"adjust_lr_fn": "spectral_unclamped", "momentum": 0.5},
    ):
        made = trained(torch, lambda p, o=options: torch.optim.Muon(p, **o), shapes, 3)
        # The updates are computed in bfloat16, in which the order of a sum matters: / 500 makes the permitted error 0.01.
        rows.append([[[p / 500 for p in step] for step in made[0]], made[2]])
    return rows


def case_errors(torch):
    optim, p = torch.optim, [torch.nn.Parameter(torch.ones(2))]
    sparse = optim.SparseAdam(p, lr=0.1)
    p[0].sum().backward()
    return [
        error(sparse.step),
        sparse.state_dict(),
        repr(sparse),
        error(optim.SparseAdam, p, eps=0.0),
        error(optim.SparseAdam, p, lr=0.0),
        error(optim.SparseAdam, p, betas=(0.1, 1.0)),
        error(optim.SparseAdam, [torch.nn.Parameter(torch.ones(1, dtype=torch.complex64))]),
        error(optim.Adafactor, p, lr=-1),
        error(optim.Adafactor, p, beta2_decay=1),
        error(optim.Adafactor, p, d=0.5),
        error(optim.Adafactor, p, eps=(-1, 0)),
        error(optim.Adafactor, p, eps=(None, -1)),
        error(optim.Adafactor, p, weight_decay=-1),
        error(optim.Muon, p),
        error(optim.Muon, p, lr=-1),
        error(optim.Muon, p, adjust_lr_fn="x"),
        error(optim.Muon, p, momentum=-1),
        repr(optim.Adafactor(p)),
    ]


def case_averages(torch):
    swa, rows = torch.optim.swa_utils, []
    for options in (
        {"avg_fn": swa.get_ema_avg_fn(0.8)},
        {"avg_fn": swa.get_swa_avg_fn()},
        {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.8)},
        {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
        {},
    ):
        model = torch.nn.Linear(3, 2)
        averaged = swa.AveragedModel(model, **options)
        for i in range(4):
            with torch.no_grad():
                model.weight.copy_(values(torch, 2, 3) * (i + 1))
                model.bias.copy_(values(torch, 2) + i)
            averaged.update_parameters(model)
        rows.append(list(averaged.parameters()))
    average, current = [torch.tensor([10, 20])], [torch.tensor([20, 40])]
    swa.get_ema_multi_avg_fn(0.5)(average, current, 3)
    return [*rows, average, error(swa.get_ema_avg_fn, 1.5), error(swa.get_ema_multi_avg_fn, -0.1)]
