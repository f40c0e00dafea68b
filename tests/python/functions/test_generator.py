"""Random numbers from a Generator, and in-place draws from further distributions."""

import numpy as np
import pytest
import scipy.stats as stats


def test_generator_is_independent_of_the_session(torch):
    g = torch.Generator().manual_seed(7)
    first, second = torch.rand(4, generator=g).tolist(), torch.rand(4, generator=g).tolist()
    assert first != second
    torch.manual_seed(3)
    alone = torch.rand(4).tolist()
    torch.manual_seed(3)
    g.manual_seed(7)
    assert torch.rand(4, generator=g).tolist() == first
    assert torch.rand(4).tolist() == alone
    state = g.get_state()
    drawn = torch.randperm(10, generator=g).tolist()
    g.set_state(state)
    assert torch.randperm(10, generator=g).tolist() == drawn and sorted(drawn) == list(range(10))
    assert g.initial_seed() == 7 and g.device.type == "cpu"


def test_generator_with_the_sessions_seed_draws_equal_numbers(torch):
    torch.manual_seed(11)
    assert torch.randn(5).tolist() == torch.randn(5, generator=torch.Generator().manual_seed(11)).tolist()
    x, y = torch.empty(3), torch.empty(3)
    g = torch.Generator()
    x.uniform_(generator=g.manual_seed(1))
    y.uniform_(generator=g.manual_seed(1))
    assert x.tolist() == y.tolist()


@pytest.mark.parametrize(
    ("method", "args", "reference"),
    [("cauchy_", (1.0, 2.0), stats.cauchy(1, 2)), ("log_normal_", (0.5, 0.3), stats.lognorm(0.3, scale=np.exp(0.5)))],
)
def test_in_place(torch, method, args, reference):
    x = torch.empty(5000)
    assert getattr(x, method)(*args) is x
    assert stats.kstest(x.double().numpy(), reference.cdf).pvalue > 1e-4


@pytest.mark.parametrize("method", ["uniform_", "random_"])
def test_the_keyword_from(torch, method):
    x = getattr(torch.zeros(20), method)(**{"from": 2, "to": 3})
    assert 2 <= x.min() and x.max() < 3


def test_geometric(torch):
    x = torch.empty(8000).geometric_(0.3).numpy()
    assert x.min() == 1 and np.all(x == np.round(x))
    np.testing.assert_allclose([x.mean(), x.var()], [1 / 0.3, 0.7 / 0.09], rtol=0.1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_draws_have_the_tails_of_their_distribution(torch, dtype):
    x = torch.empty(200000, dtype=getattr(torch, dtype)).geometric_(0.5).float().numpy()
    assert x.min() == 1 and x.max() >= 13
    np.testing.assert_allclose(x.mean(), 2, rtol=0.01)
    y = torch.empty(200000, dtype=getattr(torch, dtype)).cauchy_().float().numpy()
    assert y.min() < -3000 and y.max() > 3000
    np.testing.assert_allclose(np.quantile(y, [0.25, 0.5, 0.75]), [-1, 0, 1], atol=0.03)


@pytest.mark.parametrize(
    "dtype, largest",
    [("bool", 1), ("uint8", 255), ("int8", 127), ("int16", 2**15 - 1), ("int32", 2**31 - 1), ("int64", 2**63 - 1),
     ("uint16", 2**16 - 1), ("uint32", 2**32 - 1), ("bfloat16", 2**8), ("float16", 2**11), ("float32", 2**24), ("float64", 2**53)],
)  # fmt: skip
def test_random_without_an_upper_bound(torch, dtype, largest):
    x = torch.empty(20_000, dtype=getattr(torch, dtype))
    assert set(x.random_(largest, None).tolist()) == {largest}
    low = largest // 2
    values = x.random_(low, to=None).tolist()
    assert low <= min(values) and max(values) <= largest
    assert max(values) - min(values) >= 0.98 * (largest - low)


def test_random_from_the_smallest_number(torch):
    x = torch.empty(20_000, dtype=torch.int64).random_(-(2**63), None)
    assert x.min().item() < -0.99 * 2**63 and x.max().item() > 0.99 * 2**63
    with pytest.raises(NotImplementedError, match="uint64 expects an upper bound after the lower bound 3, got None"):
        torch.empty(3, dtype=torch.uint64).random_(3, None)


def test_random_with_bounds(torch):
    x = torch.empty(3, dtype=torch.int8)
    assert x.random_(5, 6).tolist() == [5, 5, 5]
    assert x.random_(1).tolist() == [0, 0, 0]
    for dtype in (torch.int8, torch.float16, torch.float32):  # the call raises, not the first read
        for bounds in ((0,), (-1,), (5, 5), (-40_000, -40_000), (0, -(2**63))):
            with pytest.raises(RuntimeError, match="expects 'from' to be less than 'to'"):
                torch.empty(3, dtype=dtype).random_(*bounds)
    assert torch.empty(3, dtype=torch.uint8).random_(256).max().item() <= 255
    with pytest.raises(RuntimeError, match="to - 1 is out of bounds for Byte, got 256"):
        torch.empty(3, dtype=torch.uint8).random_(257)


def test_binomial_counts(torch):
    counts = torch.tensor([0.0, 10.0, 1000.0]).expand(3000, 3).contiguous()
    drawn = torch.binomial(counts, torch.tensor([0.5, 0.0, 0.9])).numpy()
    assert drawn[:, :2].max() == 0
    np.testing.assert_allclose(drawn[:, 2].mean(), 900, atol=1)
    np.testing.assert_allclose(drawn[:, 2].var(), 90, rtol=0.15)


def test_splits_do_not_change_draws(torch):
    torch.manual_seed(5)
    whole = torch.poisson(torch.full((4000,), 3.0)).tolist()
    torch.manual_seed(5)
    assert torch.poisson(torch.full((40, 100), 3.0)).reshape(-1).tolist() == whole


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float64", "complex64"])
def test_bernoulli_writes_any_dtype(torch, dtype):
    out = torch.full((2,), 2).to(getattr(torch, dtype))
    assert torch.bernoulli(torch.tensor([0.0, 1.0, 1.0]), out=out) is out
    assert out.dtype is getattr(torch, dtype) and out.tolist() == [0, 1, 1]
