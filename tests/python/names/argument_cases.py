"""Arguments at their defaults, unexpected arguments, and invalid parameters of distributions."""

import warnings

from .rows import values_of


def operands(torch):
    """Named tensors for the rows."""
    x = torch.arange(12.0).reshape(3, 4) / 4 - 1
    return {
        "x": x, "y": torch.cos(x), "t": torch.tensor([1.0, -1.0, 1.0]), "leaf": torch.ones(1, 3, requires_grad=True),
        "logs": torch.log_softmax(torch.sin(torch.arange(24.0)).reshape(2, 3, 4), 2), "D": torch.distributions,
        "v": torch.tensor([-1000.5, -1.0, 0.5, 2.0]), "F": torch.nn.functional, "check": torch.testing.FileCheck,
    }  # fmt: skip


ROWS = """
torch.testing.FileCheck is torch.FileCheck
check().check("b").check("c").run("a b\\nc")
check().check("c").check("b").run("a b\\nc")
check().check_not("d").check("b").check_not("a").run("a b\\nc")
check().check_not("a").check("b").run("a b\\nc")
check().check("a").check_not("b").check("c").run("a b\\nc")
check().check("b").check_not("c").run("a b\\nc")
check().check("a").check_same("b").check_next("c").run("a b\\nc")
check().check("a").check_same("c").run("a b\\nc")
check().check("a").check_next("b").run("a b\\nc")
check().check("a").check_next("d").run("a b\\nc\\nd")
check().check_dag("c").check_dag("a").check("d").run("a b\\nc d")
check().check_dag("c").check_dag("a").check("b").run("a b\\nc")
check().check_count("a", 2).check("b").run("a a a b")
check().check_count("a", 2, exactly=True).check("b").run("a a a b")
check().check_count("a", 3, exactly=True).run("a a a b")
check().check_count("a", 3).run("a a b")
check().check_regex("a+b").check("c").run("x aaab c")
check().check_regex("a+c").run("x aaab c")
check().run("a")
torch.kl_div(x, y)
torch.kl_div(x, y, 1)
torch.ops.aten.kl_div(x, y)
torch.ops.aten.kl_div(x, y, 0)
torch.triplet_margin_loss(x, y, x.flip(0))
torch.triplet_margin_loss(x, y, x.flip(0), reduction=1)
torch.ops.aten.triplet_margin_loss(x, y, x.flip(0))
torch.hinge_embedding_loss(y, x.sign())
torch.margin_ranking_loss(x[:, 0], y[:, 0], t)
torch.cosine_embedding_loss(x, y, t)
torch.binary_cross_entropy_with_logits(x, y.abs())
torch.ctc_loss(logs, torch.tensor([[1, 2], [3, 1], [2, 2]]), [2, 2, 2], [1, 2, 1])
torch.dropout(x, 2.0, False)
torch.feature_dropout(x, -1.0, True)
F.dropout(x, 2.0)
torch.unique(x, dim=(0, 1))
torch.unique_consecutive(x, dim=(0, 1))
leaf.unsqueeze_((0, 1))
leaf.unsqueeze_(7)
leaf.transpose_(0, 1)
x.clone().map_(2.0, max)
x.renorm(torch.ones(2, 2), 0, 1.0)
F.conv1d(x, None, padding="same")
F.embedding(torch.tensor([0]), None)
F.bilinear(x, y, None)
F.pad(x, "ab")
F.pairwise_distance(x, y, p="a")
F.adaptive_max_pool2d_with_indices(x[None], (None, 2), False)
F.adaptive_max_pool2d_with_indices(x[None], 2, return_indices=True)
F.max_unpool1d(x, x.long() * 0, 2, output_size=(3, 8, 1, 1))
F.max_unpool1d(x[:, :2], torch.tensor([[0, 2], [1, 3], [0, 3]]), 2, output_size=(3, 3, 5))
F.max_unpool1d(x[:, :2], torch.tensor([[0, 2], [1, 3], [0, 3]]), 2, output_size=(7,))
F.max_unpool1d(x[:, :2], torch.tensor([[0, 2], [1, 3], [0, 3]]), (2, 2))
torch.nn.MaxUnpool2d(2, padding="same")
torch.nn.AvgPool1d(2, padding="same")
torch.nn.ConvTranspose1d(1, 1, 1, padding="same")
torch.nn.ConvTranspose1d(1, 1, 1, padding="same")(torch.ones(1, 1, 4))
torch.nn.RNNCell(1, 2, bias=None)
torch.nn.GRUCell(1, 2, bias=False)
torch.linalg.lu(torch.ones(0, 3, 5), pivot=False)[0].shape
torch.optim.lr_scheduler.SequentialLR(None, [torch.optim.lr_scheduler.ConstantLR(torch.optim.SGD([leaf], 0.1))], [])
str(torch.tensor([float("inf"), 4.0, float("-inf")]))
str(torch.tensor([0.0, float("nan")]))
str(torch.tensor([[0.0, 12.5], [float("nan"), 1.0]]))
D.NegativeBinomial(torch.tensor([0.0, 2.0]), torch.tensor(0.5), validate_args=False).log_prob(torch.tensor([0.0, 1.0]))
D.NegativeBinomial(torch.tensor(-1.0), torch.tensor(0.25), validate_args=False).log_prob(torch.tensor([0.0, 1.0, 2.0]))
D.Weibull(torch.tensor(2.25), torch.tensor(2.0), validate_args=False).log_prob(v)
D.Weibull(torch.tensor(-2.25), torch.tensor(2.0), validate_args=False).log_prob(v)
D.Weibull(torch.tensor(-2.25), torch.tensor(2.0), validate_args=False).cdf(v)
D.Weibull(torch.tensor(-2.25), torch.tensor(2.0), validate_args=False).icdf(torch.tensor(0.3))
D.Pareto(torch.tensor(-0.25), torch.tensor(2.0), validate_args=False).log_prob(v)
D.Pareto(torch.tensor(-0.25), torch.tensor(2.0), validate_args=False).cdf(v)
D.Pareto(torch.tensor(-0.25), torch.tensor(2.0), validate_args=False).icdf(torch.tensor(0.3))
D.Gumbel(torch.tensor(0.25), torch.tensor(-2.0), validate_args=False).cdf(v)
D.Gumbel(torch.tensor(0.25), torch.tensor(-2.0), validate_args=False).icdf(torch.tensor(0.3))
D.Binomial(torch.tensor(2.5), torch.tensor(0.25), validate_args=False).entropy()
D.Categorical(torch.tensor([0.0, 1.0])).expand((2,)).probs
[d.logits.shape for d in [D.Categorical(torch.tensor([0.0, 1.0]))]], D.Categorical(logits=t).expand((2,)).sample().shape
[(d.logits.shape, d.expand((2,)).mean) for d in [D.Multinomial(6, torch.tensor([0.0, 1.0]))]]
D.OneHotCategorical(torch.tensor([0.0, 1.0])).expand((2,)).probs
D.OneHotCategorical(torch.tensor([0.0, 1.0])).expand((2,)).log_prob(torch.tensor([0.0, 1.0]))
"""


def case_arguments(torch):
    """Values, or the errors' types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return values_of(torch, ROWS, **operands(torch))
