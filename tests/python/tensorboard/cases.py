"""Calls of a SummaryWriter, by name: run with this package and with PyTorch (record.py)."""

from __future__ import annotations

import numpy as np


def _values(*shape: int) -> np.ndarray:
    """Numbers in [0, 1) that are the same everywhere."""
    return (np.arange(np.prod(shape)) * 0.37 % 1).reshape(shape).astype(np.float32)


def _tensor(torch, *shape: int):
    return torch.tensor(_values(*shape))


_LIMITS = [0.1, 0.25, 0.5, 0.75, 0.9]

CASES = {
    "scalar": lambda t, w: w.add_scalar("a", 1.5, 3, walltime=7.0),
    "scalar of a tensor": lambda t, w: w.add_scalar("a", t.tensor([[2.25]], requires_grad=True), 4),
    "scalar of an array": lambda t, w: w.add_scalar("a", np.float32(2.5)),
    "scalar of new style": lambda t, w: w.add_scalar("a", 0.1, 1, new_style=True),
    "scalar of double precision": lambda t, w: w.add_scalar("a", 0.1, 1, new_style=True, double_precision=True),
    "scalar of bfloat16": lambda t, w: w.add_scalar("a", t.tensor(1.5, dtype=t.bfloat16)),
    "order": lambda t, w: [w.add_scalar("a", t.tensor(i) if i % 2 else i, i) for i in range(6)],
    "histogram": lambda t, w: w.add_histogram("h", _tensor(t, 20) + 0.5, 1),
    "histogram of both signs": lambda t, w: w.add_histogram("h", t.tensor([-1.0, -0.9, 1.0, 1.1, 1.2]), 1),
    "histogram of an array": lambda t, w: w.add_histogram("h", _values(20) + 0.5, 1),
    "histogram with limits": lambda t, w: w.add_histogram("h", _tensor(t, 5, 8), bins=_LIMITS),
    "histogram with values at limits": lambda t, w: w.add_histogram("h", t.tensor([0.0, 1.0, 1.0, 2.0, 3.0]), bins=[0, 1, 2]),
    "histogram of integers": lambda t, w: w.add_histogram("h", t.tensor([0, 1, 1, 2, 3]), bins=[0, 1, 2, 4, 5]),
    "histogram with a number of bins": lambda t, w: w.add_histogram("h", _tensor(t, 40), bins=5),
    "histogram with a rule": lambda t, w: w.add_histogram("h", _tensor(t, 40), bins="auto"),
    "histogram with fewer bins": lambda t, w: w.add_histogram("h", _tensor(t, 40), bins=10, max_bins=3),
    "histogram of bins of the engine with fewer bins": lambda t, w: w.add_histogram("h", _tensor(t, 40), bins=_LIMITS, max_bins=3),
    "raw histogram": lambda t, w: w.add_histogram_raw("h", 0, 3, 4, 5, 6, [1, 2, 3], [1, 2, 1], 9),
    "image": lambda t, w: w.add_image("i", _tensor(t, 3, 4, 5), 1),
    "image with one channel": lambda t, w: w.add_image("i", _tensor(t, 1, 4, 5)),
    "image HWC": lambda t, w: w.add_image("i", _tensor(t, 4, 5, 3), dataformats="HWC"),
    "image HW": lambda t, w: w.add_image("i", _values(4, 5) * 1.5 - 0.2, dataformats="HW"),
    "image of bytes": lambda t, w: w.add_image("i", (_tensor(t, 3, 4, 5) * 255).to(t.uint8)),
    "images": lambda t, w: w.add_images("i", _tensor(t, 11, 3, 2, 3)),
    "images NHWC": lambda t, w: w.add_images("i", _tensor(t, 3, 2, 3, 1), dataformats="NHWC"),
    "image with boxes": lambda t, w: w.add_image_with_boxes("i", _tensor(t, 3, 20, 30), t.tensor([[2, 3, 20, 15]])),
    "image with labelled boxes": lambda t, w: w.add_image_with_boxes("i", _tensor(t, 3, 40, 30), np.array([[2, 3, 20, 35]]),
                                                                    rescale=2, labels="x"),
    "sound": lambda t, w: w.add_audio("s", _tensor(t, 1, 30) * 2 - 1, 2, sample_rate=8000),
    "text": lambda t, w: w.add_text("t", "**é**", 5),
    "curve": lambda t, w: w.add_pr_curve("p", (_tensor(t, 40) > 0.5).to(t.int64), _tensor(t, 40) * 0.9, 2, num_thresholds=9),
    "curve with weights": lambda t, w: w.add_pr_curve("p", _values(10) > 0.4, _values(10), num_thresholds=5, weights=_values(10)),
    "curve with many thresholds": lambda t, w: w.add_pr_curve("p", t.tensor([0, 1]), t.tensor([0.2, 1.0]), num_thresholds=300),
    "raw curve": lambda t, w: w.add_pr_curve_raw("p", *_values(6, 4), num_thresholds=4),
    "chart": lambda t, w: w.add_custom_scalars_multilinechart(["a", "b"], "c", "d"),
    "chart with a margin": lambda t, w: w.add_custom_scalars_marginchart(["a", "b", "c"]),
    "charts": lambda t, w: w.add_custom_scalars({"x": {"y": ["Multiline", ["a"]], "z": ["Margin", ["a", "b", "c"]]}}),
    "mesh": lambda t, w: w.add_mesh("m", _tensor(t, 1, 4, 3), colors=t.tensor([[[1, 2, 3]] * 4]), faces=t.tensor([[[0, 1, 2]]]),
                                    config_dict={"b": 1, "a": 2}),
    "float32": lambda t, w: w.add_tensor("x", _tensor(t, 2, 3), 1),
    "float16": lambda t, w: w.add_tensor("x", t.tensor([1.5, -2.0], dtype=t.float16)),
    "bfloat16": lambda t, w: w.add_tensor("x", t.tensor([1.5, -2.0], dtype=t.bfloat16)),
    "complex64": lambda t, w: w.add_tensor("x", t.tensor([1 + 2j])),
    "int16": lambda t, w: w.add_tensor("x", t.tensor([1, -2], dtype=t.int16)),
    "uint8": lambda t, w: w.add_tensor("x", t.tensor([1, 200], dtype=t.uint8)),
    "bool": lambda t, w: w.add_tensor("x", t.tensor([True, False])),
    "hyperparameters": lambda t, w: w.add_hparams({"lr": 0.1, "n": 3, "name": "x", "flag": True, "t": t.tensor([2.5]), "none": None},
                                                  {"accuracy": t.tensor(0.5)}, {"name": ["x", "y"], "n": [3, 4]}, "run", 7),
    "scalars": lambda t, w: w.add_scalars("m/n", {"a": 1.0, "b": t.tensor(2)}, 3),
    "embedding": lambda t, w: w.add_embedding(_tensor(t, 4, 2), ["a", "b", "c", "d"], _tensor(t, 4, 3, 5, 6), 2, "x/y"),
    "embedding with columns": lambda t, w: [w.add_embedding(_values(2, 3), [["a", 1], ["b", 2]], metadata_header=["p", "q"]),
                                            w.add_embedding(_values(2, 3), tag="other")],
}  # fmt: skip
