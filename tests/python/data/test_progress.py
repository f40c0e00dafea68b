"""The progress bar over a loader: counts, waiting times, output."""

import sys
import time

import pytest

np = pytest.importorskip("numpy")


@pytest.mark.parametrize(
    "batch, samples",
    [
        ([np.zeros((5, 2)), np.zeros(5)], 5), ({"a": np.zeros(3)}, 3), (np.zeros(7), 7), (np.float32(1), 1), (["a", "b"], 2),
        ([[np.zeros(4)], 1], 4), ("text", 1), ([], 1), ([1, 2, 3], 3),
    ],
)  # fmt: skip
def test_samples_of_a_batch(batch, samples):
    from teletensor.utils.data.progress_bar import samples_of

    assert samples_of(batch) == samples


def test_figures(torch, capsys):
    def slow():
        for i in range(6):
            time.sleep(0.02)
            yield torch.full((4, 2), float(i))

    bar = torch.utils.data.progress(slow())
    assert bar.seconds == bar.engine_seconds == 0
    for i, batch in enumerate(bar):
        assert bar.batches == i + 1 and batch.mean().item() == i
        time.sleep(0.01)
    assert (bar.batches, bar.samples) == (6, 24)
    assert 6 * 0.02 <= bar.data_seconds < bar.seconds - 0.05 and 0 <= bar.engine_seconds < bar.seconds
    seconds = bar.seconds
    time.sleep(0.01)
    assert bar.seconds == seconds and bar.engine_seconds == bar.engine_seconds
    assert "samples/s, data" in bar.summary() and "engine" in bar.summary()
    assert capsys.readouterr() == ("", "")


def test_the_bar(torch, capsys):
    loader = torch.utils.data.DataLoader(range(20), 3)
    bar = torch.utils.data.progress(loader, "training", show=True)
    assert len(bar) == 7 and len(torch.utils.data.progress(loader, total=3)) == 3
    assert [b.tolist() for b in bar][-1] == [18, 19] and bar.samples == 20
    out, err = capsys.readouterr()
    assert out == "" and "training" in err and "7/7" in err and "samples/s" in err
    for _ in bar:  # again, and not to the end
        break
    assert bar.batches == 1
    unknown = torch.utils.data.progress(iter([1, 2]), show=True)
    assert list(unknown) == [1, 2]
    capsys.readouterr()


def test_a_bar_without_rich(torch, monkeypatch):
    for name in [m for m in sys.modules if m == "rich" or m.startswith("rich.")]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert list(torch.utils.data.progress([1])) == [1]
    with pytest.raises(ImportError, match=r"\[progress\] a progress bar needs the package rich"):
        list(torch.utils.data.progress([1], show=True))
