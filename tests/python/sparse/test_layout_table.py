"""What each part of the package does with tensors that are not strided: a row per part, a column per layout.

A part computes with a layout, or refuses it with an error that names it.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import teletensor as torch


def _tensor(kind: str) -> torch.Tensor:
    matrix = torch.tensor([[0, 1.0, 0, 2], [2, 0, 3, 0]])
    rows = torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    return {
        "sparse_coo": matrix.to_sparse,
        "sparse_csr": matrix.to_sparse_csr,
        "sparse_csc": matrix.to_sparse_csc,
        "sparse_bsr": lambda: matrix.to_sparse_bsr((1, 2)),
        "sparse_bsc": lambda: matrix.to_sparse_bsc((1, 2)),
        "jagged": lambda: torch.nested.nested_tensor([rows, rows[:1]], layout=torch.jagged),
        "nested": lambda: torch.nested.nested_tensor([rows, rows[:1]]),
    }[kind]()


SPARSE = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
LAYOUTS = (*SPARSE, "jagged", "nested")


def _values(t: torch.Tensor) -> list:
    return t._elements.tolist()


def _saves(t: torch.Tensor, _: Path) -> None:
    file = io.BytesIO()
    torch.save(t, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert loaded.layout == t.layout and loaded.is_nested == t.is_nested and _values(loaded) == _values(t)


def _scales_with_autocast(t: torch.Tensor, _: Path) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scaled = t * 2
    assert scaled.layout == t.layout and scaled.dtype is torch.float32 and _values(scaled) == (t._elements * 2).tolist()


def _compiles(t: torch.Tensor, _: Path) -> None:
    doubled = torch.compile(lambda x: x * 2)(t)
    assert doubled.layout == t.layout and _values(doubled) == (t._elements * 2).tolist()


def _with_gradient(t: torch.Tensor) -> torch.Tensor:
    parameter = t.clone().requires_grad_()
    parameter.grad = t.clone()
    return parameter


def _unscales(t: torch.Tensor, _: Path) -> None:
    parameter, scaler = _with_gradient(t), torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(torch.ones(()))
    scaler.unscale_(torch.optim.SGD([parameter], lr=1.0))
    assert _values(parameter.grad) == (t._elements / 4).tolist()


def _clips(t: torch.Tensor, _: Path) -> None:
    parameter = _with_gradient(t)
    norm = torch.nn.utils.clip_grad_norm_([parameter], 1.0)
    torch.testing.assert_close(norm, t._elements.norm())
    torch.testing.assert_close(parameter.grad._elements, t._elements / (norm + 1e-6))


def _checkpoints(t: torch.Tensor, _: Path) -> None:
    # The structure of a checkpoint; files are read and written in tests/python/checkpoint.
    from teletensor._checkpoint import tree

    stored: list = []
    structure = json.dumps(tree.encode([t], lambda x: stored.append(x) or len(stored) - 1))
    (loaded,) = tree.decode(json.loads(structure), stored.__getitem__)
    assert loaded.layout == t.layout and loaded.is_nested == t.is_nested and _values(loaded) == _values(t)
    assert len(stored) >= 2 and all(x.layout == torch.strided for x in stored)


def _loads_into(t: torch.Tensor, _: Path) -> None:
    from teletensor.serialization._composed import copy_composed

    loaded, target = t.clone(), t * 0
    copy_composed("t", target, loaded)
    assert target.layout == t.layout and target.is_nested == t.is_nested and _values(target) == _values(t)


def _checkpoints_of_ranks(t: torch.Tensor, _: Path) -> None:
    # The plans of a save and a load, without files.
    from teletensor.distributed import checkpoint
    from teletensor.distributed.checkpoint import _index

    saver, loader, target = checkpoint.DefaultSavePlanner(), checkpoint.DefaultLoadPlanner(), t * 0
    saver.set_up_planner({"t": t}, is_coordinator=True)
    (plan,), metadata = saver.create_global_plan([saver.create_local_plan()])
    written = {item.index: saver.resolve_data(item) for item in plan.items}
    metadata.storage_data = {
        index: _index.StoredValue(data.getvalue().decode()) if isinstance(data, io.BytesIO) else _index.StoredBox("file", index.fqn)
        for index, data in written.items()
    }
    loader.set_up_planner({"t": target}, _index.from_json(json.loads(_index.to_json(metadata))))
    for item in loader.finish_plan(loader.create_local_plan()).items:
        if item.type.name == "BYTE_IO":
            loader.load_bytes(item, written[item.storage_index])
        else:
            loader.resolve_tensor(item).copy_(written[item.storage_index])
    loader.finish_load()
    assert len(written) >= 3 and target.layout == t.layout and target.is_nested == t.is_nested and _values(target) == _values(t)


def _distributes(t: torch.Tensor, _: Path) -> None:
    torch.distributed.tensor.distribute_tensor(t)


def _distributes_local(t: torch.Tensor, _: Path) -> None:
    torch.distributed.tensor.DTensor.from_local(t)


def _maps(t: torch.Tensor, _: Path) -> None:
    doubled = torch.vmap(lambda x: x * 2)(t)
    assert doubled._elements.reshape(-1).tolist() == (t._elements * 2).reshape(-1).tolist()
    assert doubled.is_nested if t.is_nested else doubled.layout == t.layout


def _recomputes(t: torch.Tensor, _: Path) -> None:
    w = torch.tensor(3.0, requires_grad=True)
    f = lambda x, w: (x * w) * w  # noqa: E731
    expected = torch.autograd.grad(f(t.requires_grad_(), w)._elements.sum(), [t, w])
    for reentrant in (False, True):
        found = torch.autograd.grad(torch.utils.checkpoint.checkpoint(f, t, w, use_reentrant=reentrant)._elements.sum(), [t, w])
        assert _values(found[0]) == _values(expected[0]) and torch.equal(found[1], expected[1])
        inner = lambda x, w: torch.utils.checkpoint.checkpoint(f, x, w, use_reentrant=reentrant) * w  # noqa: B023, E731
        twice = torch.utils.checkpoint.checkpoint(inner, t, w, use_reentrant=reentrant)._elements.sum()
        assert torch.equal(torch.autograd.grad(twice, w)[0], torch.autograd.grad(inner(t, w)._elements.sum(), w)[0])


def test_distributed_tensors_refuse_quantized_tensors() -> None:
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    for part in (_distributes, _distributes_local):
        with pytest.raises(NotImplementedError, match="torch.quint8: dequantize"):
            part(quantized, Path())


# The layouts with which the part computes; it refuses the others.
TABLE = {
    _saves: LAYOUTS,
    _scales_with_autocast: LAYOUTS,
    _compiles: LAYOUTS,
    _unscales: SPARSE,
    _clips: ("sparse_coo", "jagged"),
    _checkpoints: LAYOUTS,
    _loads_into: LAYOUTS,
    _checkpoints_of_ranks: LAYOUTS,
    _distributes: (),
    _distributes_local: (),
    _maps: ("sparse_coo", "jagged", "nested"),
    _recomputes: LAYOUTS,
}


@pytest.mark.parametrize("part", TABLE, ids=lambda f: f.__name__.strip("_"))
@pytest.mark.parametrize("kind", LAYOUTS)
def test_parts_compute_with_a_layout_or_name_it(part, kind: str, tmp_path: Path) -> None:
    t = _tensor(kind)
    if kind in TABLE[part]:
        part(t, tmp_path)
        return
    with pytest.raises(NotImplementedError) as refused:
        part(t, tmp_path)
    message = str(refused.value).lower()
    assert any(name in message for name in (str(t.layout).removeprefix("torch.").lower(), "sparsecsr", "nested tensor"))


@pytest.mark.parametrize("kind", SPARSE[1:])
def test_compressed_tensors_of_different_indices(kind: str) -> None:
    a, b = torch.eye(4) + torch.eye(4).roll(1, 0), torch.tensor([[0.0, 1, 0, 0], [0, 0, 2, 0], [3, 0, 0, 4], [0, 0, 5, 0]])
    convert = lambda t: getattr(t, f"to_{kind}")(*([(2, 2)] if kind in ("sparse_bsr", "sparse_bsc") else []))  # noqa: E731
    first, second = convert(a), convert(b)
    assert (first + second).layout == first.layout and torch.equal((first + second).to_dense(), a + b)
    assert torch.equal(torch.sub(first, second, alpha=2).to_dense(), a - 2 * b)
    assert torch.equal((first * second).to_dense(), a * b)
    batch_a, batch_b = torch.stack([a, a.flip(0)]), torch.stack([a.roll(1, 1), a.roll(1, 1).flip(0)])
    assert torch.equal((convert(batch_a) + convert(batch_b)).to_dense(), batch_a + batch_b)


@pytest.mark.parametrize("first", SPARSE)
@pytest.mark.parametrize("second", SPARSE)
def test_sums_and_products_of_two_layouts(first: str, second: str) -> None:
    a = torch.tensor([[0, 1.0, 0, 2], [2, 0, 3, 0], [0, 0, 4, 0], [5, 0, 0, 6]])
    b = torch.tensor([[1, 1.0, 0, 0], [2, 7, 3, 0], [0, 0, 0, 0], [5, 0, 0, 6]])
    convert = lambda t, kind, block: getattr(t, f"to_{kind}")(*([block] if kind in ("sparse_bsr", "sparse_bsc") else []))  # noqa: E731
    x, y = convert(a, first, (2, 2)), convert(b, second, (2, 1) if first != second else (2, 2)).requires_grad_()
    for name in ("add", "sub", "mul"):
        found = getattr(torch, name)(x, y)
        compressed = first if first != "sparse_coo" or name != "mul" else second
        assert found.layout == getattr(torch, compressed) and torch.equal(found.to_dense(), getattr(torch, name)(a, b))
        y.grad = None
        found.to_dense().sum().backward()
        expected = {"add": torch.ones(4, 4), "sub": -torch.ones(4, 4), "mul": a}[name]
        assert torch.equal(y.grad.to_dense(), expected.sparse_mask(y.detach()).to_dense())
    with pytest.raises(RuntimeError, match=r"size"):
        torch.add(x, convert(b[:, :2], second, (2, 2)))


def test_batches_of_two_layouts() -> None:
    a = torch.stack([torch.eye(4), torch.eye(4).roll(1, 0)])
    assert torch.equal((a.to_sparse_csr() * (a * 2).to_sparse_csc()).to_dense(), a * 2)
    with pytest.raises(NotImplementedError, match=r"\[add\] expected batches of one layout, got SparseCsr and SparseBsr"):
        a.to_sparse_csr() + (a[..., :2, :2] * 0 + 1).repeat(1, 2, 2).to_sparse_bsr((2, 2))


def test_batches_of_a_sum_have_equally_many_elements() -> None:
    a = torch.stack([torch.eye(2), torch.eye(2)]).to_sparse_csr()
    b = torch.stack([torch.eye(2), torch.eye(2).flip(0)]).to_sparse_csr()
    with pytest.raises(RuntimeError, match="same number of elements in each batch"):
        a + b


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.SparseAdam, torch.optim.Adagrad])
def test_scaled_sparse_gradients_train_as_unscaled_ones(optimizer) -> None:
    def train(scaled: bool) -> list:
        layer = torch.nn.Embedding(5, 2, sparse=True, _weight=torch.arange(10.0).reshape(5, 2))
        opt, scaler = optimizer(layer.parameters(), lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0, enabled=scaled)
        for index in ([1, 2, 1], [0, 2], [4, 4]):
            opt.zero_grad()
            scaler.scale((layer(torch.tensor(index)) ** 2).sum()).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(layer.parameters(), 3.0)
            scaler.step(opt)
            scaler.update()
        return layer.weight.tolist()

    assert train(True) == train(False)


def test_overflowed_sparse_gradients_skip_the_step() -> None:
    layer = torch.nn.Embedding(5, 2, sparse=True)
    before, opt = layer.weight.tolist(), torch.optim.SparseAdam(layer.parameters())
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(layer(torch.tensor([1, 2])).sum() * float("inf")).backward()
    scaler.step(opt)
    scaler.update()
    assert layer.weight.tolist() == before and scaler.get_scale() == 2.0


_INDICES, _VALUES = {"tensor": "i"}, {"tensor": "v"}


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("os.system", ["true"]),
        ("torch._utils._rebuild_sparse_tensor", [{"layout": "sparse_coo"}, {"tuple": [_INDICES, _VALUES]}]),
        ("torch._utils._rebuild_sparse_tensor", [{"layout": "sparse_coo"}, {"tuple": [_INDICES, _VALUES, {"size": [2]}]}]),
        ("torch._utils._rebuild_sparse_tensor", [{"layout": "layout"}, {"tuple": [_INDICES, _VALUES, {"size": [9]}]}]),
        ("torch.nested._internal.nested_tensor._rebuild_njt", [{"dict": [["values", _VALUES]]}]),
        ("torch._utils._rebuild_nested_tensor", [_VALUES]),
        ("torch._utils._rebuild_nested_tensor", [{"tensor": name} for name in ("v", "many", "many", "i")]),
        ("torch._utils._rebuild_sparse_tensor", [{"layout": "sparse_coo"}, {"tuple": [_INDICES, _VALUES, {"size": [9]}, _VALUES]}]),
        ([], []),
    ],
)
def test_damaged_structures_of_checkpoints(name: object, args: list) -> None:
    from teletensor._checkpoint import tree

    tensors = {"i": torch.tensor([[0, 7]]), "v": torch.ones(2), "many": torch.ones(1, 100_000, dtype=torch.int64)}
    with pytest.raises(ValueError, match=r"malformed|layout|damaged"):
        tree.decode({"composed": [name, {"tuple": args}]}, tensors.__getitem__)
