"""Tensor.item_async(): numbers that are requested without waiting."""

import pytest

import teletensor as torch


def test_value_is_from_the_time_of_the_call():
    x = torch.arange(3.0)
    before = x.sum().item_async()
    total = x.sum()
    pending = total.item_async()
    total += 10  # later instructions do not change the value
    after = total.item_async()
    assert (before.wait(), pending.wait(), after.wait()) == (3.0, 3.0, 13.0)
    assert pending.wait() == 3.0  # may be repeated


def test_value_is_from_the_time_of_the_call_in_every_frame():
    x, parts = torch.zeros(()), torch.zeros(3)
    part, expected, pending = parts[1], [], []
    for i in range(3000):
        x += 1
        parts += 2
        pending += [x.item_async(), part.item_async()]
        expected += [i + 1.0, 2.0 * (i + 1)]
        if i % 7 == 0:
            torch.connection().flush()  # so that reads precede the first instruction of a frame
        x += 1
        x -= 1
    assert [p.wait() for p in pending] == expected


def test_intermediate_result_of_a_chain():
    x = torch.full((1 << 15,), 2.0)
    one = torch.ones(1)
    y = x * 3 + one
    first = (y[:1] * 2).item_async()
    one.mul_(5)
    second = one.item_async()
    z = y * one
    assert (first.wait(), second.wait(), z[0].item()) == (14.0, 5.0, 35.0)


def test_released_tensor():
    x = torch.ones(3)
    pending = [(x * i).sum().item_async() for i in range(100)]
    del x
    assert [p.wait() for p in pending] == [3.0 * i for i in range(100)]


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(True, "bool"), (-3, "int64"), (200, "uint8"), (0.5, "float16"), (2.5, "float64"), (1 + 2j, "complex64"), (2**64 - 1, "uint64")],
)
def test_types(value, dtype):
    number = torch.tensor(value, dtype=getattr(torch, dtype)).item_async().wait()
    assert number == value
    assert type(number) is type(value)


def test_done_becomes_true_without_wait():
    pending = (torch.ones(512, 512) @ torch.ones(512, 512)).sum().item_async()
    while not pending.done():
        pass
    assert pending.wait() == 512.0**3


def test_many_at_a_time():
    x = torch.zeros(())
    pending = []
    for _ in range(10_000):  # more than a frame may contain
        x += 1
        pending.append(x.item_async())
    assert [p.wait() for p in reversed(pending)] == [float(i) for i in range(10_000, 0, -1)]


def test_reads_without_instructions():
    x = torch.ones(())
    assert sum(p.wait() for p in [x.item_async() for _ in range(20_000)]) == 20_000


def test_pending_item_dropped_before_arrival():
    x = torch.ones(1000)
    for _ in range(100):
        x.sum().item_async()
    pending = x.sum().item_async()
    del x
    assert pending.wait() == 1000


def test_error_is_raised_by_wait():
    indices = torch.tensor([5])
    pending = torch.arange(3)[indices].sum().item_async()
    with pytest.raises(IndexError, match="out of range|out of bounds"):
        pending.wait()
    with pytest.raises(IndexError):
        pending.wait()


def test_error_leaves_other_numbers():
    x = torch.ones(())
    before = x.item_async()
    failed = torch.arange(3)[torch.tensor([5])].sum()
    pending, after = failed.item_async(), (x + 1).item_async()
    with pytest.raises(IndexError):
        pending.wait()
    assert (before.wait(), after.wait()) == (1.0, 2.0)


def test_cannot_be_created_directly():
    with pytest.raises(TypeError, match="cannot create 'teletensor.PendingItem' instances"):
        type(torch.ones(()).item_async())()


def test_requires_one_element():
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        torch.ones(2).item_async()
    with pytest.raises(RuntimeError, match="meta"):
        torch.ones(1, device="meta").item_async()

