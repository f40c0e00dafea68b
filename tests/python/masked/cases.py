"""Expressions with masked tensors, whose results PyTorch gives (recorded.json), and how they are compared.

Names: d and e, float32 [3, 4]; k, int64 [3, 4]; i8, int8 [3, 4]; b, bool [3, 4]; m, a mask that has a row, and a
column, without unmasked elements;
mt, et, kt, bt: masked tensors of d, e, k and b with the mask m.
coo, csr: sparse tensors of e without its two first columns; st, ct: masked tensors of them, in which one stored element is masked out.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

RECORDED = Path(__file__).with_name("recorded.json")
UNARY = (
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh ceil cos cosh deg2rad digamma erf "
    "erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit isnan nan_to_num neg negative positive rad2deg "
    "reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc i0"
).split()
BINARY = (
    "add atan2 arctan2 div divide floor_divide fmod logaddexp logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne "
    "le ge greater greater_equal gt less_equal lt less maximum minimum fmax fmin not_equal"
).split()
BITWISE = "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift".split()
REDUCTIONS = "sum mean amin amax prod var std".split()
MASKS = ("m", "m[0]", "m.to_sparse()", "m.to_sparse_csr()")
CODES = [
    "torch.outer(mt[1], e[0])", "torch.outer(e[0], mt[1])", "torch.ger(mt[2], d[0, :2])",
    *(f"torch.{name}(mt)" for name in UNARY),
    *(f"mt.{name}_()" for name in UNARY if name not in ("angle", "positive", "signbit", "isnan")),
    *(f"torch.{name}(mt, {other})" for name in BINARY for other in ("et", "e", "e[0]")),
    *(f"mt.{name}_(2.5)" for name in "add mul sub div fmod remainder".split()), "mt.add_(et)", "mt.mul_(e)", "mt.eq_(et)",
    *(f"torch.{name}(kt, {other})" for name in BITWISE for other in ("kt", "k")), "torch.bitwise_not(kt)", "~bt", "bt & b", "bt | bt",
    *(f"mt.{name}({dims})" for name in REDUCTIONS for dims in ("", "0", "1", "dim=1, keepdim=True")),
    *(f"torch.{name}(mt)" for name in (*REDUCTIONS, "argmin", "argmax")),
    "mt.amax((0, 1))", "mt.sum((0, 1))", "mt.argmax(1)", "mt.argmin(0)", "kt.sum()", "kt.prod(1)", "kt.amax(0)", "bt.all()", "bt.all(1)",
    "mt.sum(0, dtype=torch.float64)", "mt.softmax(1)", "torch.softmax(mt, 0)",
    "mt + 1", "1 + mt", "mt - 1", "mt * 2", "2 * mt", "mt / 2", "2 / mt", "mt ** 2", "-mt", "abs(mt)", "mt // 2", "mt % 2", "mt < 1",
    "mt >= et",
    "mt == mt", "mt != 1", "e + mt", "e * mt", "e / mt", "kt / 2", "kt * 2.5", "kt + mt", "mt + torch.ones(2, 3, 4)", "mt.clamp(0.1, 0.5)",
    "torch.clamp(mt, min=0.2)", "torch.clip(mt, max=0.2)", "torch.pow(mt, 3)", "torch.round(mt)", "torch.logit(mt, 0.1)",
    "mt[0]", "mt[0, 1]", "mt[:, 1:3]", "mt[m]", "mt[[0, 2]]", "mt.t()", "mt.transpose(0, 1)", "mt.mT", "mt.view(4, 3)", "mt.view(-1)",
    "mt.reshape(2, 6)", "mt.flatten()", "mt.unsqueeze(1)", "mt.expand(2, 3, 4)", "mt.unfold(1, 2, 1)", "mt.split(1)", "mt.chunk(2, 1)",
    "torch.cat([mt, et])", "torch.stack([mt, et], 1)", "mt.select(0, 1)",
    "mt.clone()", "mt.detach()", "mt.contiguous()", "mt.t().contiguous()", "mt.double()", "mt.long()", "mt.bool()", "mt.to(torch.float16)",
    "torch.ones_like(mt)", "mt.to_dense()", "torch.where(b, mt, et)", "torch.where(b, mt, e)", "torch.where(b, d, mt)",
    "mt.get_data()", "mt.get_mask()", "mt.to_tensor(7)", "kt.to_tensor(-1)", "mt[0, 0].item()", "bool(bt[0, 0])", "len(mt)", "mt.dim()",
    "mt.is_contiguous()", "mt.stride()", "repr(mt)", "repr(kt)", "repr(bt)", "repr(mt[0, 0])", "repr(mt[1, 1])", "repr(mt[0])",
    "repr(mt.view(1, 3, 2, 2))", "mt.copy_(e)", "mt.copy_(et)",
    "masked.is_masked_tensor(mt), masked.is_masked_tensor(d), masked.is_masked_tensor(3)",
    *(f"masked.{name}(mt, 1)" for name in "sum prod cumsum cumprod amax amin argmax argmin logsumexp median softmax softmin".split()),
    "masked.log_softmax(mt, 0)", "masked.normalize(mt, 2.0, 1)", "masked.norm(mt, 2.0, 1)", "masked.logaddexp(mt, et)",
    *(f"masked.{name}({x}, 0, mask=m{more})" for name in "sum prod cumsum cumprod".split()
      for x, more in (("i8", ""), ("i8", ", dtype=torch.int16"), ("i8", ", dtype=torch.float64"))),
    "grads((mt * 3).sum(), mt)", "grads(mt.mean(), mt)", "grads((mt * et).sum(), mt, et)", "grads(torch.log(mt).sum(), mt)",
    "grads(mt.prod(1).sum(), mt)", "grads(mt.amax(1).sum(), mt)",
    "grads(mt.get_data().sum(), mt)", "grads(mt.to_tensor(0.).square().sum(), mt)", "grads(torch.cat([mt, et]).sum(), mt, et)",
    "grads((mt.softmax(1) * et).sum(), mt)", "grads(mt.std(), mt)", "grads((mt / et).sum(1).sum(), mt, et)",
    # sparse inputs and masks
    *(f"masked.{name}(coo, {dim}, keepdim={keep}, mask={mask})" for name in "sum prod amax amin".split()
      for dim in ("0", "1", "(0, 1)", "None") for keep in (False, True) for mask in MASKS),
    *(f"masked.{name}(csr, {dim}, keepdim=True, mask={mask})"
      for name, dims in (("sum", "01"), ("prod", "01"), ("mean", "0"), ("amax", "0"), ("amin", "0"))
      for dim in (*dims, "(0, 1)") for mask in MASKS),
    *(f"masked.{name}(e, 1, mask=m.{layout}())"
      for name in "sum prod amax amin mean var std argmax logsumexp softmax cumsum median".split()
      for layout in ("to_sparse", "to_sparse_csr", "to_sparse_csc")),
    "masked.sum(torch.tensor(5.0).to_sparse(), 0)", "masked.amax(torch.tensor(5.0).to_sparse(), -1, mask=torch.tensor(True).to_sparse())",
    "masked.sum(coo)", "masked.sum(coo, 0)", "masked.sum(csr, 1, keepdim=True)", "masked.sum(coo.int(), 1, mask=m)",
    "masked.logaddexp(e, e, input_mask=m.to_sparse(), other_mask=m)", "masked.normalize(e, 2.0, 1, mask=m.to_sparse())",
    *(f"masked._input_mask({x}, mask={y})" for x in ("e", "coo", "csr") for y in MASKS),
    *(f"{x}{call}" for x in ("st", "ct") for call in (
        "", ".layout", ".is_sparse", ".is_sparse_coo()", ".is_sparse_csr()", ".get_data()", ".get_mask()", ".to_dense()", ".sin()",
        ".cos()", ".sum()", ".prod()", ".amax()", ".amin()", ".clone()", ".double()", ".detach()")),
    "st.sqrt()", "st + st", "ct * ct", "st / 2", "2 * ct", "st - st", "repr(st)", "repr(ct)", "st.t()", "st[0]", "st.unsqueeze(0)",
    "torch.ones_like(ct)",
    "mt.to_sparse()", "mt.to_sparse_coo()", "mt.to_sparse_csr()", "st.to_sparse_csr()", "grads(mt.to_sparse().to_dense().sum(), mt)",
    "masked.masked_tensor(coo, m.to_sparse())", "masked.masked_tensor(csr, m.to_sparse_csr())", "masked.sum(st, 1)",
]  # fmt: skip
ERRORS = [
    "masked.masked_tensor([1], m)", "masked.masked_tensor(d, [1])", "masked.masked_tensor(mt, m)", "masked.masked_tensor(d, mt)",
    "masked.masked_tensor(d, k)", "masked.masked_tensor(d, m[0])", "masked.masked_tensor(d, m[:2])",
    "masked.masked_tensor(d.bfloat16(), m)", "masked.masked_tensor(coo, m)", "masked.masked_tensor(e.to_sparse_csc(), m.to_sparse_csc())",
    "st.contiguous()", "st.is_contiguous()", "ct.t()", "st.sum(0)", "st * ct",
    "masked.amax(coo)", "masked.prod(csr, 1, keepdim=True)", "masked.mean(coo, mask=m)", "masked.sum(csr, 1, mask=m)",
    "masked.var(coo, mask=m)",
    "masked.softmax(coo, 1, mask=m)", "masked.sum(e.to_sparse_csc(), 1, mask=m)", "masked.logaddexp(coo, e)", "masked.argmax(csr, mask=m)",
    "masked.sum(coo, mask=torch.ones(2, 3, 4).bool())",
    "masked.masked_tensor(d.to(torch.uint8), m)", "masked.masked_tensor(d.to(torch.complex64), m)", "masked.as_masked_tensor(d, k)",
    "mt + masked.masked_tensor(d, ~m)", "mt.add_(masked.masked_tensor(d, ~m))", "mt.any()", "mt.median()", "mt.matmul(d.t())",
    "mt.zero_()", "mt.fill_(1)", "mt.masked_fill(m, 0.)", "torch.cat([mt, d])", "torch.zeros_like(mt)", "mt.cumsum(0)", "mt.relu()",
    "torch.log_softmax(mt, 1)", "torch.exp(mt, out=e)", "torch.clamp(mt, min=e)", "mt.item()", "mt[1, 1].item()", "mt.tolist()",
    "mt.numpy()", "kt.exp_()", "kt.add_(2.5)", "kt.mean()", "masked.mean(kt)", "mt[5]", "mt.view(5)", "masked.masked_tensor(k, m, True)",
]  # fmt: skip


def names(torch: ModuleType) -> dict[str, Any]:
    """The names that the expressions use."""
    masked = torch.masked
    d = torch.tensor([[0.25, -1.5, 0.5, 0.75], [3.0, -2.0, 0.0, 9.0], [0.625, float("nan"), 0.375, float("inf")]])
    e = torch.tensor([[0.5, 2.0, -0.75, 1.5], [1.0, 0.0, -3.0, 4.0], [0.875, 1.0, 0.5, -1.0]])
    k = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 0], [2, 4, 1, 3]])
    b = torch.tensor([[True, False, True, True], [False, True, True, False], [True, True, False, True]])
    m = torch.tensor([[True, False, True, False], [False, False, False, False], [True, False, True, False]])

    def made(data: Any) -> Any:
        return masked.masked_tensor(data.clone(), m.clone())

    def grads(result: Any, *inputs: Any) -> Any:
        result.backward()
        return tuple(x.grad for x in inputs)

    found = {"torch": torch, "masked": masked, "i8": (k * 9).to(torch.int8), "d": d, "e": e, "k": k, "b": b, "m": m, "grads": grads}
    coo, csr = (e * torch.tensor([0.0, 0.0, 1.0, 1.0])).to_sparse(), (e * torch.tensor([0.0, 0.0, 1.0, 1.0])).to_sparse_csr()
    kept = torch.tensor([True, True, False, True, True, True])
    st = masked.masked_tensor(coo, torch.sparse_coo_tensor(coo.indices(), kept, coo.shape))
    ct = masked.masked_tensor(csr, torch.sparse_csr_tensor(csr.crow_indices(), csr.col_indices(), kept, csr.shape))
    return found | {"mt": made(d), "et": made(e), "kt": made(k), "bt": made(b), "coo": coo, "csr": csr, "st": st, "ct": ct}


def plain(value: Any) -> Any:
    """A result as JSON: of a masked tensor its dtype, shape, mask, and unmasked elements."""
    if hasattr(value, "detach") and str(value.layout) != "torch.strided":
        return {"layout": str(value.layout), "dense": plain(value.detach().to_dense())}
    if hasattr(value, "get_mask"):
        data, mask = value.get_data().detach(), value.get_mask()
        elements = [x if keep else 0 for x, keep in zip(data.reshape(-1).tolist(), mask.reshape(-1).tolist(), strict=True)]
        return {"dtype": str(data.dtype).rpartition(".")[2], "shape": list(data.shape), "mask": mask.tolist(), "data": _finite(elements)}
    if hasattr(value, "detach"):
        value = value.detach()
        elements = _finite(value.reshape(-1).tolist())
        return {"dtype": str(value.dtype).rpartition(".")[2], "shape": list(value.shape), "data": elements}
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)


def _finite(values: list) -> list:
    """Infinities and NaN as text, which JSON lacks."""
    return [str(v) if isinstance(v, float) and (v != v or abs(v) == float("inf")) else v for v in values]


def result(torch: ModuleType, code: str) -> Any:
    """The value of an expression as JSON."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = names(torch)
        if code.startswith("grads("):
            for name in ("mt", "et"):
                found[name].requires_grad_()
        return plain(eval(code, found))  # noqa: S307 - rows of this file


def error(torch: ModuleType, code: str) -> str:
    """The name of the exception that an expression raises."""
    try:
        result(torch, code)
    except Exception as e:
        return type(e).__name__
    return ""


if __name__ == "__main__":
    import torch

    rows = {code: result(torch, code) for code in CODES} | {code: error(torch, code) for code in ERRORS}
    RECORDED.write_text("{\n" + ",\n".join(f" {json.dumps(c)}: {json.dumps(v)}" for c, v in rows.items()) + "\n}\n")
