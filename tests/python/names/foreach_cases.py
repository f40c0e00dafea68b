"""torch._foreach_*: results, results in place, promotions and errors, and tensors with common memory."""

from .rows import values_of

UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
)
ROWS = """
torch._foreach_{n}(a, 2)
torch._foreach_{n}(a, [2, 0.5])
torch._foreach_{n}(a, b)
torch._foreach_{n}(i, 2.5)
torch._foreach_{n}(i, b)
inplace(torch._foreach_{n}_, a, 0.5)
inplace(torch._foreach_{n}_, a, [2, 0.5])
inplace(torch._foreach_{n}_, a, b)
torch._foreach_{n}(a, b[:1])
torch._foreach_{n}(a, [1])
torch._foreach_{n}([], 1)
"""
MORE = """
torch._foreach_add(a, b, alpha=3)
torch._foreach_sub(a, b, alpha=0.5)
torch._foreach_add(a, torch.tensor(2.0))
torch._foreach_mul(a, torch.tensor(2.0))
torch._foreach_div(i, 2)
inplace(torch._foreach_div_, i, 2)
inplace(torch._foreach_add_, a, b, alpha=2)
torch._foreach_pow(2.0, a)
torch._foreach_addcmul(a, b, b, 2)
torch._foreach_addcmul(a, b, b)
torch._foreach_addcdiv(a, b, b, [2, 3])
torch._foreach_addcdiv(a, b, b, torch.tensor([2.0, 3.0]))
inplace(torch._foreach_addcmul_, a, b, b, 0.5)
inplace(torch._foreach_addcdiv_, a, b, b, value=0.5)
torch._foreach_addcmul(a, b, b[:1])
torch._foreach_lerp(a, b, 0.25)
torch._foreach_lerp(a, b, b)
inplace(torch._foreach_lerp_, a, b, 0.25)
torch._foreach_norm(a)
torch._foreach_norm(a, 1)
torch._foreach_norm(a, float("inf"))
torch._foreach_norm(a, dtype=torch.float64)
torch._foreach_powsum(a, 3)
torch._foreach_max(a)
torch._foreach_mm(a[:1], [a[0].T])
torch._foreach_clone(a)
inplace(torch._foreach_copy_, a, b)
inplace(torch._foreach_zero_, a)
torch._foreach_zero_([])
"""


def case_foreach(torch):
    a = [torch.arange(1.0, 7.0).reshape(2, 3) / 7, torch.tensor([0.5, 0.25])]
    names = {"a": a, "b": [t * t + 0.5 for t in a], "i": [torch.arange(6).reshape(2, 3), torch.tensor([3, 5])]}

    def inplace(function, values, *args, **kwargs):
        copies = [v.clone() for v in values]
        function(copies, *args, **kwargs)
        return copies

    rows = "\n".join(f"torch._foreach_{n}(a)\ninplace(torch._foreach_{n}_, a)" for n in UNARY.split())
    rows += "".join(ROWS.replace("{n}", n) for n in "add sub mul div pow maximum minimum clamp_min clamp_max".split()) + MORE
    return values_of(torch, rows, **names, inplace=inplace)


def case_foreach_gradients(torch):
    a = [torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_(), torch.tensor([0.5, 0.25], requires_grad=True)]
    results = torch._foreach_mul(torch._foreach_exp(a), torch._foreach_addcmul(a, a, a, 2))
    sum(r.sum() for r in results).backward()
    return [t.grad for t in a]


OVERLAPS = """
{f}(same, 1.5)
{f}(apart, 1.5)
{f}(parts, 1.5)
{f}(parts, [1.5, 2.5, 3.5])
{f}(parts, parts)
{f}(parts, torch.tensor(2.0))
"""


def case_foreach_of_overlapping_tensors(torch):
    """Tensors that share memory are updated in the order of the list, each reading what those before it have written."""

    def run(function, views, *args):
        base = torch.arange(1.0, 6.0)
        names = {"same": [base, base], "apart": [base[::2], base[1::2]], "parts": [base[:3], base[1:4], base[2:]]}
        names["ones"] = [torch.ones_like(v) for v in names["parts"]]
        function(eval(views, {}, names), *[eval(a, {"torch": torch}, names) for a in args])  # noqa: S307 - the rows below
        return base

    rows = []
    for n in "add sub mul div pow maximum minimum clamp_min clamp_max".split():
        for row in OVERLAPS.strip().splitlines():
            views, value = row.removeprefix("{f}(").removesuffix(")").split(", ", 1)
            rows.append(f"run(torch._foreach_{n}_, {views!r}, {value!r})")
    for n in ("addcmul", "addcdiv"):
        rows += [f"run(torch._foreach_{n}_, 'parts', 'ones', 'parts')", f"run(torch._foreach_{n}_, 'same', 'same', 'same')"]
    rows += ["run(torch._foreach_lerp_, 'parts', 'ones', '0.25')", "run(torch._foreach_lerp_, 'same', 'same[::-1]', '0.5')",
             "run(torch._foreach_add_, 'parts', 'parts[0][1]')", "run(torch._foreach_add_, 'apart[::-1]', 'apart[1][1]')",
             "run(torch._foreach_mul_, 'apart[:1]', 'apart[1][1]')", "run(torch._foreach_mul_, '[parts[0][0], parts[2]]', 'parts[0][0]')",
             "run(torch._foreach_mul_, 'parts', 'torch.ones(1)')", "run(torch._foreach_sin_, 'parts')",
             "run(torch._foreach_copy_, 'parts', 'ones')"]
    return values_of(torch, "\n".join(rows), run=run)
