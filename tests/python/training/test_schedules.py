"""Schedulers, compared with PyTorch's: learning rates and momenta, step by step."""

import pytest

from tests.expression_table import check_row

NAMES = """
def run(make, steps=10, kind=optim.SGD, epochs=None):
    options = {"momentum": 0.9} if kind is optim.SGD else {}
    optimizer = kind([{"params": [nn.Parameter(torch.ones(1))]}, {"params": [nn.Parameter(torch.ones(1))], "lr": 0.5}], lr=0.1, **options)
    scheduler, seen = make(optimizer), []
    for i in range(steps):
        seen.append([[g["lr"], g.get("momentum", g.get("betas"))] for g in optimizer.param_groups])
        assert scheduler.get_last_lr() == [g["lr"] for g in optimizer.param_groups]
        optimizer.step()
        scheduler.step(*(() if epochs is None else (epochs[i],)))
    return seen
L = optim.lr_scheduler
"""

SCHEDULES = [
    (
        'run(lambda o: L.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.09, 0.9], [0.25, 0.9]], [[0.081, 0.9], [0.166667, 0.9]], [[0.0729, 0.9], [0.125, 0.9]], [[0.06561, 0.9], [0.1, 0.9]], [[0.059049, 0.9], [0.0833333, 0.9]], [[0.0531441, 0.9], [0.0714286, 0.9]], [[0.0478297, 0.9], [0.0625, 0.9]], [[0.0430467, 0.9], [0.0555556, 0.9]], [[0.038742, 0.9], [0.05, 0.9]]],
    ),
    ('run(lambda o: L.LambdaLR(o, [lambda e: 1]))', ValueError),
    (
        'run(lambda o: L.MultiplicativeLR(o, lambda e: 0.9))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.09, 0.9], [0.45, 0.9]], [[0.081, 0.9], [0.405, 0.9]], [[0.0729, 0.9], [0.3645, 0.9]], [[0.06561, 0.9], [0.32805, 0.9]], [[0.059049, 0.9], [0.295245, 0.9]], [[0.0531441, 0.9], [0.265721, 0.9]], [[0.0478297, 0.9], [0.239148, 0.9]], [[0.0430467, 0.9], [0.215234, 0.9]], [[0.038742, 0.9], [0.19371, 0.9]]],
    ),
    (
        'run(lambda o: L.StepLR(o, 3, 0.5))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.025, 0.9], [0.125, 0.9]], [[0.025, 0.9], [0.125, 0.9]], [[0.025, 0.9], [0.125, 0.9]], [[0.0125, 0.9], [0.0625, 0.9]]],
    ),
    (
        'run(lambda o: L.MultiStepLR(o, [2, 2, 5], 0.5))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.025, 0.9], [0.125, 0.9]], [[0.025, 0.9], [0.125, 0.9]], [[0.025, 0.9], [0.125, 0.9]], [[0.0125, 0.9], [0.0625, 0.9]], [[0.0125, 0.9], [0.0625, 0.9]], [[0.0125, 0.9], [0.0625, 0.9]], [[0.0125, 0.9], [0.0625, 0.9]], [[0.0125, 0.9], [0.0625, 0.9]]],
    ),
    (
        'run(lambda o: L.ConstantLR(o, 0.5, 4))',
        [[[0.05, 0.9], [0.25, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]]],
    ),
    (
        'run(lambda o: L.LinearLR(o, 0.25, 0.75, 4))',
        [[[0.025, 0.9], [0.125, 0.9]], [[0.0375, 0.9], [0.1875, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.0625, 0.9], [0.3125, 0.9]], [[0.075, 0.9], [0.375, 0.9]], [[0.075, 0.9], [0.375, 0.9]], [[0.075, 0.9], [0.375, 0.9]], [[0.075, 0.9], [0.375, 0.9]], [[0.075, 0.9], [0.375, 0.9]], [[0.075, 0.9], [0.375, 0.9]]],
    ),
    (
        'run(lambda o: L.ExponentialLR(o, 0.8))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.08, 0.9], [0.4, 0.9]], [[0.064, 0.9], [0.32, 0.9]], [[0.0512, 0.9], [0.256, 0.9]], [[0.04096, 0.9], [0.2048, 0.9]], [[0.032768, 0.9], [0.16384, 0.9]], [[0.0262144, 0.9], [0.131072, 0.9]], [[0.0209715, 0.9], [0.104858, 0.9]], [[0.0167772, 0.9], [0.0838861, 0.9]], [[0.0134218, 0.9], [0.0671089, 0.9]]],
    ),
    (
        'run(lambda o: L.PolynomialLR(o, 5, 2.0))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.064, 0.9], [0.32, 0.9]], [[0.036, 0.9], [0.18, 0.9]], [[0.016, 0.9], [0.08, 0.9]], [[0.004, 0.9], [0.02, 0.9]], [[0.0, 0.9], [0.0, 0.9]], [[0.0, 0.9], [0.0, 0.9]], [[0.0, 0.9], [0.0, 0.9]], [[0.0, 0.9], [0.0, 0.9]], [[0.0, 0.9], [0.0, 0.9]]],
    ),
    (
        'run(lambda o: L.CosineAnnealingLR(o, 4, 0.01))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.0868198, 0.9], [0.428241, 0.9]], [[0.055, 0.9], [0.255, 0.9]], [[0.0231802, 0.9], [0.0817588, 0.9]], [[0.01, 0.9], [0.01, 0.9]], [[0.0231802, 0.9], [0.0817588, 0.9]], [[0.055, 0.9], [0.255, 0.9]], [[0.0868198, 0.9], [0.428241, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.0868198, 0.9], [0.428241, 0.9]]],
    ),
    (
        'run(lambda o: L.CosineAnnealingWarmRestarts(o, 3, 2, 0.01))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.0775, 0.9], [0.3775, 0.9]], [[0.0325, 0.9], [0.1325, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.0939711, 0.9], [0.467176, 0.9]], [[0.0775, 0.9], [0.3775, 0.9]], [[0.055, 0.9], [0.255, 0.9]], [[0.0325, 0.9], [0.1325, 0.9]], [[0.0160289, 0.9], [0.0428238, 0.9]], [[0.1, 0.9], [0.5, 0.9]]],
    ),
    (
        'run(lambda o: L.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 3, 4, "triangular2", base_momentum=[0.7, 0.6], max_momentum=[0.9, 0.95]))',
        [[[0.01, 0.9], [0.02, 0.95]], [[0.04, 0.833333], [0.113333, 0.833333]], [[0.07, 0.766667], [0.206667, 0.716667]], [[0.1, 0.7], [0.3, 0.6]], [[0.0775, 0.75], [0.23, 0.6875]], [[0.055, 0.8], [0.16, 0.775]], [[0.0325, 0.85], [0.09, 0.8625]], [[0.01, 0.9], [0.02, 0.95]], [[0.025, 0.866667], [0.0666667, 0.891667]], [[0.04, 0.833333], [0.113333, 0.833333]]],
    ),
    (
        'run(lambda o: L.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9))',
        [[[0.01, 0.9], [0.01, 0.9]], [[0.037, 0.87], [0.037, 0.87]], [[0.0586, 0.846], [0.0586, 0.846]], [[0.07561, 0.8271], [0.07561, 0.8271]], [[0.049366, 0.85626], [0.049366, 0.85626]], [[0.0277147, 0.880317], [0.0277147, 0.880317]], [[0.01, 0.9], [0.01, 0.9]], [[0.0243489, 0.884057], [0.0243489, 0.884057]], [[0.035828, 0.871302], [0.035828, 0.871302]], [[0.0448678, 0.861258], [0.0448678, 0.861258]]],
    ),
    (
        'run(lambda o: L.CyclicLR(o, 0.01, 0.1, 3, scale_fn=lambda c: 0.5, scale_mode="iterations", cycle_momentum=False))',
        [[[0.01, 0.9], [0.01, 0.9]], [[0.025, 0.9], [0.025, 0.9]], [[0.04, 0.9], [0.04, 0.9]], [[0.055, 0.9], [0.055, 0.9]], [[0.04, 0.9], [0.04, 0.9]], [[0.025, 0.9], [0.025, 0.9]], [[0.01, 0.9], [0.01, 0.9]], [[0.025, 0.9], [0.025, 0.9]], [[0.04, 0.9], [0.04, 0.9]], [[0.055, 0.9], [0.055, 0.9]]],
    ),
    (
        'run(lambda o: L.OneCycleLR(o, [0.1, 0.3], 10))',
        [[[0.004, 0.95], [0.012, 0.95]], [[0.052, 0.9], [0.156, 0.9]], [[0.1, 0.85], [0.3, 0.85]], [[0.0950485, 0.854952], [0.285145, 0.854952]], [[0.0811746, 0.868826], [0.243524, 0.868826]], [[0.0611262, 0.888874], [0.183379, 0.888874]], [[0.0388742, 0.911126], [0.116623, 0.911126]], [[0.0188258, 0.931174], [0.0564775, 0.931174]], [[0.00495194, 0.945048], [0.0148558, 0.945048]], [[4e-07, 0.95], [1.2e-06, 0.95]]],
    ),
    (
        'run(lambda o: L.OneCycleLR(o, 0.1, epochs=2, steps_per_epoch=6, three_phase=True, anneal_strategy="linear", base_momentum=0.5, max_momentum=[0.8, 0.9], div_factor=10, final_div_factor=100, pct_start=0.25))',
        [[[0.01, 0.8], [0.01, 0.9]], [[0.055, 0.65], [0.055, 0.7]], [[0.1, 0.5], [0.1, 0.5]], [[0.055, 0.65], [0.055, 0.7]], [[0.01, 0.8], [0.01, 0.9]], [[0.00858571, 0.8], [0.00858571, 0.9]], [[0.00717143, 0.8], [0.00717143, 0.9]], [[0.00575714, 0.8], [0.00575714, 0.9]], [[0.00434286, 0.8], [0.00434286, 0.9]], [[0.00292857, 0.8], [0.00292857, 0.9]]],
    ),
    (
        'run(lambda o: L.OneCycleLR(o, 0.1, 12, cycle_momentum=False))',
        [[[0.004, 0.9], [0.004, 0.9]], [[0.034979, 0.9], [0.034979, 0.9]], [[0.0879285, 0.9], [0.0879285, 0.9]], [[0.0994415, 0.9], [0.0994415, 0.9]], [[0.0933013, 0.9], [0.0933013, 0.9]], [[0.0811746, 0.9], [0.0811746, 0.9]], [[0.0647379, 0.9], [0.0647379, 0.9]], [[0.0462637, 0.9], [0.0462637, 0.9]], [[0.0283061, 0.9], [0.0283061, 0.9]], [[0.0133478, 0.9], [0.0133478, 0.9]]],
    ),
    (
        'run(lambda o: L.SequentialLR(o, [L.LinearLR(o, 0.1, 1.0, 4), L.ExponentialLR(o, 0.9)], [4]))',
        [[[0.01, 0.9], [0.05, 0.9]], [[0.0325, 0.9], [0.1625, 0.9]], [[0.055, 0.9], [0.275, 0.9]], [[0.0775, 0.9], [0.3875, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.09, 0.9], [0.45, 0.9]], [[0.081, 0.9], [0.405, 0.9]], [[0.0729, 0.9], [0.3645, 0.9]], [[0.06561, 0.9], [0.32805, 0.9]], [[0.059049, 0.9], [0.295245, 0.9]]],
    ),
    (  # the inner one has made a step when it begins
        'run(lambda o: L.SequentialLR(o, [L.SequentialLR(o, [L.ConstantLR(o, 0.1, 2), L.ExponentialLR(o, 0.9)], [2]), L.StepLR(o, 2, 0.5)], [4]))',
        [[[0.01, 0.9], [0.05, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.09, 0.9], [0.45, 0.9]], [[0.081, 0.9], [0.405, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.025, 0.9], [0.125, 0.9]], [[0.025, 0.9], [0.125, 0.9]]],
    ),
    (
        'run(lambda o: L.ChainedScheduler([L.ConstantLR(o, 0.1, 4), L.ExponentialLR(o, 0.9)]))',
        [[[0.01, 0.9], [0.05, 0.9]], [[0.009, 0.9], [0.045, 0.9]], [[0.0081, 0.9], [0.0405, 0.9]], [[0.00729, 0.9], [0.03645, 0.9]], [[0.06561, 0.9], [0.32805, 0.9]], [[0.059049, 0.9], [0.295245, 0.9]], [[0.0531441, 0.9], [0.265721, 0.9]], [[0.0478297, 0.9], [0.239148, 0.9]], [[0.0430467, 0.9], [0.215234, 0.9]], [[0.038742, 0.9], [0.19371, 0.9]]],
    ),
    (
        'run(lambda o: L.ChainedScheduler([L.StepLR(o, 2, 0.5), L.CosineAnnealingLR(o, 7)]))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.0950484, 0.9], [0.475242, 0.9]], [[0.0405872, 0.9], [0.202936, 0.9]], [[0.030563, 0.9], [0.152815, 0.9]], [[0.00971849, 0.9], [0.0485924, 0.9]], [[0.00470638, 0.9], [0.0235319, 0.9]], [[0.000618945, 0.9], [0.00309472, 0.9]], [[0.0, 0.9], [0.0, 0.9]], [[0.00495156, 0.9], [0.0247578, 0.9]], [[0.0188255, 0.9], [0.0941275, 0.9]]],
    ),
    (
        'run(lambda o: optim.swa_utils.SWALR(o, [0.05, 0.01], 4))',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.0926777, 0.9], [0.428241, 0.9]], [[0.075, 0.9], [0.255, 0.9]], [[0.0573223, 0.9], [0.0817588, 0.9]], [[0.05, 0.9], [0.01, 0.9]], [[0.05, 0.9], [0.01, 0.9]], [[0.05, 0.9], [0.01, 0.9]], [[0.05, 0.9], [0.01, 0.9]], [[0.05, 0.9], [0.01, 0.9]], [[0.05, 0.9], [0.01, 0.9]]],
    ),
    (
        'run(lambda o: L.OneCycleLR(o, 0.1, 5), 3, optim.Adam)',
        [[[0.004, [0.95, 0.999]], [0.004, [0.95, 0.999]]], [[0.0950485, [0.854952, 0.999]], [0.0950485, [0.854952, 0.999]]], [[0.0611262, [0.888874, 0.999]], [0.0611262, [0.888874, 0.999]]]],
    ),
    (
        'run(lambda o: L.CyclicLR(o, 0.01, 0.1, 3), 3, optim.Adam)',
        [[[0.01, [0.9, 0.999]], [0.01, [0.9, 0.999]]], [[0.04, [0.866667, 0.999]], [0.04, [0.866667, 0.999]]], [[0.07, [0.833333, 0.999]], [0.07, [0.833333, 0.999]]]],
    ),
    ('run(lambda o: L.OneCycleLR(o, 0.1, 5), 3, optim.Adagrad)', ValueError),
    ('run(lambda o: L.OneCycleLR(o, 0.1, 5), 8)', ValueError),
    ('run(lambda o: L.OneCycleLR(o, [0.1], 5))', ValueError),
    ('run(lambda o: L.OneCycleLR(o, 0.1, 5, pct_start=1))', ValueError),
    ('run(lambda o: L.OneCycleLR(o, 0.1, 5, anneal_strategy="up"))', ValueError),
    ('run(lambda o: L.OneCycleLR(o, 0.1, 5, verbose=True))', TypeError),
    (
        'run(lambda o: L.ReduceLROnPlateau(o, "min", 0.5, 1, cooldown=1, min_lr=[0.03, 0.2]), 10, optim.SGD, [3, 2, 2, 2, 2, 1, 1, 1, 1, 1])',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.03, 0.9], [0.2, 0.9]], [[0.03, 0.9], [0.2, 0.9]]],
    ),
    (
        'run(lambda o: L.ReduceLROnPlateau(o, "max", 0.5, 1, threshold=0.1, threshold_mode="abs", eps=0.06), 8, optim.SGD, [1, 1.05, 1.1, 1, 2, 1, 1, 1])',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.5, 0.9]], [[0.1, 0.9], [0.25, 0.9]], [[0.1, 0.9], [0.25, 0.9]], [[0.1, 0.9], [0.25, 0.9]], [[0.1, 0.9], [0.25, 0.9]], [[0.1, 0.9], [0.125, 0.9]]],
    ),
    ('run(lambda o: L.ReduceLROnPlateau(o, "least"))', ValueError),
    ('run(lambda o: L.ReduceLROnPlateau(o, min_lr=[0.1]))', ValueError),
    ('run(lambda o: L.SequentialLR(o, [L.ReduceLROnPlateau(o)], []))', ValueError),
    ('run(lambda o: L.ConstantLR(o, 2.0))', ValueError),
    ('run(lambda o: L.LinearLR(o, 0.0))', ValueError),
    ('run(lambda o: L.StepLR(o, 3, last_epoch=4))', KeyError),
    (
        'run(lambda o: L.StepLR(o, 3, 0.5), 3, optim.SGD, [4, 1, 7])',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.05, 0.9], [0.25, 0.9]], [[0.1, 0.9], [0.5, 0.9]]],
    ),
    (
        'run(lambda o: L.CosineAnnealingWarmRestarts(o, 3, 2), 3, optim.SGD, [0.5, 3.5, 10])',
        [[[0.1, 0.9], [0.5, 0.9]], [[0.0933013, 0.9], [0.466506, 0.9]], [[0.0982963, 0.9], [0.491481, 0.9]]],
    ),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", SCHEDULES)
def test_schedules(torch, code, expected):
    check_row(torch, NAMES, code, expected)


STATES = ["StepLR(o, 3)", "MultiStepLR(o, [2, 4])", "CosineAnnealingLR(o, 5)", "CosineAnnealingWarmRestarts(o, 3)",
    "CyclicLR(o, 0.01, 0.1, 3, mode='exp_range', gamma=0.9)", "OneCycleLR(o, 0.1, 20)", "LambdaLR(o, lambda e: 0.9**e)",
    "SequentialLR(o, [L.LinearLR(o), L.ExponentialLR(o, 0.9)], [4])", "ReduceLROnPlateau(o, patience=1)",
]  # fmt: skip


@pytest.mark.parametrize("make", STATES)
def test_schedule_continues_from_its_state(torch, tmp_path, make):
    def start():
        o = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
        return o, eval(f"L.{make}", {"o": o, "L": torch.optim.lr_scheduler})  # noqa: S307

    def step(optimizer, scheduler):
        optimizer.step()
        scheduler.step(*([1.0] if "Plateau" in make else []))
        return optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]

    first, second = start(), start()
    for _ in range(3):
        step(*first)
    torch.save([x.state_dict() for x in first], tmp_path / "state")
    for x, state in zip(second, torch.load(tmp_path / "state")):
        x.load_state_dict(state)
    assert [step(*first) for _ in range(4)] == [step(*second) for _ in range(4)]


def test_tensor_learning_rate_remains_a_tensor(torch):
    rate = torch.tensor(0.5)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=rate)
    torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5).step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.25 and optimizer.param_groups[0]["initial_lr"] == 0.5


def test_averages_of_several_parameters(torch):
    def mean(averaged, current, count):
        for a, c in zip(averaged, current):
            a.copy_(0.5 * a + 0.5 * c)

    net = torch.nn.Linear(1, 1, bias=False)
    model = torch.optim.swa_utils.AveragedModel(net, multi_avg_fn=mean)
    for value in (1.0, 3.0, 7.0):
        torch.nn.init.constant_(net.weight, value)
        model.update_parameters(net)
    assert model.module.weight.item() == 4.5
    with pytest.raises(AssertionError):
        torch.optim.swa_utils.AveragedModel(net, avg_fn=mean, multi_avg_fn=mean)


OPTIMIZERS = ["SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Adagrad", "Adadelta", "RMSprop", "Rprop", "ASGD"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_options_are_stored_or_rejected(torch, name):
    make = lambda **options: getattr(torch.optim, name)([torch.nn.Parameter(torch.ones(1))], **options)  # noqa: E731
    assert make(foreach=True, maximize=True).param_groups[0]["foreach"] is True
    with pytest.raises(TypeError):
        make(learning=1)


def test_loading_optimizer_state(torch):
    def start(dtype, **options):
        p = torch.nn.Parameter(torch.ones(2, dtype=dtype))
        return p, torch.optim.Adam([p], **options)

    p, optimizer = start(torch.float32)
    p.sum().backward()
    optimizer.step()
    q, other = start(torch.float64, lr=1.0)
    state = optimizer.state_dict()
    del state["param_groups"][0]["maximize"]  # as in a state saved by an older version
    other.load_state_dict(state)
    assert other.state[q]["exp_avg"].dtype is torch.float64 and other.param_groups[0]["lr"] == 1e-3
    q.sum().backward()
    other.step()
    with pytest.raises(ValueError, match="different number of parameter groups"):
        other.load_state_dict({**state, "param_groups": state["param_groups"] * 2})
    with pytest.raises(TypeError, match="ordered"):
        torch.optim.SGD([{"params": {p}}])
    with pytest.raises(RuntimeError, match="fused"):
        torch.optim.SGD([p], fused=True, foreach=True)


def test_adam_with_decoupled_decay_is_adamw(torch):
    def one(kind, **options):
        p = torch.nn.Parameter(torch.full((2,), 3.0))
        optimizer = kind([p], lr=0.1, weight_decay=0.5, **options)
        p.sum().backward()
        optimizer.step()
        return p.tolist()

    adam = torch.optim.Adam
    assert one(adam, decoupled_weight_decay=True) == one(torch.optim.AdamW) != one(adam)


def test_subclasses_of_plateau_schedules_receive_the_epoch(torch):
    class Noted(torch.optim.lr_scheduler.ReduceLROnPlateau):
        def _reduce_lr(self, epoch):
            epochs.append(epoch)
            super()._reduce_lr(epoch)

    epochs = []
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
    schedule = Noted(optimizer, patience=0)
    for _ in range(3):
        schedule.step(1.0)
    assert epochs == [2, 3] and abs(optimizer.param_groups[0]["lr"] - 0.01) < 1e-9
