"""Masked tensors give the results, gradients and errors that PyTorch gives; recorded by `python -m tests.python.masked.cases`."""

import base64
import copy
import io
import json
import pickle
import zipfile
import zlib

import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.test_session import run_script

from .cases import CODES, ERRORS, RECORDED, error, names, result

EXPECTED = json.loads(RECORDED.read_text())


def close(ours, theirs):
    """Whether two results are equal, with a tolerance for numbers."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(close(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, (list, tuple)) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, (float, int)):
        return ours == pytest.approx(theirs, rel=1e-5, abs=1e-6)
    return ours == theirs and isinstance(ours, bool) == isinstance(theirs, bool)


@pytest.mark.parametrize("code", CODES)
def test_result(torch, code):
    ours = result(torch, code)
    assert close(ours, EXPECTED[code]), (ours, EXPECTED[code])


@pytest.mark.parametrize("code", ERRORS)
def test_error(torch, code):
    assert error(torch, code) == EXPECTED[code] != ""


def make(torch, *args, **kwargs):
    with pytest.warns(UserWarning, match="prototype stage"):
        return torch.masked.masked_tensor(*args, **kwargs)


def test_the_gradient_of_where_has_no_nan(torch):
    x = torch.tensor([-10.0, -5, 0, 5, 1000])
    mask = x < 0
    a, b = make(torch, x, mask, requires_grad=True), make(torch, torch.ones(5), ~mask, requires_grad=True)
    total = torch.where(mask, torch.exp(a), b).sum()
    total.backward()
    assert a.grad.to_tensor(7).tolist() == pytest.approx([4.54e-05, 0.0067379, 7, 7, 7], rel=1e-4)
    assert b.grad.get_mask().tolist() == (~mask).tolist() and total.requires_grad and not a.grad.requires_grad


def test_gradients_reach_the_data_of_as_masked_tensor(torch):
    x = torch.tensor([1.0, 0.0, 4.0], requires_grad=True)
    masked = torch.masked.as_masked_tensor(x, torch.tensor([True, False, True]))
    assert masked.requires_grad and not masked.is_leaf
    masked.sqrt().sum().backward()  # the derivative at the masked-out 0 is infinite
    assert x.grad.tolist() == [0.5, 0.0, 0.25]


def test_gradients_of_operands_without_a_mask_leave_out_masked_elements(torch):
    weight = torch.ones(2, 1, requires_grad=True)
    data = torch.tensor([[1.0, float("inf"), 3.0], [4.0, float("nan"), 6.0]])
    masked = make(torch, data, torch.tensor([[True, False, True], [True, False, False]]))
    (masked * weight).sum().backward()
    assert weight.grad.tolist() == [[4.0], [4.0]]


def test_grad_and_backward_functions(torch):
    a = make(torch, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True]), requires_grad=True)
    (gradient,) = torch.autograd.grad((a * a).sum(), a)
    assert torch.masked.is_masked_tensor(gradient) and gradient.to_tensor(0).tolist() == [2, 0, 6]
    torch.autograd.backward([(a * 2).sum(), (a * 3).sum()])
    assert a.grad.to_tensor(0).tolist() == [5, 0, 5]
    seen = []
    b = a * 2
    b.register_hook(lambda g: seen.append(g.get_mask().tolist()))
    b.retain_grad()
    b.sum().backward()
    assert seen == [[True, False, True]] and b.grad.to_tensor(0).tolist() == [1, 0, 1]
    a.grad = None
    assert a.grad is None
    with pytest.raises(RuntimeError, match="leaf Variable"):
        a.add_(1)


def test_data_and_mask_are_copied_and_views_are_separate(torch):
    data, mask = torch.ones(2, 2), torch.tensor([[True, False], [True, True]])
    masked = make(torch, data, mask)
    data.fill_(5)
    mask.fill_(False)
    assert masked.to_tensor(0).tolist() == [[1, 0], [1, 1]]
    row = masked[0]
    row.add_(1)
    assert masked.to_tensor(0).tolist() == [[1, 0], [1, 1]] and row.to_tensor(0).tolist() == [2, 0]


def test_copies_and_pickles(torch):
    masked = names(torch)["mt"]
    for other in (copy.deepcopy(masked), copy.copy(masked), pickle.loads(pickle.dumps(masked))):  # noqa: S301 - our own
        assert repr(other) == repr(masked) and torch.masked.is_masked_tensor(other)


@pytest.mark.skipif(IN_PROCESS, reason="another process starts its own engine")
def test_a_process_that_only_reads_a_pickle_has_the_operators(torch):
    data = pickle.dumps(torch.masked.masked_tensor(torch.arange(3.0), torch.tensor([True, False, True])))
    done = run_script(f"import pickle; print((pickle.loads({data!r}) + 1).to_tensor(0).tolist())")
    assert done.stdout.split() == ["[1.0,", "0.0,", "3.0]"], done.stderr


# The pickle of PyTorch 2.15's torch.save(masked_tensor(tensor([1., 2.]), tensor([True, False]), requires_grad=True)).
_PICKLE = (
    "eNp1kElPwzAUhNMWKJiWfd93wqVi+QcIcYkQInDIzXIdt7Fw6zzbKSoSEpdI8K/J4hZx4PSk0Xi+GX9WqZGKRi1sWF9LhbBi7YSLEHeU7GEzjB"
    "keXCNw3JEvMVzoX9ubInHMFNZJmwqiNYKKdfaIfmWhPWV6i0rF0EOhvJQ8qLqR7YA6QhJzk9FqXjWFCa+SwqTn2DjNFCeCvxPDZR/hLjNYkKFM"
    "DIKpoOk4jrUZxUMWQj2FaR9mbHLIBpwyBCioZU4aJzCbQsOH5peBuQ+Yd4NGpuOyKw6JIbDwz+BySfEpi64b1LN3OnOSLoMlS7vPdzyXIoLloJ"
    "J5LmFlzF71qgbWnjwnn7mez9z4plQKwWg+TqNHFTLFwjtOs3WbFz5sGdj2YedPy/zAbpSViEbgWynFmLtXcK9gPyp4B5Z3mPOOvqM89tjAiQ+n"
    "iYEzH85bP1uuquU="
)


def _saved(torch, value) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


def test_files(torch):
    t = torch.masked.masked_tensor(torch.tensor([1.0, 2]), torch.tensor([True, False]), requires_grad=True)
    data = _saved(torch, t)
    assert zipfile.ZipFile(io.BytesIO(data)).read("archive/data.pkl") == zlib.decompress(base64.b64decode(_PICKLE))
    back = torch.load(io.BytesIO(data))
    assert isinstance(back, type(t)) and back.requires_grad and back.is_leaf
    assert torch.equal(back.get_data(), t.get_data()) and torch.equal(back.get_mask(), t.get_mask())
    first, second = torch.load(io.BytesIO(_saved(torch, [t.detach(), t.detach()])))
    assert not first.requires_grad and first is not second and (first + first).to_tensor(0).tolist() == [2.0, 0.0]
    with pytest.raises(NotImplementedError, match="MaskedTensor with strided data, got torch.sparse_coo"):
        _saved(torch, t.to_sparse())


@pytest.mark.parametrize(("old", "new"), [
    (b"_masked_mask", b"_masked_nask"), (b"BoolStorage", b"ByteStorage"), (b"ctorch\nfloat32", b"ctorch\nfloat16"),
    (b"K\x02\x85", b"K\x01\x85"),
])  # fmt: skip
def test_damaged_files(torch, old, new):
    t = torch.masked.masked_tensor(torch.tensor([1.0, 2]), torch.tensor([True, False]), requires_grad=True)
    source = zipfile.ZipFile(io.BytesIO(_saved(torch, t)))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            if name.endswith("data.pkl"):
                assert old in content
                content = content.replace(old, new, 1)
            target.writestr(name, content)
    with pytest.raises(pickle.UnpicklingError, match="damaged"):
        torch.load(io.BytesIO(file.getvalue()))


def test_warns_of_data_that_requires_a_gradient(torch):
    with pytest.warns(UserWarning, match="not recommended"):
        masked = torch.masked.masked_tensor(torch.ones(2, requires_grad=True), torch.tensor([True, False]))
    assert not masked.requires_grad


def test_a_second_mask_is_refused(torch):
    found = names(torch)
    with pytest.raises(ValueError, match="expected no mask"):
        torch.masked.sum(found["mt"], 1, mask=found["m"])
    with pytest.raises(TypeError, match="index_put_"):
        found["mt"][0] = 1


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_sparse_reductions_have_the_gradients_of_strided_ones(torch, name, layout):
    """PyTorch's results of sparse inputs do not require grad."""
    if (name, layout) == ("mean", "to_sparse"):
        return  # refused, as in PyTorch
    weights = torch.tensor([[0.5, 2.0, 0.0, 1.5], [1.0, 0.0, -3.0, 4.0], [0.0, 1.0, 0.5, -1.0]])
    mask, gradients = weights > 0, []
    for make in (lambda t: t.clone(), lambda t: getattr(t, layout)()):
        leaf = make(weights).requires_grad_()
        getattr(torch.masked, name)(leaf, 0, keepdim=True, mask=mask).to_dense().square().sum().backward()
        gradients.append(leaf.grad.to_dense())
    assert torch.equal(*gradients)


def test_gradients_of_sparse_masked_tensors(torch):
    found = names(torch)
    for name in ("st", "ct"):
        tensor = found[name].requires_grad_()
        (tensor * tensor).sum().backward()
        kept = tensor.get_mask().to_dense()
        assert torch.equal(tensor.grad.get_data().to_dense(), torch.where(kept, 2 * tensor.get_data().detach().to_dense(), torch.zeros([])))
    coo = found["coo"].clone().requires_grad_()
    torch.masked.as_masked_tensor(coo, found["st"].get_mask()).sum().backward()
    assert torch.equal(coo.grad.to_dense(), found["st"].get_mask().to_dense().float())
    filled = torch.where(found["st"].get_mask().to_dense(), found["e"], torch.tensor(7.0))
    assert torch.equal(found["st"].to_tensor(7)[:, 2:], filled[:, 2:])


# Calls that PyTorch refuses and that have one meaning.
FURTHER = [
    ("mt.norm()", "masked.norm(d, 2.0, mask=m)"), ("mt.norm(1, 1)", "masked.norm(d, 1, 1, mask=m)"),
    ("mt.var(1, correction=0)", "masked.var(d, 1, correction=0, mask=m)"), ("1 - mt", "1 - d"), ("2 ** mt", "2 ** d"),
    ("torch.add(mt, e, alpha=2)", "d + 2 * e"), ("mt.div(2, rounding_mode='floor')", "(d / 2).floor()"), ("mt.T", "d.T"),
    ("mt.permute(1, 0)", "d.T"), ("mt.flip(0)", "d.flip(0)"), ("mt.squeeze(0)", "d"), ("torch.stack(list(mt))", "d"),
    ("torch.stack(mt.unbind(1))", "d.T"), ("masked.as_masked_tensor(masked.mean(mt, 0), m.any(0))", "masked.mean(d, 0, mask=m)"),
    ("masked.as_masked_tensor(masked.std(mt), m.any())", "masked.std(d, mask=m)"), ("mt.split([1, 3], 1)[1]", "d[:, 1:]"),
    ("grads((mt.t() * 2)[2].sum(), mt)[0]", "torch.zeros(3, 4).index_fill(1, torch.tensor([2]), 2)"),
    ("mt.index_select(0, torch.tensor([2]))", "d[2:]"),
]  # fmt: skip


@pytest.mark.parametrize("code, expected", FURTHER)
def test_further_operators(torch, code, expected):
    found = names(torch)
    if code.startswith("grads"):
        found["mt"].requires_grad_()
    ours, plain = eval(code, found), eval(expected, found)  # noqa: S307 - the rows above
    mask = ours.get_mask()
    assert ours.shape == plain.shape and mask.any() and torch.allclose(ours.get_data()[mask], plain[mask])
