"""torch.ao.pruning: masks, their schedules, and the names of modules."""

import importlib
import io
import warnings

from .record import error


def pruning(torch):
    return importlib.import_module(f"{torch.__name__}.ao.pruning")


def model(torch):
    """Linear layers with weights without equal absolute values."""
    made = torch.nn.Sequential(torch.nn.Linear(10, 6), torch.nn.ReLU(), torch.nn.Sequential(torch.nn.Linear(6, 5, bias=False)))
    with torch.no_grad():
        for p in made.parameters():
            p.copy_(torch.sin(torch.arange(1.0, p.numel() + 1) * 1.7).reshape(p.shape))
    return made


def masks(made):
    return [made[0].parametrizations.weight[0].mask.float(), made[2][0].parametrizations.weight[0].mask.float()]


def case_norms(torch):
    ao, rows = pruning(torch), []
    for options in (
        {}, {"sparsity_level": 0.25}, {"sparsity_level": 0.0}, {"sparsity_level": 1.0}, {"sparsity_level": 0.99, "norm": 1},
        {"sparse_block_shape": (1, 1)}, {"sparse_block_shape": (2, 2), "norm": 1}, {"sparse_block_shape": (3, 5), "sparsity_level": 0.7},
        {"sparse_block_shape": (1, 2), "zeros_per_block": 1}, {"zeros_per_block": 0},
        {"norm": lambda t: -t.abs(), "sparsity_level": 0.3},
    ):  # fmt: skip
        made, sparsifier = model(torch), ao.WeightNormSparsifier(**options)
        sparsifier.prepare(made, None)
        sparsifier.step()
        rows += [masks(made), made(torch.ones(2, 10)), sorted(made.state_dict())]
    return rows


def case_groups(torch):
    ao, made = pruning(torch), model(torch)
    sparsifier = ao.WeightNormSparsifier(0.5)
    sparsifier.prepare(made, [{"tensor_fqn": "0.weight", "sparsity_level": 0.8, "note": 3}, {"tensor_fqn": "2.0.weight"}])
    rows = [[{k: v for k, v in g.items() if k != "module"} for g in sparsifier.groups], repr(sparsifier)]
    sparsifier.step()
    made(torch.ones(1, 10)).sum().backward()
    rows += [made[0].parametrizations.weight.original.grad, masks(made)]
    sparsifier.enable_mask_update = False
    sparsifier.groups[0]["sparsity_level"] = 0.0
    sparsifier.step()
    rows += [masks(made)]
    sparsifier.squash_mask(params_to_keep=("sparsity_level",), params_to_keep_per_layer={"0": ("note",)})
    return [*rows, made[0].weight, made[0].sparse_params, made[2][0].sparse_params, sorted(made.state_dict())]


def case_states(torch):
    ao, first = pruning(torch), model(torch)
    sparsifier = ao.WeightNormSparsifier(0.5)
    sparsifier.prepare(first, None)
    sparsifier.step()
    state = sparsifier.state_dict()
    rows = [sorted(state), sorted(state["state"]), [sorted(g) for g in state["groups"]], [s["mask"] for s in state["state"].values()]]
    file = io.BytesIO()
    torch.save({"state": dict(state["state"]), "groups": state["groups"]}, file)
    file.seek(0)
    second, other = model(torch), ao.WeightNormSparsifier(0.1)
    other.prepare(second, None)
    other.load_state_dict(torch.load(file))
    return [*rows, masks(second), [g["sparsity_level"] for g in other.groups], second(torch.ones(1, 10))]


def case_diagonals(torch):
    ao, rows = pruning(torch), []
    for nearliness in (0, 1, 3, 5):
        made, sparsifier = model(torch), ao.NearlyDiagonalSparsifier(nearliness)
        sparsifier.prepare(made, [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.0.weight", "nearliness": 1}])
        sparsifier.step()
        rows.append(masks(made))
    for nearliness in (2, 13):
        made, sparsifier = model(torch), ao.NearlyDiagonalSparsifier(nearliness)
        sparsifier.prepare(made, None)
        rows.append(error(sparsifier.step))
    return rows


def case_schedules(torch):
    ao, rows = pruning(torch), []
    for make in (
        lambda s: ao.LambdaSL(s, lambda epoch: 0.5**epoch),
        lambda s: ao.LambdaSL(s, [lambda epoch: 1.0, lambda epoch: epoch / 10]),
        lambda s: ao.CubicSL(s, init_sl=0.1, delta_t=2, total_t=3),
        lambda s: ao.CubicSL(s, init_sl=[0.1, 0.2], init_t=2, delta_t=1, total_t=3, initially_zero=True),
    ):
        sparsifier = ao.WeightNormSparsifier(0.75)
        sparsifier.prepare(model(torch), None)
        schedule = make(sparsifier)
        for _ in range(6):
            rows.append(schedule.get_last_sl())
            sparsifier.step()
            schedule.step()
        rows += [[g["sparsity_level"] for g in sparsifier.groups], sparsifier._step_count, schedule.last_epoch]
        state = schedule.state_dict()
        rows.append(sorted(k for k in state if k != "sl_lambdas"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schedule = ao.LambdaSL(sparsifier, lambda epoch: 1.0)
        schedule.step()
        schedule.get_sl()
    return [*rows, [str(w.message)[:50] for w in caught]]


def case_names(torch):
    ao, made = pruning(torch), model(torch)
    info = ao.get_arg_info_from_tensor_fqn(made, "2.0.weight")
    return [
        ao.module_to_fqn(made, made[2][0]), ao.module_to_fqn(made, made), ao.module_to_fqn(made, torch.nn.ReLU()),
        ao.fqn_to_module(made, "2.0") is made[2][0], ao.fqn_to_module(made, "") is made, ao.fqn_to_module(made, "7.x"),
        info["module"] is made[2][0], {k: v for k, v in info.items() if k != "module"},
    ]  # fmt: skip


def case_conversion(torch):
    ao, made = pruning(torch), model(torch)

    class Converted(torch.nn.Module):
        @classmethod
        def from_dense(cls, dense):
            found = cls()
            found.register_buffer("values", dense.weight.detach())
            return found

    sparsifier = ao.WeightNormSparsifier(0.5)
    sparsifier.prepare(made, [{"tensor_fqn": "2.0.weight"}])
    sparsifier.step()
    converted = sparsifier.convert(made, {torch.nn.Linear: Converted})
    return [type(converted[0]).__name__, type(converted[2][0]).__name__, type(made[2][0]).__name__, converted[2][0].values]


def case_errors(torch):
    ao = pruning(torch)

    def step(**options):
        made, sparsifier = model(torch), ao.WeightNormSparsifier(**options)
        sparsifier.prepare(made, None)
        sparsifier.step()

    def prepared(config):
        return lambda: ao.WeightNormSparsifier().prepare(model(torch), config)

    sparsifier = ao.WeightNormSparsifier()
    sparsifier.prepare(model(torch), None)
    calls = (
        lambda: step(zeros_per_block=5), lambda: step(zeros_per_block=-1), lambda: ao.WeightNormSparsifier(norm=3),
        prepared([torch.nn.Linear(1, 1)]), prepared([{}]), prepared([{"tensor_fqn": "0.weight", "module_fqn": "1"}]),
        lambda: sparsifier.convert(model(torch)), lambda: ao.LambdaSL(3, lambda e: 1.0), lambda: ao.CubicSL(sparsifier, init_sl=[0.1]),
        lambda: ao.LambdaSL(sparsifier, [lambda e: 1.0]), lambda: ao.FakeSparsity(torch.ones(2))(torch.ones(3)),
    )  # fmt: skip
    return [error(call).partition(":")[0] for call in calls]
