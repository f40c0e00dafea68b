"""torch.Event, and copies with non_blocking=True."""

import time

import pytest

from tests.conftest import IN_PROCESS


def work(torch):
    x = torch.ones(1000, 1000)
    for _ in range(3):
        x = x @ x / 1000
    return x


def test_event_of_the_cpu(torch):
    begin, end = torch.Event("cpu", enable_timing=True), torch.Event("cpu", enable_timing=True)
    assert end.query()  # never recorded, as in PyTorch
    begin.record()
    result = work(torch)
    end.record()
    end.synchronize()
    assert begin.query() and end.query()
    assert 0 < begin.elapsed_time(end) < 60_000 and result[0, 0].item() == 1
    with pytest.raises(RuntimeError, match="enable_timing=True"):
        torch.Event("cpu").elapsed_time(end)


def test_event_becomes_reached_without_a_wait(torch):
    event = torch.Event("cpu")
    work(torch)
    event.record()
    deadline = time.monotonic() + 60
    while not event.query():
        assert time.monotonic() < deadline
    event.synchronize()


@pytest.mark.skipif(IN_PROCESS, reason="requires a GPU")
def test_event_of_a_gpu(torch):
    begin, end = torch.Event(enable_timing=True), torch.Event("cuda", enable_timing=True)
    assert begin.device.type == "cuda"
    begin.record()
    end.record(torch.cuda.current_stream())
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError, match="expected a stream of cpu, got one of cuda"):
        torch.Event("cpu").record(torch.cuda.current_stream())


def test_event_arguments(torch):
    with pytest.raises(NotImplementedError, match="between processes"):
        torch.Event(interprocess=True)
    with pytest.raises(TypeError, match="enable_timing to be a bool"):
        torch.Event(enable_timing=1)


def test_non_blocking_copies_wait_for_nothing(torch):
    np = pytest.importorskip("numpy")
    source = np.ones(300_000, np.float32)
    target = torch.zeros(300_000)
    torch.synchronize()
    waits = torch.connection().counters()["waits"]
    target.copy_(source, non_blocking=True)
    target.copy_(torch.from_dlpack(source), non_blocking=True)
    source += 1  # the caller's memory may change as soon as the call has returned
    moved = target.to("cpu", non_blocking=True)
    assert moved is target
    assert torch.tensor(source).to("cpu", torch.float64, non_blocking=True, copy=True).dtype is torch.float64
    assert torch.connection().counters()["waits"] == waits or IN_PROCESS  # there the caller sends uploads
    assert target.sum().item() == 300_000
    with pytest.raises(TypeError, match="non_blocking to be a bool"):
        target.to("cpu", non_blocking=2)
