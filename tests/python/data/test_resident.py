"""Data sets stored in the engine, and augmentations there."""

import pytest

np = pytest.importorskip("numpy")


@pytest.fixture
def images(torch):
    """64 images whose pixels encode sample, channel, row and column: value = n * 1000 + c * 100 + row * 10 + column +
    1.
    """
    n, c, y, x = np.ogrid[:64, :2, :6, :7]
    return torch.from_numpy((n * 1000 + c * 100 + y * 10 + x + 1).astype(np.int32))


def waits(torch):
    return torch.connection().counters()["waits"]


@pytest.mark.parametrize("size, padding", [((4, 5), 0), (6, 0), (6, 2), ((1, 1), 3), ((6, 7), 0)])
def test_random_crop(torch, images, size, padding):
    """Each result is a window of the padded image; windows differ; none leaves the image."""
    from teletensor.utils.data.augment import RandomCrop

    torch.manual_seed(1)
    before = waits(torch)
    cropped = RandomCrop(size, padding)(images)
    assert waits(torch) == before
    height, width = (size, size) if isinstance(size, int) else size
    padded = np.pad(images.numpy(), [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    found = set()
    for image, source in zip(cropped.numpy(), padded):
        windows = np.lib.stride_tricks.sliding_window_view(source, (height, width), (1, 2))
        at = np.argwhere((windows == image[:, None, None]).all((0, 3, 4)))
        assert len(at) >= 1 and image.shape == (2, height, width)
        found.add(tuple(at[0]))
    possible = (7 + 2 * padding - height) * (8 + 2 * padding - width)
    assert len(found) == 1 if possible == 1 else len(found) >= min(possible, 4)
    torch.manual_seed(1)
    assert torch.equal(RandomCrop(size, padding)(images), cropped)


@pytest.mark.parametrize("name, axis", [("RandomHorizontalFlip", -1), ("RandomVerticalFlip", -2)])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_random_flips(torch, images, name, axis, p):
    from teletensor.utils.data import augment

    flipped, plain = getattr(augment, name)(p)(images).numpy(), images.numpy()
    reversed_ = [np.array_equal(f, np.flip(i, axis)) for f, i in zip(flipped, plain)]
    same = [np.array_equal(f, i) for f, i in zip(flipped, plain)]
    assert all(a != b for a, b in zip(reversed_, same))
    assert {0.0: sum(reversed_) == 0, 0.5: 10 < sum(reversed_) < 54, 1.0: sum(same) == 0}[p]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "int32"])
def test_normalize(torch, dtype):
    from teletensor.utils.data.augment import Normalize

    array = np.arange(2 * 3 * 4 * 4).reshape(2, 3, 4, 4).astype(dtype)
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.3, 0.5)
    scale = 1 if dtype.startswith("float") else 255
    expected = (array.astype(np.float64) / scale - np.reshape(mean, (3, 1, 1))) / np.reshape(std, (3, 1, 1))
    found = Normalize(mean, std)(torch.from_numpy(array))
    assert found.dtype is (torch.float64 if dtype == "float64" else torch.float32)
    np.testing.assert_allclose(found.numpy(), expected, rtol=2e-6, atol=2e-6)


def test_transform_of_a_pinned_dataset(torch, images):
    from teletensor.utils.data import DataLoader, PinnedDataset, Subset
    from teletensor.utils.data.augment import Normalize, RandomCrop, on

    labels = torch.arange(64)
    steps = on(0, RandomCrop(4), Normalize((0.0, 0.0), (2.0, 4.0), scale=1.0))
    dataset = PinnedDataset.from_tensors(images, labels, transform=steps)
    for loader in (DataLoader(dataset, 16), DataLoader(Subset(dataset, range(64)), 16, num_workers=1)):
        for i, (x, y) in enumerate(loader):
            assert x.shape == (16, 2, 4, 4) and y.tolist() == list(range(16 * i, 16 * i + 16))
            assert ((x[:, 0] * 2).numpy() // 1000 == np.arange(16 * i, 16 * i + 16)[:, None, None]).all()
    sample = dataset[-1]
    assert type(sample) is tuple and sample[0].shape == (2, 4, 4) and sample[1].item() == 63
    samples = next(iter(DataLoader(dataset, 2, collate_fn=list)))  # without gathering
    assert samples[1][0].shape == (2, 4, 4)
    pinned = PinnedDataset([{"x": np.zeros((1, 3, 3)), "y": i} for i in range(5)], transform=on("x", RandomCrop(2)))
    assert next(iter(DataLoader(pinned, 5)))["x"].shape == (5, 1, 2, 2) and pinned[3]["y"].item() == 3


def test_a_batch_does_not_wait(torch, images):
    from teletensor.utils.data import DataLoader, PinnedDataset
    from teletensor.utils.data.augment import Compose, Normalize, RandomCrop, RandomHorizontalFlip, on

    steps = Compose(RandomCrop(6, 2), RandomHorizontalFlip(), Normalize((0.5, 0.5), (0.5, 0.5)))
    loader = DataLoader(PinnedDataset.from_tensors(images, transform=on(0, steps)), 8, shuffle=True)
    torch.synchronize()
    before = torch.connection().counters()
    for batch in loader:
        last = batch
    after = torch.connection().counters()
    assert after["waits"] == before["waits"] and last[0].shape == (8, 2, 6, 6)
    assert after["instructions"] - before["instructions"] <= 8 * 24


def test_rejected_arguments(torch, images):
    from teletensor.utils.data import PinnedDataset, augment

    rows = (
        (lambda: augment.RandomCrop(8)(images), r"at least \[8, 8\] with a padding of 0, got \[6, 7\]"),
        (lambda: augment.RandomCrop(0), "positive size"),
        (lambda: augment.RandomHorizontalFlip(1.5), r"expected p in \[0, 1\], got 1.5"),
        (lambda: augment.RandomHorizontalFlip()(images[0]), r"images of shape \(N, C, H, W\), got \[2, 6, 7\]"),
        (lambda: augment.Normalize((0.5,), (0.0,)), "std other than 0"),
        (lambda: augment.Normalize((0.5,), (1.0,))(images), "expected 1 channels"),
        (lambda: PinnedDataset.from_tensors(images, images[:3]), r"equal length, got the lengths \[64, 3\]"),
        (lambda: PinnedDataset.from_tensors(), r"equal length, got the lengths \[\]"),
    )
    for function, message in rows:
        with pytest.raises(ValueError, match=message):
            function()
    with pytest.raises(TypeError, match=r"\[on\] expected a batch that is a list"):
        augment.on(0)(images)
