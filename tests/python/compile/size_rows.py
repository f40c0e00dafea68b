# ruff: noqa: E501
"""Functions with a sequence of arguments of different sizes, and the numbers of graphs that PyTorch has made after each call.

tests/conformance/compile_sizes.py records the numbers of sizes.json with PyTorch.
"""

from __future__ import annotations

import math

import teletensor as torch
from teletensor.nn import functional as F

ROWS: dict[str, tuple] = {}  # (function, calls, options): a call is a tuple of sizes, which are tensors, and of other values
ONE = [(2, 3), (3, 3), (4, 3), (7, 3)]
TWO = [(2, 3), (4, 5), (6, 7), (3, 9)]


def row(*calls, **options):
    def add(function):
        ROWS[function.__name__] = (function, [c if isinstance(c[0], (tuple, list)) else (c,) for c in calls], options)
        return function

    return add


def arguments(call):
    """Tensors of ones to be filled by the caller, and other values."""
    return [torch.arange(math.prod(a)).reshape(a).float() / 7 + 0.5 if isinstance(a, tuple) else a[0] for a in call]


@row(*ONE)
def pointwise(x):
    return x.relu() * 2


@row(*TWO)
def pointwise_two(x):
    return x.relu() * 2


@row(*ONE, dynamic=True)
def always_dynamic(x):
    return x.relu() * 2


@row(*TWO, dynamic=False)
def never_dynamic(x):
    return x.relu() * 2


@row((1, 3), (2, 3), (3, 3), (0, 3), (1, 3), (5, 3))
def zero_and_one(x):
    return x + 1


@row((2, 3), (3, 3), (1, 3), (4, 3), (0, 3), dynamic=True)
def zero_and_one_dynamic(x):
    return x + 1


@row(*TWO)
def view_product(x):
    b, n = x.shape
    return x.view(b * n) + b


@row(*TWO)
def size_method(x):
    return x.view(x.size(0) * x.size(-1))


@row(*TWO)
def numel(x):
    return x.reshape(x.numel())


@row(*TWO)
def length(x):
    return x * len(x)


@row((2, 3), (3, 3), (12, 3), (20, 3), (5, 3))
def branch_on_size(x):
    if x.shape[0] > 10:
        return x + 1
    return x - 1


@row((2, 3), (3, 3), (4, 3), (6, 3), (5, 3))
def branch_on_parity(x):
    return x + 1 if x.shape[0] % 2 == 0 else x - 1


@row((2, 3), (3, 3), (4, 3))
def loop_over_size(x):
    total = x[0]
    for i in range(1, x.shape[0]):
        total = total + x[i]
    return total


@row((2, 3), (3, 3), (4, 3))
def loop_over_tensor(x):
    return sum(row * 2 for row in x)


@row(((2, 3), (3, 4)), ((5, 3), (3, 4)), ((6, 3), (3, 4)))
def matmul(x, w):
    return x @ w


@row(((2, 3), (3, 4)), ((5, 6), (6, 4)), ((6, 7), (7, 4)))
def matmul_inner(x, w):
    return x @ w


@row(((2, 3), (2, 3)), ((5, 3), (5, 3)), ((6, 3), (6, 3)))
def add_two(x, y):
    return x + y


@row(((2, 3), (2, 5)), ((5, 3), (5, 5)), ((6, 3), (6, 7)), ((7, 8), (7, 9)))
def cat_columns(x, y):
    return torch.cat([x, y], 1)


@row(((2, 3), (4, 3)), ((5, 3), (4, 3)), ((6, 3), (7, 3)))
def cat_rows(x, y):
    z = torch.cat([x, y])
    return z.sum() / z.shape[0]


@row(((2, 3), (3,)), ((5, 3), (3,)), ((5, 4), (4,)), ((6, 5), (5,)))
def broadcast(x, y):
    return x * y


@row(*TWO)
def returns_sizes(x):
    return x + 1, x.shape[0] * 2, x.shape


@row(*TWO)
def new_tensor_of_size(x):
    return torch.zeros(x.shape[0], 4) + torch.arange(x.shape[0]).unsqueeze(1)


@row(*TWO)
def zeros_like_shape(x):
    return torch.zeros(x.shape) + x.new_ones(x.shape[0], x.shape[1])


@row(*TWO)
def slices(x):
    return x[: x.shape[0] - 1, 1:]


@row(*TWO)
def half(x):
    return x[: x.shape[0] // 2]


@row(*TWO)
def flatten(x):
    return torch.flatten(x).sum()


@row((2, 4), (3, 4), (4, 6), (5, 8))
def chunk(x):
    a, b = x.chunk(2, -1)
    return a * b


@row((2, 4), (3, 4), (4, 4))
def unbind_columns(x):
    a, b, c, d = x.unbind(1)
    return a + b + c + d


@row(*TWO)
def expand(x):
    return x.unsqueeze(0).expand(3, x.shape[0], x.shape[1])


@row(*TWO)
def transpose(x):
    return x.t().reshape(-1)


@row(*TWO)
def mean_by_hand(x):
    return x.sum(0) / x.shape[0]


@row(*TWO)
def softmax(x):
    return F.softmax(x, dim=-1)


@row(*TWO)
def causal_mask(x):
    n = x.shape[1]
    mask = torch.tril(torch.ones(n, n))
    return x @ mask


@row((2, 3, 8), (4, 3, 8), (4, 5, 8), (2, 7, 8))
def heads(x):
    b, t, c = x.shape
    q = x.view(b, t, 2, c // 2).transpose(1, 2)
    w = (q @ q.transpose(-2, -1)).softmax(-1)
    return (w @ q).transpose(1, 2).contiguous().view(b, t, c)


@row((2, 3), (3, 3), (4, 3), (600, 3), (5, 3))
def assert_size(x):
    assert x.shape[0] <= 512 or x.shape[0] == 600, "too long"
    return x + 1


@row((2, 3), (3, 3), (4, 3))
def torch_check(x):
    torch._check(x.shape[0] < 100)
    return x + 1


@row((2, 3), (3, 3), (4, 3), (5, 3))
def minimum(x):
    n = min(x.shape[0], 512)
    return x[:n] * n


@row((2, 3), (3, 3), (4, 3), (5, 3))
def sizes_in_containers(x):
    sizes = {"rows": x.shape[0], "columns": [x.shape[1], x.shape[0] + 1]}
    return x * sizes["rows"] + sizes["columns"][1]


def _helper(x, n):
    return x.reshape(n, -1)


@row(*TWO)
def through_a_call(x):
    return _helper(x, x.shape[0])


@row(((2, 3), [4]), ((2, 3), [5]), ((2, 3), [6]), ((2, 3), [1]), ((2, 3), [7]))
def int_argument(x, k):
    return x * k


@row(((2, 3), [4]), ((2, 3), [5]), ((2, 3), [6]), dynamic=True)
def int_argument_dynamic(x, k):
    return x * k


@row(((2, 3), [4]), ((2, 3), [5]), ((2, 3), [6]), dynamic=False)
def int_argument_static(x, k):
    return x * k


@row(((2, 3), [4]), ((2, 3), [5]), ((2, 3), [6]), ((2, 3), [30]))
def int_in_branch(x, k):
    return x + 1 if k < 10 else x - 1


@row(((2, 3), [2]), ((2, 3), [3]), ((2, 3), [4]))
def int_in_range(x, k):
    for _ in range(k):
        x = x + 1
    return x


@row(((2, 3), [True]), ((2, 3), [False]), ((2, 3), [True]))
def bool_argument(x, k):
    return x + 1 if k else x - 1


@row(((2, 3), [[4, 5]]), ((2, 3), [[5, 6]]), ((2, 3), [[6, 7]]))
def ints_in_list(x, k):
    return x * k[0] + k[1]


@row(((2, 3), [3]), ((2, 3), [4]), ((2, 3), [5]))
def int_as_size(x, n):
    return torch.ones(n, 2) * x.sum()


@row((2, 3), (4, 3, 2), (5, 3), (6, 3))
def other_rank(x):
    return x * 2


@row((2, 3), (3, 3), (4, 3))
def in_place(x):
    y = x.clone()
    y[: x.shape[0] - 1] += 1
    y.mul_(y.shape[0])
    return y


@row((4, 6), (8, 6), (6, 6), (10, 6))
def square_coincidence(x):
    return x.sum(1), x.sum(0)


@row((2, 3), (3, 3), (4, 3))
def graph_break_between(x):
    n = x.shape[0]
    y = x + n
    torch._dynamo.graph_break()
    return y * n


@row((2, 3), (3, 3), (4, 3))
def equality_of_sizes(x):
    return x + 1 if x.shape[0] == x.shape[1] else x - 1


@row((2, 8), (3, 8), (4, 8))
def layer_norm(x):
    return F.layer_norm(x, (x.shape[-1],))


@row((2, 3, 8, 8), (4, 3, 8, 8), (4, 3, 12, 12), (2, 3, 16, 10))
def pooling(x):
    y = F.avg_pool2d(x, 2)
    return y.flatten(1).mean(1)


@row((2, 3, 8, 8), (4, 3, 8, 8), (4, 3, 12, 12), (2, 3, 16, 10))
def interpolate(x):
    return F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] * 2), mode="nearest")


@row((2, 3), (3, 3), (4, 3))
def string_of_size(x):
    name = f"{x.shape[0]}"
    return x * len(name)


@row((2, 3), (3, 3), (4, 3), (5, 3))
def closure_of_size(x):
    n = x.shape[0]

    def inner(y):
        return y * n

    return inner(x)


@row((2, 6), (3, 6), (4, 6))
def split_sizes(x):
    return [part.sum() for part in x.split([2, 4], 1)]


@row((2, 3), (3, 3), (4, 3))
def padding(x):
    return F.pad(x, (1, x.shape[0]))


@row((2, 3), (3, 4), (4, 5))
def stack_and_index(x):
    y = torch.stack([x, x + 1])
    return y[1, x.shape[0] - 1]


@row((2, 3), (3, 3), (4, 3))
def negative_and_divmod(x):
    n = x.shape[0]
    q, r = divmod(n, 2)
    return x * -n + q + r


@row((8, 3), (6, 3), (4, 3))
def sum_of_sizes(x):
    return x + sum(x.shape) + math.prod(x.shape)


@row((2, 3), (3, 3), (4, 3))
def no_grad_block(x):
    with torch.no_grad():
        y = x.view(-1)
    return y * x.shape[0]


@row(((2, 3), [0.5]), ((2, 3), [0.6]), ((2, 3), [0.7]), ((4, 3), [1.0]))
def float_argument(x, s):
    return x * s + 1


@row(((2, 3), [0.5]), ((2, 3), [0.6]), ((2, 3), [0.7]), dynamic=True)
def float_argument_dynamic(x, s):
    return x / s


@row(((2, 3), [0.5]), ((2, 3), [0.6]), ((2, 3), [7.0]))
def float_in_branch(x, s):
    return x + s if s < 1 else x - s
