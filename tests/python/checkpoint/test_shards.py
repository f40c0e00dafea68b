"""Boxes: the division of consecutive elements, intersections, nested state dicts, and indices of checkpoints."""

from __future__ import annotations

import json
import math
import random

import pytest


@pytest.fixture(autouse=True)
def _connected(torch):
    """The engine of the tests."""


def test_consecutive_elements_as_boxes(torch):
    from teletensor.distributed.checkpoint._shards import flat_boxes

    rng = random.Random(0)
    shapes = [(), (1,), (7,), (3, 4), (2, 1, 3), (3, 1, 1), (2, 3, 4), (1, 5), (2, 2, 2, 2), (4, 0), (5, 3, 1, 2)]
    for shape in shapes * 4:
        numel = math.prod(shape)
        whole = torch.arange(float(numel))
        start = rng.randint(0, numel)
        end = rng.randint(start, numel)
        boxes = list(flat_boxes(shape, start, whole[start:end]))
        assert len(boxes) <= max(1, 2 * len(shape))
        covered = torch.full(shape, -1.0)
        for offsets, box in boxes:
            assert len(offsets) == box.dim() == len(shape)
            view = covered
            for dim, (offset, length) in enumerate(zip(offsets, box.shape, strict=True)):
                view = view.narrow(dim, offset, length)
            assert (view == -1).all()
            view.copy_(box)
        expected = [float(i) if start <= i < end else -1.0 for i in range(numel)]
        assert covered.reshape(-1).tolist() == expected, (shape, start, end)


def test_boxes_are_views(torch):
    from teletensor.distributed.checkpoint._shards import flat_boxes

    part = torch.zeros(7)
    for _, box in flat_boxes((3, 4), 2, part):
        box.fill_(1)
    assert part.tolist() == [1] * 7


def test_intersection():
    from teletensor.distributed.checkpoint._shards import intersection

    assert intersection((0, 2), (4, 4), (3, 0), (2, 3)) == ([3, 2], [1, 1])
    assert intersection((0, 0), (2, 2), (2, 0), (2, 2)) is None
    assert intersection((), (), (), ()) == ([], [])


def test_copy_between_divisions(torch):
    from teletensor.distributed.checkpoint._shards import copy_value

    class Rows:
        def __init__(self, whole, *bounds):
            self.size = tuple(whole.shape)
            self.boxes = [((low, 0), whole[low:high].clone()) for low, high in bounds]

        def __shards__(self):
            return self.size, self.boxes

    whole = torch.arange(12.0).reshape(4, 3)
    target = Rows(torch.zeros(4, 3), (1, 3))
    copy_value(target, whole)
    assert (target.boxes[0][1] == whole[1:3]).all()
    plain = torch.zeros(4, 3)
    copy_value(plain, Rows(whole, (0, 1), (1, 4)))
    assert (plain == whole).all()
    with pytest.raises(ValueError, match="in a different way"):
        copy_value(plain, Rows(whole, (0, 1)))
    with pytest.raises(ValueError, match=r"expected a tensor of shape \(4, 3\), got \(3, 4\)"):
        copy_value(plain, whole.T)


def test_invalid_boxes_are_rejected(torch):
    from teletensor.distributed.checkpoint._shards import boxes_of

    class Bad:
        def __shards__(self):
            return (4,), [((3,), torch.zeros(2))]

    with pytest.raises(ValueError, match=r"returned a box \(2,\) at \(3,\) of a tensor \(4,\)"):
        boxes_of(Bad())


def test_nested_state_dicts(torch):
    from teletensor.distributed.checkpoint._nested import flatten_state_dict, set_element

    x, y = torch.ones(1), torch.ones(2)
    state = {"a": {"b": x, 3: [y, 5]}, "c": [1, {"d": 2}], "e": {}, "f": ()}
    flat, paths = flatten_state_dict(state)
    assert flat == {"a.b": x, "a.3.0": y, "a.3.1": 5, "c": [1, {"d": 2}], "e": {}, "f": ()}
    assert paths["a.3.0"] == ("a", 3, 0)
    set_element(state, paths["a.3.1"], 6)
    assert state["a"][3][1] == 6
    with pytest.raises(ValueError, match="two values named 'a.b'"):
        flatten_state_dict({"a": {"b": 1}, "a.b": 2})


def test_values_are_not_pickled():
    from teletensor._checkpoint import tree

    for value in (None, True, 3, 2.5, float("-inf"), "é", [1, (2, {3})], {"a": {1: b"\0"}, (1, 2): 2}, 1 - 2j):
        assert tree.decode(json.loads(json.dumps(tree.encode(value)))) == value
    for value in (object(), lambda: 0, type("L", (list,), {})(), {"a": {object(): 1}}):
        with pytest.raises(TypeError, match="cannot store an object"):
            tree.encode(value)
    bad = [{"os": "system"}, {"tensor": 1}, {"float": "1"}, {"dict": [[{"dict": []}, 1]]}, {}, {"a": 1, "b": 2}, {"dtype": "Tensor"},
           {"dict": [[2**70, 1]]}, {"set": [[1]]}, {"bytes": "!"}]  # fmt: skip
    for value in bad:
        with pytest.raises(ValueError):
            tree.decode(value)


GOOD = {
    "format": "teletensor.distributed.checkpoint", "version": 1, "values": {"n": 3}, "paths": {"n": ["n"]},
    "tensors": {"x": {"dtype": "float32", "shape": [2, 3], "boxes": [
        {"offsets": [0, 0], "sizes": [1, 3], "file": "a.safetensors", "tensor": "x"},
        {"offsets": [1, 0], "sizes": [1, 3], "file": "b.safetensors", "tensor": "x"},
    ]}},
}  # fmt: skip


def test_index_round_trip():
    from teletensor.distributed.checkpoint._index import from_json, to_json

    assert json.loads(to_json(from_json(GOOD))) == GOOD


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("format",), "x"), (("version",), 2), (("tensors",), []), (("paths",), {"n": [[]]}), (("values",), {"x": 1}),
        (("tensors", "x", "dtype"), "Tensor"), (("tensors", "x", "shape"), [2, -3]), (("tensors", "x", "shape"), [2, 4]),
        (("tensors", "x", "shape"), [2**62, 2**62]), (("tensors", "x", "shape"), "23"), (("tensors", "x", "boxes"), []),
        (("tensors", "x", "boxes", 0, "file"), "../a"), (("tensors", "x", "boxes", 0, "file"), ".."),
        (("tensors", "x", "boxes", 0, "file"), 1), (("tensors", "x", "boxes", 0, "tensor"), None),
        (("tensors", "x", "boxes", 0, "offsets"), [0]), (("tensors", "x", "boxes", 0, "offsets"), [0, 1]),
        (("tensors", "x", "boxes", 0, "sizes"), [1.0, 3]), (("tensors", "x", "boxes", 0), None),
    ],
)  # fmt: skip
def test_damaged_index(place, value):
    from teletensor.distributed.checkpoint._index import from_json

    index = json.loads(json.dumps(GOOD))
    inner = index
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match="the index is damaged"):
        from_json(index)
