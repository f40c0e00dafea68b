"""Arguments of losses, activations, pools and initialisers that PyTorch accepts by position, under deprecated names
or out of range."""

import pytest

from tests.expression_table import check_row

LOSSES_NAMES = """
x = (torch.arange(12.0).reshape(3, 4) - 5) / 4
y = torch.sin(x)
p, q = torch.sigmoid(x), torch.sigmoid(y)
logs, shares = torch.log_softmax(x, 1), torch.softmax(y, 1)
signs, classes = torch.sign(y), torch.tensor([1, 3, 0])
sets = torch.tensor([[0, 2, -1, 1], [1, -1, 0, 0], [3, 2, 1, 0]])
"""

LOSSES = [
    ('F.l1_loss(x, y, size_average=False)', 1.60466),
    ('F.l1_loss(x, y, reduce=False).sum()', 1.60466),
    ('F.l1_loss(x, y, size_average=True, reduction="none")', 0.133721),
    ('F.mse_loss(x, y, size_average=False)', 0.494201),
    ('F.mse_loss(x, y, reduce=False).sum()', 0.494201),
    ('F.mse_loss(x, y, size_average=True, reduction="none")', 0.0411834),
    ('F.smooth_l1_loss(x, y, size_average=False)', 0.247101),
    ('F.smooth_l1_loss(x, y, reduce=False).sum()', 0.247101),
    ('F.smooth_l1_loss(x, y, size_average=True, reduction="none")', 0.0205917),
    ('F.kl_div(logs, shares, size_average=False)', 0.0188375),
    ('F.kl_div(logs, shares, reduce=False).sum()', 0.0188375),
    ('F.kl_div(logs, shares, size_average=True, reduction="none")', 0.0015698),
    ('F.binary_cross_entropy(p, q, size_average=False)', 7.7085),
    ('F.binary_cross_entropy(p, q, reduce=False).sum()', 7.7085),
    ('F.binary_cross_entropy(p, q, size_average=True, reduction="none")', 0.642375),
    ('F.binary_cross_entropy_with_logits(x, q, size_average=False)', 7.7085),
    ('F.binary_cross_entropy_with_logits(x, q, reduce=False).sum()', 7.7085),
    ('F.binary_cross_entropy_with_logits(x, q, size_average=True, reduction="none")', 0.642375),
    ('F.nll_loss(logs, classes, size_average=False)', 4.40005),
    ('F.nll_loss(logs, classes, reduce=False).sum()', 4.40005),
    ('F.nll_loss(logs, classes, size_average=True, reduction="none")', 1.46668),
    ('F.cross_entropy(x, classes, size_average=False)', 4.40005),
    ('F.cross_entropy(x, classes, reduce=False).sum()', 4.40005),
    ('F.cross_entropy(x, classes, size_average=True, reduction="none")', 1.46668),
    ('F.poisson_nll_loss(x, q, size_average=False)', 16.8119),
    ('F.poisson_nll_loss(x, q, reduce=False).sum()', 16.8119),
    ('F.poisson_nll_loss(x, q, size_average=True, reduction="none")', 1.40099),
    ('F.hinge_embedding_loss(x, signs, size_average=False)', 15.0),
    ('F.hinge_embedding_loss(x, signs, reduce=False).sum()', 15.0),
    ('F.hinge_embedding_loss(x, signs, size_average=True, reduction="none")', 1.25),
    ('F.soft_margin_loss(x, signs, size_average=False)', 4.89872),
    ('F.soft_margin_loss(x, signs, reduce=False).sum()', 4.89872),
    ('F.soft_margin_loss(x, signs, size_average=True, reduction="none")', 0.408226),
    ('F.multi_margin_loss(x, classes, size_average=False)', 2.375),
    ('F.multi_margin_loss(x, classes, reduce=False).sum()', 2.375),
    ('F.multi_margin_loss(x, classes, size_average=True, reduction="none")', 0.791667),
    ('F.multilabel_margin_loss(x, sets, size_average=False)', 2.125),
    ('F.multilabel_margin_loss(x, sets, reduce=False).sum()', 2.125),
    ('F.multilabel_margin_loss(x, sets, size_average=True, reduction="none")', 0.708333),
    ('F.multilabel_soft_margin_loss(x, q, size_average=False)', 1.92713),
    ('F.multilabel_soft_margin_loss(x, q, reduce=False).sum()', 1.92713),
    ('F.multilabel_soft_margin_loss(x, q, size_average=True, reduction="none")', 0.642375),
    ('F.margin_ranking_loss(x, y, signs, size_average=False)', 0.0),
    ('F.margin_ranking_loss(x, y, signs, reduce=False).sum()', 0.0),
    ('F.margin_ranking_loss(x, y, signs, size_average=True, reduction="none")', 0.0),
    ('F.cosine_embedding_loss(x, y, signs[:, 0], size_average=False)', 2.00289),
    ('F.cosine_embedding_loss(x, y, signs[:, 0], reduce=False).sum()', 2.00289),
    ('F.cosine_embedding_loss(x, y, signs[:, 0], size_average=True, reduction="none")', 0.667631),
    ('F.triplet_margin_loss(x, y, q, size_average=False)', 0.732942),
    ('F.triplet_margin_loss(x, y, q, reduce=False).sum()', 0.732942),
    ('F.triplet_margin_loss(x, y, q, size_average=True, reduction="none")', 0.244314),
    ('F.l1_loss(x, y, False)', 1.60466),
    ('F.mse_loss(x, y, None, False).shape', [3, 4]),
    ('F.nll_loss(logs, classes, None, False, 1)', 2.85003),
    ('F.cross_entropy(x, classes, None, None, -100, None, "sum", 0.2)', 4.37505),
    ('F.smooth_l1_loss(x, y, None, None, "sum", 0.2)', 0.95571),
    ('F.kl_div(logs, y, None, None, "sum", True)', 30.3307),
    ('F.poisson_nll_loss(x, q, True, True, None, 1e-3, None, "sum")', 16.8119),
    ('F.triplet_margin_loss(x, y, q, 0.7, 1, 1e-5, True, False)', 1.07518),
    ('F.binary_cross_entropy_with_logits(x, q, None, None, None, "sum", torch.ones(4) * 3)', 15.1057),
    ('F.huber_loss(x, y, "sum", 0.3)', 0.226595),
    ('F.l1_loss(x, y, weight=q)', 0.147369),
    ('F.mse_loss(x, y, reduction="sum", weight=q)', 0.305321),
    ('F.huber_loss(x, y, weight=q)', 0.0127217),
    ('F.mse_loss(x, y, weight=q[0])', ValueError),
    ('nn.L1Loss(False)(x, y)', 1.60466),
    ('nn.MSELoss(None, False)(x, y).shape', [3, 4]),
    ('nn.SmoothL1Loss(None, None, "sum", 0.2)(x, y)', 0.95571),
    ('nn.KLDivLoss(None, None, "sum", True)(logs, y)', 30.3307),
    ('nn.BCELoss(torch.ones(3, 4) * 2, False)(p, q)', 15.417),
    ('nn.BCEWithLogitsLoss(None, None, None, "sum", torch.ones(4) * 3)(x, q)', 15.1057),
    ('nn.NLLLoss(None, False, 1)(logs, classes)', 2.85003),
    ('nn.CrossEntropyLoss(None, None, -100, None, "sum", 0.2)(x, classes)', 4.37505),
    ('nn.PoissonNLLLoss(True, True, None, 1e-3, None, "sum")(x, q)', 16.8119),
    ('nn.HuberLoss("sum", 0.3)(x, y)', 0.226595),
    ('nn.MultiMarginLoss(2, 0.5, torch.ones(4) * 2, False)(x, classes)', 2.40625),
    ('nn.TripletMarginLoss(0.7, 1, 1e-5, True, False)(x, y, q)', 1.07518),
    ('nn.MarginRankingLoss(0.2, False)(x, y, signs)', 1.29988),
    ('nn.CosineEmbeddingLoss(0.1, None, False)(x, y, signs[:, 0]).shape', [3]),
    ('nn.CrossEntropyLoss()(input=x, target=classes)', 1.46668),
    ('nn.L1Loss(1, 2, "sum", 4)', TypeError),
    ('nn.NLLLoss(None, weight=None)', TypeError),
    ('nn.GaussianNLLLoss(True)', TypeError),
    ('nn.CrossEntropyLoss(size="mean")', TypeError),
    ('F.cross_entropy(x, q, reduction="bad")', ValueError),
    ('F.binary_cross_entropy(p, q[0])', ValueError),
    ('F.margin_ranking_loss(x, y, signs[0])', RuntimeError),
    ('F.gaussian_nll_loss(x, y, -1.0)', ValueError),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", LOSSES)
def test_losses(torch, code, expected):
    check_row(torch, LOSSES_NAMES, code, expected)


ACTIVATIONS_NAMES = """
x = torch.tensor([-4.0, -0.5, 0.25, 7.0])
"""

ACTIVATIONS = [
    ('(F.relu(x, True) is x, x)', [True, [0.0, 0.0, 0.25, 7.0]]),
    ('F.relu(x, False) is x', False),
    ('F.relu(x, True, 1)', TypeError),
    ('(F.relu6(x, True) is x, x)', [True, [0.0, 0.0, 0.25, 6.0]]),
    ('F.relu6(x, False) is x', False),
    ('F.relu6(x, True, 1)', TypeError),
    ('(F.leaky_relu(x, 0.2, True) is x, x)', [True, [-0.8, -0.1, 0.25, 7.0]]),
    ('F.leaky_relu(x, 0.2, False) is x', False),
    ('F.leaky_relu(x, 0.2, True, 1)', TypeError),
    ('(F.elu(x, 0.5, True) is x, x)', [True, [-0.490842, -0.196735, 0.25, 7.0]]),
    ('F.elu(x, 0.5, False) is x', False),
    ('F.elu(x, 0.5, True, 1)', TypeError),
    ('(F.selu(x, True) is x, x)', [True, [-1.7259, -0.691758, 0.262675, 7.35491]]),
    ('F.selu(x, False) is x', False),
    ('F.selu(x, True, 1)', TypeError),
    ('(F.celu(x, 0.5, True) is x, x)', [True, [-0.499832, -0.31606, 0.25, 7.0]]),
    ('F.celu(x, 0.5, False) is x', False),
    ('F.celu(x, 0.5, True, 1)', TypeError),
    ('(F.silu(x, True) is x, x)', [True, [-0.0719448, -0.18877, 0.140544, 6.99362]]),
    ('F.silu(x, False) is x', False),
    ('F.silu(x, True, 1)', TypeError),
    ('(F.mish(x, True) is x, x)', [True, [-0.0725918, -0.220744, 0.169572, 6.99999]]),
    ('F.mish(x, False) is x', False),
    ('F.mish(x, True, 1)', TypeError),
    ('(F.hardsigmoid(x, True) is x, x)', [True, [0.0, 0.416667, 0.541667, 1.0]]),
    ('F.hardsigmoid(x, False) is x', False),
    ('F.hardsigmoid(x, True, 1)', TypeError),
    ('(F.hardswish(x, True) is x, x)', [True, [-0.0, -0.208333, 0.135417, 7.0]]),
    ('F.hardswish(x, False) is x', False),
    ('F.hardswish(x, True, 1)', TypeError),
    ('(F.threshold(x, 0.1, 9.0, True) is x, x)', [True, [9.0, 9.0, 0.25, 7.0]]),
    ('F.threshold(x, 0.1, 9.0, False) is x', False),
    ('F.threshold(x, 0.1, 9.0, True, 1)', TypeError),
    ('(F.hardtanh(x, -0.3, 0.4, True) is x, x)', [True, [-0.3, -0.3, 0.25, 0.4]]),
    ('F.hardtanh(x, -0.3, 0.4, False) is x', False),
    ('F.hardtanh(x, -0.3, 0.4, True, 1)', TypeError),
    ('(F.rrelu(x, 0.2, 0.2, True, True) is x, x)', [True, [-0.8, -0.1, 0.25, 7.0]]),
    ('F.rrelu(x, 0.2, 0.2, True, False) is x', False),
    ('F.rrelu(x, 0.2, 0.2, True, True, 1)', TypeError),
    ('F.softplus(x, 2.0, 1.0)', [0.000167703, 0.156631, 0.487038, 7.0]),
    ('F.softplus(x, 2.0, 1.0, True)', TypeError),
    ('(nn.ReLU(True)(x) is x, x)', [True, [0.0, 0.0, 0.25, 7.0]]),
    ('(nn.ReLU6(True)(x) is x, x)', [True, [0.0, 0.0, 0.25, 6.0]]),
    ('(nn.LeakyReLU(0.2, True)(x) is x, x)', [True, [-0.8, -0.1, 0.25, 7.0]]),
    ('(nn.ELU(0.5, True)(x) is x, x)', [True, [-0.490842, -0.196735, 0.25, 7.0]]),
    ('(nn.SELU(True)(x) is x, x)', [True, [-1.7259, -0.691758, 0.262675, 7.35491]]),
    ('(nn.CELU(0.5, True)(x) is x, x)', [True, [-0.499832, -0.31606, 0.25, 7.0]]),
    ('(nn.SiLU(True)(x) is x, x)', [True, [-0.0719448, -0.18877, 0.140544, 6.99362]]),
    ('(nn.Mish(True)(x) is x, x)', [True, [-0.0725918, -0.220744, 0.169572, 6.99999]]),
    ('(nn.Hardtanh(-0.3, 0.4, True)(x) is x, x)', [True, [-0.3, -0.3, 0.25, 0.4]]),
    ('(nn.Hardsigmoid(True)(x) is x, x)', [True, [0.0, 0.416667, 0.541667, 1.0]]),
    ('(nn.Hardswish(True)(x) is x, x)', [True, [-0.0, -0.208333, 0.135417, 7.0]]),
    ('(nn.Threshold(0.1, 9.0, True)(x) is x, x)', [True, [9.0, 9.0, 0.25, 7.0]]),
    ('nn.Threshold()', TypeError),
    ('nn.ReLU(True, inplace=True)', TypeError),
    ('nn.Hardtanh(1, -1)', AssertionError),
    ('nn.Hardtanh(min_value=-2.0)(x)', [-2.0, -0.5, 0.25, 1.0]),
    (
        'F.softmax(torch.arange(8.0).reshape(2, 2, 2))',
        [[[0.0179862, 0.0179862], [0.0179862, 0.0179862]], [[0.982014, 0.982014], [0.982014, 0.982014]]],
    ),
    ('F.softmin(x, 0)', [0.957416, 0.0289115, 0.0136568, 1.59905e-05]),
    ('F.alpha_dropout(x, 0.5, True, True) is x', True),
    ('F.dropout(x, 2.0, False)', ValueError),
    ('F.pad(x[None], (1, 1), "reflect", 2.0)', RuntimeError),
    ('nn.ReflectionPad1d(1, 3.0)', TypeError),
    ('nn.ConstantPad1d(1)', TypeError),
    ('nn.ConstantPad1d(1, 3.0)(x[None])', [[3.0, -4.0, -0.5, 0.25, 7.0, 3.0]]),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", ACTIVATIONS)
def test_activations(torch, code, expected):
    check_row(torch, ACTIVATIONS_NAMES, code, expected)


POOLS_NAMES = """
lines = lambda n: torch.arange(1.0, n + 1).reshape(1, 1, n)
"""

POOLS = [
    ('F.avg_pool1d(lines(2), 3, 2, 0, True)', [[[1.5]]]),
    ('F.max_pool1d(lines(2), 3, 2, 0, 1, True, True)', [[[[2.0]]], [[[1]]]]),
    ('F.avg_pool2d(lines(2)[:, None], (1, 3), (1, 2), (0, 0), True, False)', [[[[1.5]]]]),
    ('F.max_pool2d(lines(2)[..., None], (3, 1), (2, 1), (0, 0), 1, True)', [[[[2.0]]]]),
    ('F.max_pool3d(lines(2)[:, None, None], (1, 1, 3), (1, 1, 2), (0, 0, 0), 1, True)', [[[[[2.0]]]]]),
    ('F.avg_pool1d(lines(1), 3, 2, 1, True)', [[[0.333333]]]),
    ('F.max_pool1d(lines(1), 3, 2, 1, 1, True, True)', [[[[1.0]]], [[[0]]]]),
    ('F.avg_pool2d(lines(1)[:, None], (1, 3), (1, 2), (0, 1), True, False)', [[[[1.0]]]]),
    ('F.max_pool2d(lines(1)[..., None], (3, 1), (2, 1), (1, 0), 1, True)', [[[[1.0]]]]),
    ('F.max_pool3d(lines(1)[:, None, None], (1, 1, 3), (1, 1, 2), (0, 0, 1), 1, True)', [[[[[1.0]]]]]),
    ('F.avg_pool1d(lines(2), 5, 3, 0, True)', RuntimeError),
    ('F.max_pool1d(lines(2), 5, 3, 0, 1, True, True)', RuntimeError),
    ('F.avg_pool2d(lines(2)[:, None], (1, 5), (1, 3), (0, 0), True, False)', RuntimeError),
    ('F.max_pool2d(lines(2)[..., None], (5, 1), (3, 1), (0, 0), 1, True)', RuntimeError),
    ('F.max_pool3d(lines(2)[:, None, None], (1, 1, 5), (1, 1, 3), (0, 0, 0), 1, True)', RuntimeError),
    ('F.avg_pool1d(lines(1), 5, 3, 2, True)', [[[0.2]]]),
    ('F.max_pool1d(lines(1), 5, 3, 2, 1, True, True)', [[[[1.0]]], [[[0]]]]),
    ('F.avg_pool2d(lines(1)[:, None], (1, 5), (1, 3), (0, 2), True, False)', [[[[1.0]]]]),
    ('F.max_pool2d(lines(1)[..., None], (5, 1), (3, 1), (2, 0), 1, True)', [[[[1.0]]]]),
    ('F.max_pool3d(lines(1)[:, None, None], (1, 1, 5), (1, 1, 3), (0, 0, 2), 1, True)', [[[[[1.0]]]]]),
    ('F.avg_pool1d(lines(2), 9, 10, 0, True)', [[[1.5]]]),
    ('F.max_pool1d(lines(2), 9, 10, 0, 1, True, True)', [[[[2.0]]], [[[1]]]]),
    ('F.avg_pool2d(lines(2)[:, None], (1, 9), (1, 10), (0, 0), True, False)', [[[[1.5]]]]),
    ('F.max_pool2d(lines(2)[..., None], (9, 1), (10, 1), (0, 0), 1, True)', [[[[2.0]]]]),
    ('F.max_pool3d(lines(2)[:, None, None], (1, 1, 9), (1, 1, 10), (0, 0, 0), 1, True)', [[[[[2.0]]]]]),
    ('F.avg_pool1d(lines(2), 9, 10, 4, True)', [[[0.333333]]]),
    ('F.max_pool1d(lines(2), 9, 10, 4, 1, True, True)', [[[[2.0]]], [[[1]]]]),
    ('F.avg_pool2d(lines(2)[:, None], (1, 9), (1, 10), (0, 4), True, False)', [[[[1.5]]]]),
    ('F.max_pool2d(lines(2)[..., None], (9, 1), (10, 1), (4, 0), 1, True)', [[[[2.0]]]]),
    ('F.max_pool3d(lines(2)[:, None, None], (1, 1, 9), (1, 1, 10), (0, 0, 4), 1, True)', [[[[[2.0]]]]]),
    ('F.avg_pool1d(lines(2), 3, 1, 0, True)', RuntimeError),
    ('F.max_pool1d(lines(2), 3, 1, 0, 1, True, True)', RuntimeError),
    ('F.avg_pool2d(lines(2)[:, None], (1, 3), (1, 1), (0, 0), True, False)', RuntimeError),
    ('F.max_pool2d(lines(2)[..., None], (3, 1), (1, 1), (0, 0), 1, True)', RuntimeError),
    ('F.max_pool3d(lines(2)[:, None, None], (1, 1, 3), (1, 1, 1), (0, 0, 0), 1, True)', RuntimeError),
    ('F.avg_pool1d(lines(3), 2, 3, 1, True)', [[[0.5, 1.5]]]),
    ('F.max_pool1d(lines(3), 2, 3, 1, 1, True, True)', [[[[1.0, 3.0]]], [[[0, 2]]]]),
    ('F.avg_pool2d(lines(3)[:, None], (1, 2), (1, 3), (0, 1), True, False)', [[[[1.0, 3.0]]]]),
    ('F.max_pool2d(lines(3)[..., None], (2, 1), (3, 1), (1, 0), 1, True)', [[[[1.0], [3.0]]]]),
    ('F.max_pool3d(lines(3)[:, None, None], (1, 1, 2), (1, 1, 3), (0, 0, 1), 1, True)', [[[[[1.0, 3.0]]]]]),
    ('F.avg_pool1d(lines(4), 4, 3, 2, True)', [[[0.75, 2.25]]]),
    ('F.max_pool1d(lines(4), 4, 3, 2, 1, True, True)', [[[[2.0, 4.0]]], [[[1, 3]]]]),
    ('F.avg_pool2d(lines(4)[:, None], (1, 4), (1, 3), (0, 2), True, False)', [[[[1.5, 3.0]]]]),
    ('F.max_pool2d(lines(4)[..., None], (4, 1), (3, 1), (2, 0), 1, True)', [[[[2.0], [4.0]]]]),
    ('F.max_pool3d(lines(4)[:, None, None], (1, 1, 4), (1, 1, 3), (0, 0, 2), 1, True)', [[[[[2.0, 4.0]]]]]),
    ('F.lp_pool1d(lines(5) - 3, 2.0, 2)', [[[2.23607, 1.0]]]),
    ('F.lp_pool2d((lines(5) - 3)[:, None], 2.0, (1, 3), (1, 2), True)', [[[[2.23607, 2.23607]]]]),
    ('F.lp_pool3d((lines(4) - 3)[:, None, None], 2.0, (1, 1, 2))', [[[[[2.23607, 1.0]]]]]),
    ('F.lp_pool1d(lines(5) - 3, math.inf, 2)', [[[2.0, 1.0]]]),
    ('F.lp_pool2d((lines(5) - 3)[:, None], math.inf, (1, 3), (1, 2), True)', [[[[2.0, 2.0]]]]),
    ('F.lp_pool3d((lines(4) - 3)[:, None, None], math.inf, (1, 1, 2))', [[[[[2.0, 1.0]]]]]),
    ('F.lp_pool1d(lines(5) - 3, -math.inf, 2)', [[[1.0, 0.0]]]),
    ('F.lp_pool2d((lines(5) - 3)[:, None], -math.inf, (1, 3), (1, 2), True)', [[[[0.0, 0.0]]]]),
    ('F.lp_pool3d((lines(4) - 3)[:, None, None], -math.inf, (1, 1, 2))', [[[[[1.0, 0.0]]]]]),
    ('F.lp_pool1d(lines(5) - 3, 0, 2)', ValueError),
    ('F.lp_pool2d((lines(5) - 3)[:, None], 0, (1, 3), (1, 2), True)', ValueError),
    ('F.lp_pool3d((lines(4) - 3)[:, None, None], 0, (1, 1, 2))', ValueError),
    ('F.lp_pool1d(lines(2), 2.0, 3, 2, True)', [[[2.73861]]]),
    ('F.lp_pool1d(lines(2), math.inf, 3, 2, True)', [[[2.0]]]),
    ('nn.LPPool2d(math.inf, (1, 2))((lines(4) - 3)[:, None])', [[[[2.0, 1.0]]]]),
    ('F.avg_pool2d(lines(3)[:, None], (1, 4))', RuntimeError),
    ('F.max_pool2d(lines(3)[:, None], (1, 4))', RuntimeError),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", POOLS)
def test_pools(torch, code, expected):
    check_row(torch, POOLS_NAMES, code, expected)


GAINS_NAMES = ""

GAINS = [
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('linear'))", [1, 'int']),
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('conv1d'))", [1, 'int']),
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('conv_transpose3d'))", [1, 'int']),
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('sigmoid'))", [1, 'int']),
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('tanh'))", [1.66667, 'float']),
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('relu'))", [1.41421, 'float']),
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('selu'))", [0.75, 'float']),
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('leaky_relu'))", [1.41414, 'float']),
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('convx'))", ValueError),
    ("(lambda g: (g, type(g).__name__))(nn.init.calculate_gain('elu'))", ValueError),
    ('nn.init.calculate_gain("leaky_relu", 0.2)', 1.38675),
    ('nn.init.calculate_gain("leaky_relu", 3)', 0.447214),
    ('nn.init.calculate_gain("leaky_relu", True)', ValueError),
    ('nn.init.calculate_gain("leaky_relu", "x")', ValueError),
    ('nn.init.calculate_gain("leaky_relu", None)', 1.41414),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", GAINS)
def test_gains(torch, code, expected):
    check_row(torch, GAINS_NAMES, code, expected)


def test_deprecated_flags_warn(torch):
    one = torch.ones(2)
    for call in (lambda: torch.nn.functional.l1_loss(one, one, False), lambda: torch.nn.MSELoss(reduce=False)):
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
            call()
    with pytest.warns(UserWarning, match="different to the input size"):
        torch.nn.functional.mse_loss(one, one[:1])
    with pytest.warns(UserWarning, match="Implicit dimension choice"):
        torch.nn.functional.softmax(one)


@pytest.mark.usefixtures("device")
def test_gradients_of_windows_beyond_the_input(torch):
    x = torch.tensor([[[[1.0, 3.0]]]], requires_grad=True)
    torch.nn.functional.avg_pool2d(x, (1, 3), (1, 2), 0, True).sum().backward()
    assert x.grad.tolist() == [[[[0.5, 0.5]]]]
    x.grad = None
    torch.nn.functional.max_pool2d(x, (1, 3), (1, 2), 0, 1, True).sum().backward()
    assert x.grad.tolist() == [[[[0, 1]]]]


def test_layers_are_registered_in_pytorchs_order(torch):
    layer = torch.nn.TransformerDecoderLayer(4, 2)
    assert list(layer._modules) == [
        "self_attn", "multihead_attn", "linear1", "dropout", "linear2", "norm1", "norm2", "norm3", "dropout1", "dropout2",
        "dropout3",
    ]  # fmt: skip


def test_is_causal_requires_a_mask(torch):
    x, layer = torch.ones(2, 1, 4), torch.nn.TransformerEncoderLayer(4, 2, dropout=0.0)
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        layer(x, is_causal=True)
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        torch.nn.TransformerEncoder(layer, 1)(x, is_causal=True)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(2)
    assert torch.equal(layer(x, mask, is_causal=True), layer(x, mask))
