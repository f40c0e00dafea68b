"""DataLoader workers and distributed samplers."""

import pytest


def test_workers_have_worker_info(torch):
    data = torch.utils.data

    class Numbers(data.Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, i):
            info = data.get_worker_info()
            return i, info.id, info.num_workers

    started = []
    loader = data.DataLoader(
        Numbers(), batch_size=4, num_workers=2, worker_init_fn=started.append, multiprocessing_context="thread"
    )
    rows = [[t.tolist() for t in batch] for batch in loader]
    assert [i for batch in rows for i in batch[0]] == list(range(40))
    assert {w for batch in rows for w in batch[1]} <= {0, 1} and {n for batch in rows for n in batch[2]} == {2}
    assert sorted(started) == sorted(set(started)) and started
    assert data.get_worker_info() is None


def test_distributed_samplers_cover_all_samples(torch):
    data = torch.utils.data
    source = list(range(10))
    parts = [list(data.DistributedSampler(source, 3, rank, shuffle=False)) for rank in range(3)]
    assert parts == [[0, 3, 6, 9], [1, 4, 7, 0], [2, 5, 8, 1]]
    cut = [list(data.DistributedSampler(source, 3, rank, shuffle=False, drop_last=True)) for rank in range(3)]
    assert cut == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    shuffled = [data.distributed.DistributedSampler(source, 2, rank, seed=5) for rank in range(2)]
    first = [list(s) for s in shuffled]
    assert sorted(first[0] + first[1]) == source
    for s in shuffled:
        s.set_epoch(1)
    assert [list(s) for s in shuffled] != first
    with pytest.raises(ValueError, match="Invalid rank 3"):
        data.DistributedSampler(source, 3, 3)


def test_flatten_dense_tensors(torch):
    tensors = [torch.ones(2, 3), torch.zeros(4)]
    flat = torch._utils._flatten_dense_tensors(tensors)
    assert [t.tolist() for t in torch._utils._unflatten_dense_tensors(flat, tensors)] == [t.tolist() for t in tensors]
    assert [len(b) for b in torch._utils._take_tensors([torch.ones(4)] * 5, 32)] == [2, 2, 1]


def values(batch):
    return batch.tolist() if hasattr(batch, "tolist") else batch


def numbers(torch, count):
    """An iterable data set of 0 ... count - 1, of which each worker yields its share."""

    class Numbers(torch.utils.data.IterableDataset):
        def __init__(self):
            self.end = count

        def __iter__(self):
            worker = torch.utils.data.get_worker_info()
            return iter(range(self.end)) if worker is None else iter(range(worker.id, self.end, worker.num_workers))

        def __len__(self):
            return self.end

    return Numbers()


@pytest.mark.parametrize(
    "options, length, batches",
    [
        ({"batch_size": 3}, 4, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]),
        ({"batch_size": 3, "drop_last": True}, 3, [[0, 1, 2], [3, 4, 5], [6, 7, 8]]),
        ({"batch_size": 3, "num_workers": 2}, 4, [[0, 2, 4], [1, 3, 5], [6, 8], [7, 9]]),
        ({"batch_size": 3, "num_workers": 3, "prefetch_factor": 1}, 4, [[0, 3, 6], [1, 4, 7], [2, 5, 8], [9]]),
        ({"batch_size": 3, "num_workers": 2, "drop_last": True}, 3, [[0, 2, 4], [1, 3, 5]]),
        ({"batch_size": None, "num_workers": 2, "collate_fn": lambda x: -x}, 10, [-i for i in range(10)]),
    ],
)
def test_batches_of_an_iterable_dataset(torch, options, length, batches):
    loader = torch.utils.data.DataLoader(numbers(torch, 10), **options)
    assert len(loader) == length
    assert [values(b) for b in loader] == batches
    assert [values(b) for b in loader] == batches


def test_workers_change_their_own_copy_of_an_iterable_dataset(torch):
    data = torch.utils.data

    def begin(number):
        data.get_worker_info().dataset.end = 4 + number

    dataset = numbers(torch, 0)
    loader = data.DataLoader(dataset, batch_size=None, num_workers=2, worker_init_fn=begin)
    assert list(loader) == [0, 1, 2, 3] and dataset.end == 0


def test_an_error_in_a_worker_of_an_iterable_dataset(torch):
    class Broken(torch.utils.data.IterableDataset):
        def __iter__(self):
            yield 1
            raise KeyError("sample")

    batches = iter(torch.utils.data.DataLoader(Broken(), num_workers=2))
    assert next(batches).tolist() == next(batches).tolist() == [1]
    with pytest.raises(KeyError, match="sample"):
        next(batches)


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_without_batches(torch, workers):
    np = pytest.importorskip("numpy")
    data, arrays = torch.utils.data, [np.array([i]) for i in range(5)]
    loader = data.DataLoader(arrays, batch_size=None, sampler=[3, 1], num_workers=workers)
    assert len(loader) == 2 and [x.tolist() for x in loader] == [[3], [1]]
    named = data.DataLoader(arrays, batch_size=None, num_workers=workers, collate_fn=lambda x: ("sample", int(x[0])))
    assert list(named) == [("sample", i) for i in range(5)]


def test_getitems_fetches_a_whole_batch(torch):
    class Tens(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitems__(self, indices):
            return [10 * i for i in indices]

    assert [b.tolist() for b in torch.utils.data.DataLoader(Tens(), batch_size=3)] == [[0, 10, 20], [30]]


def test_invalid_options_of_an_iterable_dataset(torch):
    for options in ({"batch_size": 0}, {"batch_sampler": []}, {"num_workers": 1, "prefetch_factor": 0}):
        with pytest.raises(ValueError, match="batch_size=0|unspecified batch_sampler|prefetch_factor"):
            torch.utils.data.DataLoader(numbers(torch, 3), **options)


def test_default_collate_and_default_convert(torch):
    from collections import OrderedDict, UserDict, defaultdict

    np = pytest.importorskip("numpy")
    data = torch.utils.data
    assert data.default_collate([1.5, 2.5]).dtype is torch.float64
    assert data.default_collate([np.float32(1)]).dtype is torch.float32
    assert data.default_collate([range(2), range(2)])[1].tolist() == [1, 1]
    assert data.default_collate([np.str_("a"), np.str_("b")]) == ["a", "b"]
    for kind in (OrderedDict, UserDict):
        collated = data.default_collate([kind(a=1), kind(a=2)])
        assert type(collated) is kind and collated["a"].tolist() == [1, 2]
    for batch in ([None], [1j], [np.array(["a"])]):
        with pytest.raises(TypeError, match="default_collate: batch must contain"):
            data.default_collate(batch)
    converted = data.default_convert(defaultdict(list, a=(np.array([1]), "b")))
    assert converted["a"][0].tolist() == [1] and converted["a"][1] == "b" and converted["c"] == []


def test_dataset_combinations_check_their_parts(torch):
    data = torch.utils.data
    assert len(data.ChainDataset([numbers(torch, 3), numbers(torch, 4)])) == 7
    with pytest.raises(AssertionError, match="does not support IterableDataset"):
        data.ConcatDataset([numbers(torch, 3)])
    for args, options in ((([1], [1, 2]), {}), ((), {}), (([1],), {"a": [1]})):
        with pytest.raises(ValueError, match="Size mismatch|At least one dataset|both types"):
            data.StackDataset(*args, **options)
