"""Tensor.numpy_async() and tolist_async(): values that are requested without waiting."""

import gc
import threading
import time

import pytest

from tests.conftest import IN_PROCESS
from tests.python.session.test_session import run_script

pytestmark = pytest.mark.slow

np = pytest.importorskip("numpy")
LARGE = 300_000  # elements of a value that is downloaded


@pytest.mark.parametrize("size", [(), (0,), (3, 2), (LARGE,)])
def test_value_is_that_of_the_call(torch, size):
    x = torch.arange(float(np.prod(size))).reshape(size)
    pending, expected = x.numpy_async(), x.numpy()
    listed = x.tolist_async()
    x += 1
    array = pending.wait()
    assert array.dtype == np.float32 and array.shape == size and np.array_equal(array, expected)
    assert pending.done() and pending.wait() is array
    assert listed.wait() == expected.tolist()
    array += 1  # the caller's own memory
    assert np.array_equal(x.numpy(), array)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int64", "float16", "float64", "complex64"])
def test_dtypes(torch, dtype):
    for count in (4, LARGE):
        x = (torch.arange(count) % 5).to(getattr(torch, dtype))
        array = x.numpy_async().wait()
        assert array.dtype == x.numpy().dtype and np.array_equal(array, x.numpy())


def test_many_answers_before_many_frames(torch):
    """More answers than the engine can write ahead, and then more frames than the client can."""
    values = [torch.full((16_000,), float(i)) for i in range(100)]
    pending = [value.numpy_async() for value in values]  # 6.4 MB
    sent = [torch.from_numpy(np.full(16_000, i, np.float32)) for i in range(100)]
    total = torch.stack(sent).sum(1)
    assert total.tolist() == [16_000.0 * i for i in range(100)]
    for i, array in enumerate(pending):
        assert np.array_equal(array.wait(), np.full(16_000, i, np.float32))


def test_views_and_gradients(torch):
    x = torch.arange(2.0 * LARGE).reshape(2, LARGE).requires_grad_()
    with pytest.raises(RuntimeError, match=r"Can't call numpy_async\(\) on Tensor that requires grad"):
        x.numpy_async()
    assert np.array_equal(x.t()[::2].numpy_async(force=True).wait(), x.detach().t()[::2].numpy())
    with pytest.raises(TypeError, match="BFloat16"):
        torch.zeros(3, dtype=torch.bfloat16).numpy_async()
    assert torch.ones(3, dtype=torch.bfloat16).tolist_async().wait() == [1, 1, 1]


def test_array_outlives_its_request(torch):
    array = torch.ones(LARGE).numpy_async().wait()
    gc.collect()
    assert array.sum() == LARGE


def test_many_at_a_time(torch):
    x = torch.zeros(LARGE // 10)
    pending = []
    for _ in range(100):
        x += 1
        pending.append(x.numpy_async())
    assert [p.wait()[-1] for p in reversed(pending)] == list(range(100, 0, -1))


def test_done_becomes_true_without_wait(torch):
    pending = torch.ones(LARGE).numpy_async()
    while not pending.done():
        pass
    assert pending.wait().sum() == LARGE


@pytest.mark.parametrize("count", [1, LARGE])
def test_error_is_raised_by_wait(torch, count):
    x = torch.arange(3)[torch.tensor([5])]  # this line
    pending = x.expand(count).numpy_async()
    for _ in range(2):
        with pytest.raises(IndexError, match=r"(out of range|out of bounds)[^$]*test_numpy_async.py"):
            pending.wait()
    assert pending.done()


def test_dropped_requests_leave_nothing(torch):
    def held():
        gc.collect()
        torch.synchronize()
        return torch._C.ops.memory_stats(0).tolist()[-3]  # bytes of this session

    x = torch.ones(LARGE)
    before = held()
    for _ in range(50):
        x.numpy_async()
    assert x.numpy_async().wait().sum() == LARGE
    deadline = time.monotonic() + 20
    while held() > before:  # downloads in progress keep their values
        assert time.monotonic() < deadline


@pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")
def test_end_of_the_session_is_raised_by_wait(daemon):
    script = """
import gc
import teletensor as torch

x = torch.ones(300_000)
received, pending, small = x.numpy_async(), [x.numpy_async() for _ in range(20)], x[:3].numpy_async()
received.wait()
torch.disconnect()
assert received.wait().sum() == 300_000
errors = 0
for request in [*pending, small]:
    try:
        array = request.wait()
        assert array[0] == 1
    except ConnectionError as error:
        assert "closed" in str(error), error
        errors += 1
    finally:
        del request
del pending, small, x
gc.collect()
print("ok", errors)
"""
    result = run_script(script, daemon)
    assert result.stdout.startswith("ok"), result.stderr


def test_threads_wait_for_the_same_session(torch):
    x, results = torch.arange(LARGE), []

    def read(i):
        results.append((x + i).numpy_async().wait()[0] == i)

    threads = [threading.Thread(target=read, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8
