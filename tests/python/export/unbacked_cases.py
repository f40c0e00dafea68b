"""Functions whose graphs contain numbers that depend on values of tensors: torch, tensors -> result."""

from __future__ import annotations

import contextlib
import math

X, Y = [1.0, -1.0, 3.0], [2.0, 2.0, 2.0]
M = [[1.0, -1.0], [2.0, 3.0], [-1.0, -1.0]]


def _sized(torch, n):
    k = n.item()
    torch._check_is_size(k)
    return k


def narrow(torch, n, x):
    k = _sized(torch, n)
    torch._check(k <= x.shape[0])
    return x.narrow(0, 0, k) * 2


def sliced(torch, n, x):
    k = n.item()
    torch._check(k >= 0)
    torch._check(k <= x.shape[0], lambda: f"{k} is too large")
    return x[:k] * 2, x[k:], k


def mask_set(torch, x):
    y = x.clone()
    y[y > 0] = 7.0
    y[y < 0] += 1
    return y


def filled(torch, n, x):
    y = x.clone()
    y[n.item()] = 9
    y[: n.item()] = n.item()
    return y


def checked_masks(torch, p, q):
    a, b = p[p > 0], q[q > 0]
    torch._check(a.shape[0] == b.shape[0])
    return a + b


def padded(torch, x):
    v = x[x > 0]
    y = torch.zeros(5)
    y[: v.shape[0]] = v
    return y, torch.nn.functional.pad(v, (0, 3 - v.shape[0]))


def detections(torch, boxes, scores):
    keep = scores > 0.15
    b = boxes[keep][scores[keep].argsort(descending=True)]
    area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    size = (torch.minimum(b[:, None, 2:], b[None, :, 2:]) - torch.maximum(b[:, None, :2], b[None, :, :2])).clamp(min=0)
    overlap = size[..., 0] * size[..., 1]
    return b[~(overlap / (area[:, None] + area[None] - overlap) > 0.5).triu(1).any(0)]


def ranged(torch, n, x):
    k = n.item()
    torch._check(k >= 2)
    torch._check(k <= 5)
    return torch.full((k,), 2.0) + k if k > 1 else x


def one_value(torch, n, x):
    k = n.item()
    torch._check(k == 4)
    return torch.zeros(k) + x.sum()


def split_by(torch, s, x):
    a, b = s.tolist()
    torch._check_is_size(a)
    torch._check_is_size(b)
    torch._check(a + b == 3)
    return x.split([a, b])


def divided(torch, n, x):
    k = n.item()
    torch._check(k > 0)
    torch._check(x.numel() % k == 0)
    return x.view(k, -1).sum(1)


def lengths(torch, n):
    m = n.max().item()
    torch._check(m >= 1)
    return torch.arange(m)[None, :] < n[:, None]


def written_between(torch, x):
    y = x.clone()
    mask = y > 0
    first = y[mask].sum()
    y.add_(-2)
    mask.logical_not_()
    return first, y[mask], y[mask].shape[0] * 2


def groups(torch, x):
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True)
    sums = torch.zeros(values.shape[0]).index_add(0, inverse, x.float())
    return values, sums / counts, values.shape[0], values[inverse]


def functions(torch, n, x):
    k = n.item()
    return x * torch.sym_max(k, 4), x * torch.sym_min(k, 4), x * torch.sym_float(k), x * (k / 2), x * k**2, x * abs(k), k // 2, -k % 3


def tensors(torch, n, x):
    k = n.item()
    return torch.tensor(k) + x, torch.tensor([k, 2, k + 1]), torch.full((2,), k), torch.as_tensor(k), x.roll(k)


def floats(torch, x):
    mean = x.mean().item()
    return x * mean, x / (mean * 2 + 1), x.clamp(max=mean), torch.full((2,), mean), mean, x.long() * mean


def empty_checks(torch, n, x):
    torch._check((x == x).all().item())
    return torch.arange(n.item()), torch.arange(n.item(), 9), torch.linspace(0, n.item(), 4), x.repeat(n.item())


# By name: the function, and the arguments of the example and of other calls.
def nonzero_of_selected(torch, x):
    y = x[x > -2]
    return (y > 0).nonzero().squeeze(1), (y[:, None] > 0).nonzero()


CASES = {
    "item_arithmetic": (lambda torch, n, x: x * n.item() + 1, (3, X), [(5, X), (0, Y), (-2, X)]),
    "float_item": (lambda torch, s, x: x * s.item(), (2.5, X), [(-1.5, X), (0.0, Y)]),
    "zeros": (lambda torch, n: torch.zeros(_sized(torch, n)) + 1, (3,), [(5,), (0,), (1,)]),
    "zeros_without_check": (lambda torch, n: torch.ones(n.item(), 2).sum(0) / n.item(), (3,), [(5,), (1,)]),
    "arange": (lambda torch, n: torch.arange(_sized(torch, n)) * 2, (3,), [(6,), (0,)]),
    "narrow": (narrow, (2, X), [(3, X), (0, X), (1, Y)]),
    "sliced": (sliced, (2, X), [(3, X), (0, X), (1, Y)]),
    "slice_without_check": (lambda torch, n, x: (x[: n.item()] * 2, x[-n.item() :]), (2, X), [(3, X), (0, X), (9, X), (-1, X)]),
    "expand": (lambda torch, n, x: x[None].expand(_sized(torch, n), 3) * 2, (2, X), [(4, X), (0, X), (1, Y)]),
    "select": (lambda torch, n, x: x[n.item()] * 2, (1, X), [(2, X), (0, Y), (-1, X)]),
    "filled": (filled, (1, X), [(2, X), (0, Y)]),
    "nonzero_of_selected": (nonzero_of_selected, (X,), [(Y,), ([-3.0, -4.0, -5.0],), ([-1.0, -1.0, 1.0],)]),
    "nonzero": (lambda torch, x: (x.nonzero() + 1, x[(x > 0).nonzero().squeeze(1)] * 10), (X,), [(Y,), ([0.0, 0.0, 5.0],)]),
    "nonzero_tuple": (lambda torch, m: m[(m > 0).nonzero(as_tuple=True)], (M,), [([[1.0, 1.0]] * 3,), ([[0.0, -1.0]] * 3,)]),
    "masked_mean": (lambda torch, x: torch.masked_select(x, x > 0).mean(), (X,), [(Y,), ([-1.0, 5.0, -1.0],)]),
    "mask_set": (mask_set, (X,), [(Y,), ([-1.0, -1.0, -3.0],)]),
    "mask_sum": (lambda torch, x: (x[x > 0].sum(), x[x > 0] * x[x > 0].shape[0]), (X,), [(Y,), ([-1.0, -1.0, -3.0],)]),
    "mask_numel": (lambda torch, x: x * x[x > 0].size()[0] + x[x > 0].numel(), (X,), [(Y,), ([-1.0, -1.0, -3.0],)]),
    "loss_of_mask": (lambda torch, p, q: ((p[p > 0] - q[p > 0]) ** 2).mean(), (X, Y), [(Y, X), ([-1.0, 2.0, -3.0], Y)]),
    "checked_masks": (checked_masks, (X, [2.0, -2.0, 2.0]), [(Y, Y), ([-1.0, 1.0, -1.0], [3.0, -3.0, -3.0])]),
    "two_masks": (lambda torch, p, q: p[p > 0] + q[q > 0], (X, [2.0, -2.0, 2.0]), [(Y, Y), ([-1.0, 1.0, -1.0], [3.0, -3.0, -3.0])]),
    "rows": (lambda torch, m: (m[m[:, 0] > 0].mean(0), m[m[:, 0] > 0].flatten()), (M,),
             [([[1.0, 2.0]] * 3,), ([[-1.0, 2.0], M[0], M[2]],)]),
    "product_of_rows": (lambda torch, m: m[m[:, 0] > 0] @ m.t(), (M,), [([[1.0, 2.0]] * 3,), ([[-1.0, 2.0]] * 3,)]),
    "joined": (lambda torch, x: torch.cat([x[x > 0], x[x <= 0], x])[x[x > 0].shape[0] :] + 1, (X,), [(Y,), ([-1.0, -1.0, -3.0],)]),
    "padded": (padded, (X,), [(Y,), ([-1.0, -1.0, -3.0],)]),
    "like_mask": (lambda torch, x: (torch.ones_like(x[x > 0]), torch.zeros(x[x > 0].shape), x.new_full((x[x > 0].size(0), 2), 3.0)),
                  (X,), [(Y,), ([-1.0, -1.0, -3.0],)]),
    "written_between": (written_between, (X,), [(Y,), ([-1.0, -1.0, -3.0],)]),
    "where": (lambda torch, x: (x[torch.where(x > 0)[0]], torch.argwhere(x > 0)), (X,), [(Y,), ([-1.0, -1.0, -3.0],)]),
    "unique": (lambda torch, x: torch.unique(x) * 2, ([1, 2, 1],), [([1, 2, 3],), ([5, 5, 5],)]),
    "unique_consecutive": (lambda torch, x: torch.unique_consecutive(x) * 2, ([1, 1, 2],), [([1, 2, 3],), ([5, 5, 5],)]),
    "groups": (groups, ([1, 2, 1],), [([1, 2, 3],), ([5, 5, 5],)]),
    "repeat_interleave": (lambda torch, x, r: x.repeat_interleave(r) + 1, (X, [1, 2, 0]), [(X, [3, 2, 4]), (X, [0, 0, 0])]),
    "repeat_interleave_size": (lambda torch, x, r: x.repeat_interleave(r, output_size=3), (X, [1, 2, 0]), [(X, [0, 2, 1]), (X, [3, 0, 0])]),
    "bincount": (lambda torch, x: torch.bincount(x) * 2, ([0, 1, 1],), [([4, 1, 1],), ([0, 0, 0],)]),
    "bincount_with_least": (lambda torch, x: torch.bincount(x, minlength=3), ([0, 1, 1],), [([4, 1, 1],), ([0, 0, 0],)]),
    "lengths": (lengths, ([2, 1, 3],), [([1, 1, 1],), ([5, 0, 2],)]),
    "detections": (detections, ([[0.0, 0, 2, 2], [0, 0, 2, 2.1], [5, 5, 6, 6]], [0.9, 0.8, 0.7]),
                   [([[0.0, 0, 2, 2], [3, 3, 4, 4], [5, 5, 6, 6]], [0.9, 0.8, 0.7]), ([[0.0, 0, 2, 2]] * 3, [0.1, 0.2, 0.3])]),
    "ranged": (ranged, (4, X), [(2, X), (5, X)]),
    "one_value": (one_value, (4, X), [(4, Y)]),
    "columns": (lambda torch, n, m: sum(v * i for i, v in enumerate(m[: n.item()].unbind(1))), (2, M), [(1, M), (0, M), (9, M)]),
    "split_by": (split_by, ([1, 2], X), [([2, 1], X), ([0, 3], Y)]),
    "divided": (divided, (3, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [(2, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), (6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])]),
    "functions": (functions, (3, X), [(5, X), (-2, Y), (0, X)]),
    "tensors": (tensors, (3, X), [(5, X), (-2, Y), (0, X)]),
    "floats": (floats, (X,), [(Y,), ([-1.0, -1.0, -3.0],)]),
    # Numbers that are equal to others, or constant, for most values.
    "rounded": (lambda torch, n, x: (x + n.item() // 500, x + n.item() % 700, torch.zeros(abs(n.item()) // 600)),
                (3, X), [(5003, X), (-3, Y)]),
    "extrema": (lambda torch, n, x: (x + torch.sym_min(n.item(), 500), x + torch.sym_max(n.item(), 500), x + torch.sym_max(n.item(), -50)),
                (3, X), [(5003, X), (-3, Y), (-99, Y)]),
    "size_of_slice": (lambda torch, n, x: x[: n.item()].sum() / x[: n.item()].shape[0] + x[: n.item()].numel(), (2, X), [(1, X), (9, Y)]),
    "ranges": (empty_checks, (2, X), [(1, X), (4, Y), (0, X)]),
}  # fmt: skip


def loop(torch, n, x):
    k = n.item()
    while k > 0:
        x, k = x + 1, k - 1
    return x


def loop_until(torch, n, x):
    while (x.sum() * n).item() > 0:
        x = x - 1
    return x


def checked_later(torch, n, x):
    y = x + 1 if n.item() > 0 else x
    torch._check(n.item() >= 0)
    return y


def member_of_bools(torch, n, x):
    flag = (x > 5).any().item()
    return x + 1 if flag in (True,) else x


def identity(torch, n, x):
    large = x[x > n].shape[0] > 2
    return x + 1 if large is True else x  # noqa: E712


def caught(torch, n, x):
    try:
        k = int(n.item())
    except Exception:  # noqa: BLE001
        k = 1
    return x * k


def caught_view(torch, n, x):
    k = n.item()
    try:
        return x.view(k, -1).sum(0).sum() * 2
    except RuntimeError:
        return x.sum()


def caught_split(torch, n, x):
    k = n.item()
    with contextlib.suppress(RuntimeError):
        return x.split([k, 1])[0].sum() * 2
    return x.sum()


def caught_index(torch, n, x):
    k = n.item()
    try:
        return x[k] * 2
    except IndexError:
        return x.sum()


def caught_sum(torch, n, x):
    try:
        return x[x > n] + x
    except RuntimeError:
        return x * 2


def caught_square(torch, n, x):
    k = n.item()
    try:
        return torch.arange(16.0).view(k, k).sum(0)
    except RuntimeError:
        return x * 2


def broadcast_select(torch, n, x):
    y = x.masked_select(x.expand(4, 3) > n)
    return y * 2 if y.shape[0] <= x.shape[0] else y * 3


def select_of_one(torch, n, x):
    y = x[:1].masked_select(x > n)
    return y * 2 if y.shape[0] <= 1 else y * 3


def called_as_others(torch, n, x):
    k = n.item()
    for function in (math.isqrt, torch.zeros):
        found = function(k)
        x = x * 2 if isinstance(found, int) and found > 2 else x
    return x


def first_of_text(torch, n, x):
    return x if str(x[x > n].shape) == "torch.Size([2])" else x * 2


# By name: functions that no graph serves, with the arguments of the example.
REFUSED = {
    "branch": (lambda torch, n, x: x + 1 if n.item() > 2 else x, (3, X)),
    "branch_on_float": (lambda torch, n, x: x + 1 if x.sum().item() > 2 else x, (3, X)),
    "branch_on_bool": (lambda torch, n, x: x + 1 if (x > 0).any().item() else x, (3, X)),
    "branch_on_truth": (lambda torch, n, x: x + 1 if n.item() else x, (3, X)),
    "branch_on_count": (lambda torch, n, x: x + 1 if x[x > n].shape[0] == 0 else x, (3, X)),
    "branch_on_numel": (lambda torch, n, x: x + 1 if x[x > n].numel() > 0 else x, (3, X)),
    "branch_on_shape": (lambda torch, n, x: x + 1 if x[x > n].shape == x.shape else x, (3, X)),
    "checked_later": (checked_later, (3, X)),
    "loop": (loop, (3, X)),
    "loop_until": (loop_until, (3, X)),
    "range": (lambda torch, n, x: [x + i for i in range(n.item())][-1], (3, X)),
    "length": (lambda torch, n, x: x * len(x[x > n]), (0, X)),
    "int": (lambda torch, n, x: x * int(n), (3, X)),
    "minimum": (lambda torch, n, x: x * min(x[x > 0].shape[0], 2), (3, X)),
    "text": (lambda torch, n, x: x + len(str(n.item() * 9)), (3, X)),
    "list_item": (lambda torch, n, x: x + [10, 20, 30, 40][n.item()], (3, X)),
    "key": (lambda torch, n, x: x + {3: 1}.get(n.item(), 2), (3, X)),
    "member": (lambda torch, n, x: x + 1 if n.item() in (1, 3) else x, (3, X)),
    "list_length": (lambda torch, n, x: x + sum([n.item() % 5, *[1] * n.item()]), (3, X)),
    "chunk": (lambda torch, n, x: x.chunk(n.item())[0], (2, X)),
    "chunk_of_mask": (lambda torch, n, x: x[x > n].chunk(2)[0], (0, X)),
    "split": (lambda torch, n, x: x.split(n.item())[0], (2, X)),
    "split_of_mask": (lambda torch, n, x: sum(v.sum() for v in x[x > n].split(2)), (0, X)),
    "unbind_of_mask": (lambda torch, n, x: x[x > n].unbind()[0], (0, X)),
    "unbind_of_rounded": (lambda torch, n, x: torch.zeros(n.item() // 500 + 1).unbind(), (3, X)),
    "text_of_rounded": (lambda torch, n, x: x * len("x" * (n.item() // 1000)), (3, X)),
    "text_of_quotient": (lambda torch, n, x: x + float(f"{n.item() / 1000:.0f}"), (3, X)),
    "size_at": (lambda torch, n, x: x + x.expand(2, 3).size(n.item()), (1, X)),
    "round": (lambda torch, n, x: x * round(x.mean().item()), (0, X)),
    "equal_to_true": (lambda torch, n, x: x + 1 if (x > 5).any().item() == True else x, (3, X)),  # noqa: E712
    "in_true": (member_of_bools, (3, X)),
    "not_equal_to_false": (lambda torch, n, x: x + 1 if (n.item() > 2) != False else x, (3, X)),  # noqa: E712
    "product_with_bool": (lambda torch, n, x: x * ((x > 5).any().item() == True), (3, X)),  # noqa: E712
    "identity": (identity, (0, X)),
    "isnan": (lambda torch, n, x: x * 0 if math.isnan(x.sum().item()) else x, (3, X)),
    "not_equal_to_itself": (lambda torch, n, x: x * 0 if (v := x.sum().item()) != v else x, (3, X)),
    "isclose": (lambda torch, n, x: x * 0 if math.isclose(x.sum().item(), 0.0) else x, (3, X)),
    "equal_to_inf": (lambda torch, n, x: x * 0 if x.max().item() == math.inf else x, (3, X)),
    "less_than_inf": (lambda torch, n, x: x * 0 if x.max().item() < math.inf else x, (3, X)),
    "int_less_than_inf": (lambda torch, n, x: x * 0 if n.item() < math.inf else x, (3, X)),
    "sqrt": (lambda torch, n, x: x * 0 if math.sqrt(x.sum().item()) > 1 else x, (3, X)),
    "isqrt": (lambda torch, n, x: x * 0 if math.isqrt(n.item()) > 70 else x, (3, X)),
    "gcd": (lambda torch, n, x: x * 0 if math.gcd(n.item(), 0) > 10000 else x, (3, X)),
    "real": (lambda torch, n, x: x * 0 if n.item().real > 10000 else x, (3, X)),
    "digits": (lambda torch, n, x: x * 0 if len(str(n.item())) > 4 else x, (3, X)),
    "format": (lambda torch, n, x: x * 0 if f"{n.item()}" == "3" else x, (3, X)),
    "percent": (lambda torch, n, x: x * 0 if "%d" % n.item() == "3" else x, (3, X)),  # noqa: UP031
    "text_of_shape": (first_of_text, (0, X)),
    "caught": (caught, (3, X)),
    "caught_view": (caught_view, (2, [1.0] * 10)),
    "caught_split": (caught_split, (2, X)),
    "caught_index": (caught_index, (1, X)),
    "caught_sum": (caught_sum, (0, X)),
    "caught_square": (caught_square, (3, X)),
    "broadcast_select": (broadcast_select, (2, X)),
    "select_of_one": (select_of_one, (2, X)),
    "called_as_others": (called_as_others, (3, X)),
    "repeated_list": (lambda torch, n, x: x * len([0] * n.item()), (3, X)),
    "range_without_operators": (lambda torch, n, x: x * sum(1 for _ in range(n.item())), (3, X)),
    "large_threshold": (lambda torch, n, x: x * 0 if n.item() > 10000 else x, (3, X)),
    "capped_count": (lambda torch, n, x: x * 0 if x[x > n][:300].shape[0] == x[x > n].shape[0] else x, (0, X)),
    "is_same_size": (lambda torch, n, x: x * 0 if x[x > n].is_same_size(x) else x, (0, X)),
    "is_contiguous": (lambda torch, n, x: x * 0 if x[x > n][:, None].expand(-1, 2).t().is_contiguous() else x, (0, X)),
    "stride": (lambda torch, n, x: x * x[x > n].expand(2, -1).contiguous().stride(0), (0, X)),
    "impossible": (lambda torch, n, x: (torch._check(n.item() > 3), torch._check(n.item() < 3), x)[2], (0, X)),
}  # fmt: skip


def above(x):
    return x[x > 0.5]


def first_of_slice(torch, x):
    n = (x > 0.5).sum().item()
    torch._check(n >= 0)
    return x[:n][:300].sum() / x[:n][:300].shape[0]


# Functions with a size that is another number for large inputs: of tensors of one dimension, with values between 0 and 1.
CAPPED = {
    "mask": lambda torch, x: above(x)[:300].sum() / above(x)[:300].shape[0],
    "zeros": lambda torch, x: torch.zeros(above(x)[:300].shape[0]) + 1,
    "nonzero": lambda torch, x: (
        torch.arange((x > 0.5).nonzero()[:256].shape[0]),
        x[(x > 0.5).nonzero().squeeze(1)[:256]],
    ),
    "unique": lambda torch, x: torch.zeros(torch.unique(x)[:256].shape[0]) + torch.unique(x)[:256].shape[0],
    "two_slices": first_of_slice,
    "last": lambda torch, x: above(x)[-300:] * above(x)[-300:].shape[0],
    "sym_min": lambda torch, x: (
        torch.zeros(torch.sym_min(above(x).shape[0], 300)) + torch.sym_max(above(x).shape[0], 300)
    ),
    "rows_of_qr": lambda torch, x: x * torch.linalg.qr(torch.ones(20, 2) * above(x)[:7].shape[0])[0].shape[1],
    "columns_of_qr": lambda torch, x: x.sum() * torch.linalg.qr(x.new_ones(20, above(x).shape[0]))[0].shape[1],
    "diagonal": lambda torch, x: torch.ones(x.new_zeros(above(x).shape[0], 500).diagonal().shape[0]),
    "joined": lambda torch, x: (
        torch.cat([above(x), above(x) * 2])[:500].sum() / torch.cat([above(x), above(x) * 2])[:500].shape[0]
    ),
    "product": lambda torch, x: torch.ones(torch.zeros(above(x).shape[0] * 3)[:700].shape[0]),
    "arange": lambda torch, x: torch.ones(torch.arange(0.0, x.sum().item() + 1)[:20].shape[0]),
    "quotient": lambda torch, x: x.sum() * (above(x).shape[0] // 4000) + above(x).shape[0] % 7000,
    "padded": lambda torch, x: torch.nn.functional.pad(above(x), (0, 500))[:500],
    "part_of_table": lambda torch, x: (
        torch.ones(8192)[: above(x).shape[0]].sum() / torch.ones(8192)[: above(x).shape[0]].shape[0]
    ),
}
