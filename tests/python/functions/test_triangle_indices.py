"""triu_indices, tril_indices and the functions that use them."""

import itertools

import pytest

OFFSETS = [-(10**12), *range(-6, 7), 10**12]


@pytest.mark.parametrize("row, col", list(itertools.product((0, 1, 3, 5), (0, 1, 4, 5))))
def test_triangle_indices(torch, row, col):
    for offset in OFFSETS:
        places = list(itertools.product(range(row), range(col)))
        assert torch.triu_indices(row, col, offset).T.tolist() == [[i, j] for i, j in places if j - i >= offset]
        assert torch.tril_indices(row, col, offset).T.tolist() == [[i, j] for i, j in places if j - i <= offset]


def test_triangle_indices_are_computed_in_the_engine(torch):
    before = torch.connection().counters()["waits"]
    large = torch.triu_indices(2000, 2000, device="cpu", dtype=torch.int32)
    assert large.shape == (2, 2001000) and large.dtype is torch.int32
    assert torch.connection().counters()["waits"] == before
    assert large[:, -1].tolist() == [1999, 1999]
    assert torch.tril_indices(3, 3, device="meta").shape == (2, 6)


def test_invalid_arguments_of_triangle_indices(torch):
    for function in (torch.triu_indices, torch.tril_indices):
        for sizes in ((-1, 3), (3, -1)):
            with pytest.raises(RuntimeError, match="must be non-negative, got -1"):
                function(*sizes)
        with pytest.raises(NotImplementedError, match="int32 or int64"):
            function(2, 2, dtype=torch.float32)
        with pytest.raises(TypeError):
            function(2, 2.5)


@pytest.mark.parametrize("replacement", [False, True])
def test_combinations(torch, replacement):
    choose = itertools.combinations_with_replacement if replacement else itertools.combinations
    for n, r in itertools.product((0, 1, 4), (1, 2, 3)):
        expected = [list(c) for c in choose(range(n), r)]
        found = torch.combinations(torch.arange(n), r, replacement)
        assert found.tolist() == expected and found.shape == (len(expected), r)
    assert torch.combinations(torch.arange(3), 0).shape == (0,)
    with pytest.raises(RuntimeError, match="non-negative number, but got -1"):
        torch.combinations(torch.arange(3), -1)
