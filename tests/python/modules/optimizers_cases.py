"""Optimizers: states as PyTorch saves them, hooks, names, complex parameters, recorded steps, and functions."""

from ..names.record import error
from .hooks_cases import values

CHOICES = [
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}), ("Adam", {"amsgrad": True}), ("AdamW", {"lr": 0.1}), ("Adagrad", {}),
    ("Adadelta", {}), ("Adamax", {}), ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}), ("RAdam", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}), ("Rprop", {}), ("ASGD", {"t0": 2}),
]  # fmt: skip


def steps(torch, optimizer, params, count):
    """Makes several steps with fixed gradients."""
    for i in range(count):
        for p in params:
            grad = values(torch, *p.shape, 2) * (i + 1)
            p.grad = torch.view_as_complex(grad) if p.is_complex() else grad[..., 0]
        optimizer.step()


def case_states(torch):
    """State dicts after two steps, of real and of complex parameters, and the parameters after they are loaded."""
    results = []
    for name, options in CHOICES:
        make = getattr(torch.optim, name)
        params = [torch.nn.Parameter(values(torch, 3)), torch.nn.Parameter(torch.view_as_complex(values(torch, 2, 2)))]
        optimizer = make(params, **options)
        steps(torch, optimizer, params, 2)
        state = optimizer.state_dict()
        described = {k: {n: [str(v.dtype), list(v.shape)] for n, v in sorted(s.items())} for k, s in state["state"].items()}
        groups = [{k: g[k] for k in sorted(g)} for g in state["param_groups"]]
        fresh = make(params)
        fresh.load_state_dict(state)
        steps(torch, fresh, params, 2)
        results.append([described, groups, *(torch.view_as_real(p) if p.is_complex() else p for p in params), repr(fresh)])
    return results


def case_recorded(torch):
    """Gradients through a differentiable step."""
    results = []
    for name, options in CHOICES:
        start = values(torch, 4).requires_grad_()
        p = start.clone()
        optimizer = getattr(torch.optim, name)([p], differentiable=True, **options)
        p.grad = (start * 2).sin()
        optimizer.step()
        p.cos().sum().backward()
        results.append([name, p, start.grad])
    return results


def case_hooks(torch):
    """The order of hooks, and the effect of those that return something."""
    from importlib import import_module

    module, seen = import_module(f"{torch.__name__}.optim.optimizer"), []
    p = torch.nn.Parameter(values(torch, 2))
    optimizer = torch.optim.SGD([("p", p)], lr=0.1)

    def note(name):
        return lambda *args, **kwargs: seen.append([name, len(args), [type(a).__name__ for a in args[1:]]])

    handles = [module.register_optimizer_step_pre_hook(note("all pre")), module.register_optimizer_step_post_hook(note("all post"))]
    optimizer.register_step_pre_hook(note("pre"))
    optimizer.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: torch.ones(())), kwargs))
    optimizer.register_step_post_hook(note("post"))
    for what in ("state_dict", "load_state_dict"):
        for when in ("pre", "post"):
            register = getattr(optimizer, f"register_{what}_{when}_hook")
            register(note(f"{what} {when}"))
            register(note(f"{what} {when} first"), prepend=True)
    optimizer.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    steps(torch, optimizer, [p], 1)
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    for handle in handles:
        handle.remove()
    wrong = torch.optim.SGD([p])
    wrong.register_step_pre_hook(lambda o, args, kwargs: 1)
    return [seen, sorted(state), optimizer.param_groups[0]["param_names"], error(wrong.step)[:12], optimizer.step()]


def case_errors(torch):
    """Invalid parameters and options."""
    optim, (a, b) = torch.optim, (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    rate = torch.tensor(0.1)
    tensors = (torch.tensor(0.9), torch.tensor(0.99))
    found = [
        error(optim.SGD, a), error(optim.SGD, []), error(optim.SGD, [("a", a), b]), error(optim.SGD, [1]), error(optim.SGD, [a * 2]),
        error(optim.SGD, [{"params": [a]}, {"params": [("b", b)]}]), error(optim.SGD, [{"params": a}, {"params": a}]),
        error(optim.SGD, [{"params": {a, b}}]), error(optim.Adam, [a], lr=rate, foreach=True),
        error(optim.Adam, [a], betas=(0.9, tensors[1])), error(optim.Adam, [a], betas=(1.0, 0.5)),
        error(optim.Adam, [a], betas=tensors, foreach=True), error(optim.Adam, [a], fused=True, foreach=True),
        error(optim.Adam, [a], fused=True, differentiable=True), error(optim.ASGD, [a], lambd=-0.5),
        error(optim.ASGD, [a], alpha=-0.5), *(error(getattr(optim, name), [a], lr=torch.ones(2)) for name, _ in CHOICES),
        error(optim.LBFGS, [a], lr=torch.ones(2)),
    ]  # fmt: skip
    for kind in (optim.Adam, optim.RAdam, optim.Adadelta):
        optimizer = kind([a], capturable=True)
        a.grad = torch.ones(1)
        found.append(error(optimizer.step).partition(":")[0])
    z = torch.nn.Parameter(torch.ones(1, dtype=torch.complex64))
    z.grad = torch.ones(1, dtype=torch.complex64)
    return [*found, error(optim.Adam([z], fused=True).step).partition("[")[0]]


def case_lbfgs(torch):
    """Iterates of both line searches, of maximization, and of complex parameters."""
    results = []
    for options in ({}, {"line_search_fn": "strong_wolfe"}, {"maximize": True, "lr": 0.5}, {"max_iter": 3, "history_size": 2}):
        x = torch.nn.Parameter(torch.tensor([-1.2, 1.0], dtype=torch.float64))
        optimizer = torch.optim.LBFGS([x], **options)

        def closure():
            optimizer.zero_grad()
            loss = (1 - x[0]) ** 2 + 5 * (x[1] - x[0] ** 2) ** 2
            loss = -loss if options.get("maximize") else loss
            loss.backward()
            return loss

        for _ in range(2):
            first = optimizer.step(closure)
        results.append([x, first, sorted(optimizer.state_dict()["state"][0])])
    return results


def case_functions(torch):
    """torch.optim.functional, and a step on swapped parameters and states."""
    step, number = torch.optim.functional, lambda v: [torch.tensor(float(v))]
    results = []
    calls = [
        (step.adam, 3, {"amsgrad": True, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8, "maximize": False}),
        (step.adamw, 3, {"amsgrad": False, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "weight_decay": 0.1, "eps": 1e-8, "maximize": True}),
        (step.rmsprop, 3, {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "weight_decay": 0.1, "momentum": 0.5, "centered": True}),
        (step.rprop, 2, {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2}),
    ]  # fmt: skip
    for function, states, options in calls:
        lists = [[values(torch, 3) + i] for i in range(2)] + [[values(torch, 3).abs() + i] for i in range(states)]
        steps_done = number(3)
        function(*lists, steps_done, **options)
        results.append([lists, steps_done])
    p = torch.nn.Parameter(values(torch, 2))
    optimizer = torch.optim.Adam([p], lr=0.1)
    steps(torch, optimizer, [p], 1)
    other, state = torch.nn.Parameter(torch.ones(2)), optimizer.state_dict()
    other.grad = torch.ones(2)
    before = p.detach().clone()
    with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"p": other}, state):
        optimizer.step()
    results.append([other, bool((p == before).all()), optimizer.param_groups[0]["params"][0] is p, state["state"][0]["exp_avg"]])
    return results


def case_own(torch):
    """An optimizer that a program defines: its state is saved and loaded as it is."""
    class Own(torch.optim.Optimizer):
        def __init__(self, params, start):
            self.start = start
            super().__init__(params, {"lr": 0.1})

        @torch.no_grad()
        def step(self):
            for p in self.param_groups[0]["params"]:
                state = self.state[p]
                state.setdefault("step", self.start)
                state["step"] = state["step"] + 1
                p.add_(p.grad, alpha=-0.1)

    results = []
    for start in (0, torch.tensor(0.0)):
        p = torch.nn.Parameter(values(torch, 2).double())
        first = Own([p], start)
        p.grad = torch.ones_like(p)
        first.step()
        second = Own([p], start)
        second.load_state_dict(first.state_dict())
        second.step()
        found = second.state_dict()["state"][0]["step"]
        results.append([type(found).__name__, found, p, repr(second)])
    return results
