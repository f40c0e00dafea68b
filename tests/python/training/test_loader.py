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
    loader = data.DataLoader(Numbers(), batch_size=4, num_workers=2, worker_init_fn=started.append)
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
