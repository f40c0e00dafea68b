"""torch.testing.assert_close: what it accepts, and the messages of its errors."""

import numpy as np

from .record import error

NAN = float("nan")


def pairs(torch):
    """Rows of (actual, expected, options)."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    y = torch.tensor([[1.0, 2.5], [3.0, 6.0]])
    i = torch.tensor([1, 2, 3])
    return [
        (x, x + 1e-6, {}), (x, y, {}), (x, y, {"rtol": 0.5, "atol": 0.1}), (x, y, {"rtol": 0.0, "atol": 0.0}),
        (x, y, {"rtol": 0.1}), (x, y[0], {}), (x, x.double(), {}), (x, x.double(), {"check_dtype": False}),
        (x, (y.double()), {"check_dtype": False}), (x, x.T, {}), (x.T, x.T.contiguous(), {"check_stride": True}),
        (i, i, {}), (i, i + torch.tensor([0, 1, 2]), {}), (i, i + 1, {"rtol": 1.0, "atol": 0.0}),
        (torch.tensor(True), torch.tensor(False), {}), (torch.tensor([True, False]), torch.tensor([True, True]), {}),
        (torch.tensor(1.0), torch.tensor(2.0), {}), (torch.tensor([1.0]), torch.tensor([0.0]), {}),
        (torch.tensor([1 + 2j]), torch.tensor([1 + 3j]), {}),
        (torch.tensor([1.0, NAN]), torch.tensor([1.0, NAN]), {}), (torch.tensor([1.0, NAN]), torch.tensor([1.0, NAN]), {"equal_nan": True}),
        (torch.tensor([float("inf")]), torch.tensor([float("inf")]), {}),
        (1, 1, {}), (1, 2, {}), (1.0, 1.0 + 1e-9, {}), (1.0, 1.5, {}), (1, 1.0, {}), (1, 1.0, {"check_dtype": False}),
        (1j, 2j, {}), (NAN, NAN, {}), (NAN, NAN, {"equal_nan": True}), (0.5, 0.0, {}), (3, 0, {"rtol": 0.1, "atol": 0.1}),
        (True, True, {}), (True, False, {}), (None, None, {}), (None, 1, {}), ("a", "a", {}), (x, 3.0, {}),
        ([x, 1], [x, 1], {}), ([x, 1], [x, 2], {}), ([1], [1, 2], {}), ((1, [x]), (1, [y]), {}), ([], [], {}),
        ({"a": x}, {"a": x}, {}), ({"a": x, "b": 1}, {"a": y, "b": 1}, {}), ({"a": 1, "c": 2}, {"a": 1, "b": 3}, {}),
        ({"k": [1, {"z": 2}]}, {"k": [1, {"z": 3}]}, {}), (np.array([1.0, 2.0]), np.array([1.0, 2.5]), {}),
        (x, y, {"msg": "another text"}), (x, y, {"msg": lambda text: "first line\n" + text[:20]}),
        (torch.nn.Parameter(x), x, {}), (torch.nn.Parameter(x), x, {"allow_subclasses": False}),
        (x.half(), x.half() + 1, {}), (x.bfloat16(), x.bfloat16() * 1.01, {}), (torch.zeros(2, 0), torch.zeros(2, 0), {}),
        (torch.empty(2, device="meta"), torch.empty(2, device="meta"), {}),
        (torch.empty(2, device="meta"), torch.empty(3, device="meta"), {}),
    ]  # fmt: skip


def case_assert_close(torch):
    rows = [error(torch.testing.assert_close, a, e, **options) for a, e, options in pairs(torch)]
    return [row.replace(torch.__name__, "torch") for row in rows]
