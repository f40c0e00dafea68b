"""Uploads: the instruction that waits for the bytes is issued before the tensor's first use."""

import gc
import threading

import pytest

from tests.conftest import IN_PROCESS

np = pytest.importorskip("numpy")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="an engine in this process receives uploads at once")]


def upload(torch, value, count=100_000):
    return torch.from_numpy(np.full(count, value, np.float32))


def issued(torch):
    """The number of instructions so far, of which the garbage of earlier tests causes no more."""
    return torch.connection().counters()["instructions"]


def test_is_issued_by_the_first_use(torch):
    gc.collect()
    torch.synchronize()
    before = issued(torch)
    a, b = upload(torch, 1), upload(torch, 2)
    assert issued(torch) == before
    total = b.sum()
    assert issued(torch) == before + 2 and total.item() == 200_000
    assert a.numpy()[5] == 1 and issued(torch) == before + 3
    c = upload(torch, 3)
    torch.synchronize()
    assert issued(torch) == before + 4 and c[0].item() == 3


def test_every_kind_of_use(torch):
    base = torch.zeros(100_000)
    assert torch.cat([upload(torch, 1), base])[0].item() == 1
    assert upload(torch, 2).view(10, -1)[3, 4].item() == 2
    assert upload(torch, 2).add_(1).sum().item() == 300_000
    assert torch.mul(base + 2, 3, out=upload(torch, 0)).sum().item() == 600_000
    assert base.copy_(upload(torch, 4)).sum().item() == 400_000
    assert upload(torch, 5).numpy_async().wait().sum() == 500_000
    assert upload(torch, 1, 20_000).tolist() == [1] * 20_000
    weight = torch.nn.Parameter(upload(torch, 2))
    (weight * upload(torch, 3)).sum().backward(torch.ones(()))
    assert weight.grad.sum().item() == 300_000
    leaf = upload(torch, 1).requires_grad_()
    leaf.grad = upload(torch, 7)
    assert leaf.grad.sum().item() == 700_000
    other = torch.empty(3)
    other.data = upload(torch, 6)
    assert other.sum().item() == 600_000
    assert torch.nonzero(upload(torch, 1, 20_000)).shape == (20_000, 1)


def test_more_than_the_engine_accepts_before_their_instructions(torch):
    tensors = [upload(torch, i, 20_000) for i in range(400)]
    assert [t[3].item() for t in reversed(tensors)] == list(range(399, -1, -1))


def test_unused_uploads_leave_nothing(torch):
    def held():
        gc.collect()
        torch.synchronize()
        return torch._C.ops.memory_stats(0).tolist()[-3]

    before = held()  # may include what earlier tests left, which the engine frees later
    for i in range(600):
        upload(torch, i, 20_000)
    assert held() < before + 80_000  # the bytes of one upload


def test_threads_share_an_upload(torch):
    for _ in range(20):
        shared, results = upload(torch, 3), []
        start = threading.Barrier(4)

        def use():
            start.wait()
            results.append(shared.sum().item())

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [300_000] * 4
