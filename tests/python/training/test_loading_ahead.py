"""DataLoader: batches that are loaded and sent ahead of use, and data sets stored in the engine."""

import gc
import multiprocessing
import random
import threading
import time
from collections import namedtuple

import pytest

np = pytest.importorskip("numpy")


def bytes_of(tree):
    """The values of a batch, for comparisons bit for bit."""
    if hasattr(tree, "numpy"):
        return str(tree.dtype), tuple(tree.shape), tree.numpy().tobytes()
    if isinstance(tree, dict):
        return {key: bytes_of(value) for key, value in tree.items()}
    return [bytes_of(value) for value in tree] if isinstance(tree, (list, tuple)) else tree


class Samples:
    """Samples of arrays, tensors and numbers; an array is too large to be sent inside a frame."""

    def __init__(self, torch, count=23, width=20_000):
        self.torch, self.count, self.width = torch, count, width

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if not 0 <= i < self.count:
            raise IndexError(i)
        array = np.arange(self.width, dtype=np.float32) + i
        return {"x": array, "t": (self.torch.from_numpy(array[::-1].copy()), i), "f": i / 3, "b": i % 2 == 0}


def loaders(torch, dataset, **options):
    data = torch.utils.data
    yield data.prefetch(data.DataLoader(dataset, **options))
    yield data.prefetch(data.DataLoader(dataset, **options), 40)
    for workers, factor in ((1, None), (1, 4), (3, 2)):
        for persistent in (False, True):
            yield data.DataLoader(
                dataset, num_workers=workers, prefetch_factor=factor, persistent_workers=persistent, **options
            )


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"batch_size": 5}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}])
def test_batches_are_those_of_a_plain_loop(torch, options):
    dataset = Samples(torch)
    expected = [bytes_of(b) for b in torch.utils.data.DataLoader(dataset, **options)]
    for loader in loaders(torch, dataset, **options):
        assert len(loader) == len(expected)
        for _ in range(2):
            assert [bytes_of(b) for b in loader] == expected


def test_shuffled_order_is_the_same(torch):
    data, dataset = torch.utils.data, Samples(torch, 50, 1)

    def orders(make):
        loader = make(data.DataLoader, torch.Generator().manual_seed(7))
        return [[n for b in loader for n in b["t"][1].tolist()] for _ in range(2)]

    expected = orders(lambda new, g: new(dataset, 4, shuffle=True, generator=g))
    assert expected[0] != expected[1]
    assert orders(lambda new, g: new(dataset, 4, shuffle=True, generator=g, num_workers=3)) == expected
    assert orders(lambda new, g: data.prefetch(new(dataset, 4, shuffle=True, generator=g))) == expected
    pinned = data.PinnedDataset(dataset)
    assert orders(lambda new, g: new(pinned, 4, shuffle=True, generator=g)) == expected


@pytest.mark.parametrize("how", ["plain", "prefetch", "workers", "persistent"])
def test_an_error_is_raised_in_the_place_of_its_batch(torch, how):
    class Broken(Samples):
        def __getitem__(self, i):
            if i in (6, 7):
                raise KeyError("sample 6")
            return i

    data, options = torch.utils.data, {"num_workers": 2} if how in ("workers", "persistent") else {}
    loader = data.DataLoader(Broken(torch, 10), 2, persistent_workers=how == "persistent", **options)
    batches = iter(data.prefetch(loader, 3) if how == "prefetch" else loader)
    assert [next(batches).tolist() for _ in range(3)] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(KeyError, match="sample 6"):
        next(batches)
    assert next(batches).tolist() == [8, 9]  # as in PyTorch, the loop may continue
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(batches)


def test_an_error_of_the_sampler_and_of_a_later_stack(torch):
    def order():
        yield from (0, 1)
        raise OSError("sampler")

    class Ragged(Samples):
        def __getitem__(self, i):
            return self.torch.zeros(1 + (i == 3))

    for options in ({}, {"num_workers": 2}):
        batches = iter(torch.utils.data.DataLoader(Samples(torch), 1, sampler=order(), **options))
        next(batches), next(batches)
        with pytest.raises(OSError, match="sampler"):
            next(batches)
        batches = iter(torch.utils.data.DataLoader(Ragged(torch, 6), 2, **options))
        assert next(batches).tolist() == [[0], [0]]
        with pytest.raises(RuntimeError, match="stack"):
            next(batches)
        assert next(batches).tolist() == [[0], [0]]


def test_workers_are_assigned_and_persist(torch):
    data = torch.utils.data

    class Who(data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return data.get_worker_info().id, threading.get_ident(), data.get_worker_info().seed

    started = []
    threads = {"num_workers": 2, "multiprocessing_context": "thread", "worker_init_fn": started.append}
    loader = data.DataLoader(Who(), None, persistent_workers=True, **threads)
    epochs = [list(loader) for _ in range(3)]
    assert started == [0, 1] or started == [1, 0]
    assert [[row[0] for row in epoch] for epoch in epochs] == [[0, 1] * 3] * 3
    assert epochs[0] == epochs[1] == epochs[2]  # the same threads and seeds
    assert next(iter(loader))[0] == 0 and [row[0] for row in loader] == [0, 1] * 3  # after an early exit
    fresh = data.DataLoader(Who(), None, **threads)
    first, second = list(fresh), list(fresh)
    assert len(started) == 6 and {row[2] for row in first} != {row[2] for row in second}


def test_an_error_of_worker_init_fn(torch):
    def begin(number):
        raise ZeroDivisionError(f"worker {number}")

    with pytest.raises(ZeroDivisionError, match="worker 0"):
        next(iter(torch.utils.data.DataLoader(range(4), num_workers=2, worker_init_fn=begin)))


def test_batches_out_of_order(torch):
    class Late(Samples):
        released = multiprocessing.Event()

        def __getitem__(self, i):
            return (i == 0 and self.released.wait(20), i)[1]

    dataset = Late(torch, 6)
    batches = iter(torch.utils.data.DataLoader(dataset, None, num_workers=2, in_order=False))
    first = [next(batches) for _ in range(3)]
    assert 0 not in first
    dataset.released.set()
    assert sorted(first + list(batches)) == list(range(6))


@pytest.mark.slow
def test_early_exit_ends_the_workers(torch):
    calls = []

    class Counting(Samples):
        def __getitem__(self, i):
            calls.append(i)
            time.sleep(0.002)
            return i

    threads = threading.active_count()
    for _ in torch.utils.data.DataLoader(Counting(torch, 10_000), 2, num_workers=2, multiprocessing_context="thread"):
        break
    gc.collect()
    made = len(calls)
    assert made <= 2 * (2 * 2 + 1)
    time.sleep(0.05)
    assert len(calls) == made and threading.active_count() <= threads


@pytest.mark.slow
def test_unused_batches_leave_nothing_in_the_engine(torch):
    def held():
        gc.collect()
        torch.synchronize()
        return torch._C.ops.memory_stats(0).tolist()[-3]

    before = held()  # may include what earlier tests left, which the engine frees later
    for loader in loaders(torch, Samples(torch), batch_size=4):
        for _ in loader:
            break
        del loader, _
    ends = time.monotonic() + 30  # threads that load ahead end after their batch
    while held() >= before + 80_000 and time.monotonic() < ends:  # the bytes of one sample
        time.sleep(0.05)
    assert held() < before + 80_000


class Batch:
    """A batch with a pin_memory() of its own."""

    def __init__(self, samples):
        self.samples, self.pinned = samples, False

    def pin_memory(self):
        self.pinned = True
        return self


Pair = namedtuple("Pair", "a b")


@pytest.mark.slow
def test_options_have_their_effect(torch):
    data = torch.utils.data

    for workers in (0, 2):
        for pin in (False, True):
            loader = data.DataLoader(range(4), 2, collate_fn=lambda s: {"b": [Batch(s), "text"]}, pin_memory=pin, num_workers=workers)
            assert [b["b"][0].pinned for b in loader] == [pin] * 2
    batch = next(iter(data.DataLoader([Pair(1, "u"), Pair(2, "v")], 2, pin_memory=True, num_workers=1)))
    assert type(batch) is Pair and batch.a.tolist() == [1, 2] and batch.b == ("u", "v")
    assert data.DataLoader([1]).prefetch_factor is None and data.DataLoader([1], num_workers=1).prefetch_factor == 2
    with pytest.raises(AssertionError, match="timeout == 0"):
        iter(data.DataLoader([1], timeout=1))
    with pytest.raises(RuntimeError, match="device"):
        data.DataLoader([1], pin_memory_device="nowhere")
    with pytest.raises(ValueError, match="valid start method"):
        data.DataLoader([1], num_workers=1, multiprocessing_context="process")
    with pytest.raises(TypeError, match="valid context object"):
        data.DataLoader([1], num_workers=1, multiprocessing_context=3)
    context = multiprocessing.get_context("spawn")
    assert [b.item() for b in data.DataLoader([1], num_workers=1, multiprocessing_context=context)] == [1]
    for loader, batches in (([1], 2), (data.DataLoader([1], num_workers=1), 2), (data.DataLoader([1]), 0)):
        with pytest.raises(ValueError, match=r"\[prefetch\] expected"):
            data.prefetch(loader, batches)


def test_prefetch_loads_in_the_calling_thread_and_in_order(torch):
    seen = []

    class Noisy(Samples):
        def __getitem__(self, i):
            seen.append((i, threading.current_thread() is threading.main_thread()))
            return i, random.random()

    data = torch.utils.data
    results = []
    for wrap in (lambda loader: loader, lambda loader: data.prefetch(loader, 3)):
        random.seed(5)
        results.append([bytes_of(b) for b in wrap(data.DataLoader(Noisy(torch, 20), 4))])
    assert results[0] == results[1] and seen == 2 * [(i, True) for i in range(20)]
    seen.clear()
    next(iter(data.prefetch(data.DataLoader(Noisy(torch, 20), 4), 2)))
    assert len(seen) == 12


def test_tensor_dataset_makes_one_instruction_per_batch_and_tensor(torch):
    data = torch.utils.data
    x, y = torch.randn(64, 3), torch.arange(64)
    subset = data.random_split(data.TensorDataset(x, y), [48, 16])[0]

    def instructions(dataset):
        loader = iter(data.DataLoader(dataset, 16))
        before = torch.connection().counters()["instructions"]
        batch = next(loader)
        assert torch.equal(batch[0], x[batch[1]])
        return torch.connection().counters()["instructions"] - before

    torch.synchronize()
    assert instructions(data.TensorDataset(x, y)) == instructions(subset) <= 6  # 3 are the check's
    with pytest.raises(IndexError, match="64 is out of bounds for a data set of 64 samples"):
        list(data.DataLoader(data.TensorDataset(x), 2, sampler=[0, 64]))


def test_tensor_dataset_with_other_samples(torch):
    """A collate_fn gets a list of samples, and an overridden __getitem__ is called."""
    data, x = torch.utils.data, torch.arange(6)
    samples = next(iter(data.DataLoader(data.TensorDataset(x, -x), 3, collate_fn=lambda s: s)))
    assert [[t.item() for t in s] for s in samples] == [[0, 0], [1, -1], [2, -2]]

    class Doubled(data.TensorDataset):
        def __getitem__(self, i):
            return 2 * super().__getitem__(i)[0]

    for dataset in (Doubled(x), data.Subset(Doubled(x), range(6))):
        assert next(iter(data.DataLoader(dataset, 3))).tolist() == [0, 2, 4]


def test_pinned_dataset(torch):
    data, dataset = torch.utils.data, Samples(torch)
    pinned = data.PinnedDataset(dataset, num_workers=2)
    assert len(pinned) == 23 and len(pinned.tensors) == 5
    expected = [bytes_of(b) for b in data.DataLoader(dataset, 5)]
    assert [bytes_of(b) for b in data.DataLoader(pinned, 5)] == expected
    assert [bytes_of(b) for b in data.DataLoader(data.Subset(pinned, range(23)), 5, num_workers=2)] == expected
    sample = pinned[4]
    assert type(sample["t"]) is tuple and sample["t"][1].item() == 4 and sample["f"].dtype is torch.float64
    sent = torch.connection().counters()["bytes_sent"]
    for batch in data.DataLoader(pinned, 5):
        last = batch["t"][1]
    assert last.tolist() == [20, 21, 22]
    assert torch.connection().counters()["bytes_sent"] - sent < 20_000  # a batch has 800 KB


def test_pinned_dataset_rejects_what_it_cannot_store(torch):
    data = torch.utils.data
    ragged = [(np.zeros(3 + (i == 17)), i) for i in range(20)]
    with pytest.raises(ValueError, match=r"sample 0 has float64 \[3\] at \[0\], got float64 \[4\] at \[0\] of sample 17; pad or crop"):
        data.PinnedDataset(ragged)
    for samples, message in (
        ([1, 2.0], "sample 0 has int .* got float .* of sample 1"),
        ([(1, 2), (1,)], "expected 2 tensors as in sample 0, got 1 in sample 1"),
        ([], "at least one sample"),
    ):
        with pytest.raises(ValueError, match=message):
            data.PinnedDataset(samples)
    with pytest.raises(TypeError, match=r"got str at \['name'\] of sample 0"):
        data.PinnedDataset([{"name": "a"}])
    with pytest.raises(TypeError, match="expected a data set with __getitem__ and __len__, got generator"):
        data.PinnedDataset(i for i in range(3))

    class Huge(Samples):
        def __getitem__(self, i):
            return np.zeros(1 << 20)

    with pytest.raises(torch.OutOfMemoryError, match=r"the samples take 8,388,608 MB on cpu, where this session can use [\d,]+ MB"):
        data.PinnedDataset(Huge(torch, 1_000_000))
