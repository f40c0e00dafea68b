"""torch.return_types: every type is that of the results of its function, printed with its name."""

import pytest


def test_types_are_those_of_results(torch):
    x, types = torch.eye(2) + 1, torch.return_types
    results = {
        "max": torch.max(x, 0), "sort": x.sort(), "topk": torch.topk(x, 1), "aminmax": torch.aminmax(x), "frexp": torch.frexp(x),
        "linalg_qr": torch.linalg.qr(x), "linalg_slogdet": torch.linalg.slogdet(x), "slogdet": torch.slogdet(x),
        "max_out": torch.max(x, 0, out=(torch.empty(2), torch.empty(2, dtype=torch.int64))),
    }  # fmt: skip
    for name, result in results.items():
        assert type(result) is getattr(types, name), name
        assert repr(result).startswith(f"torch.return_types.{name}(")
    assert types.max((x, x)).values is x
    assert set(results) <= set(types.__all__) <= set(dir(types))


def test_names_that_no_function_returns(torch):
    with pytest.raises(AttributeError, match="return_types"):
        _ = torch.return_types.matmul


def test_groups_of_an_optimizer_are_printed_apart(torch):
    optimizer = torch.optim.SGD([{"params": [torch.ones(1)]}, {"params": [torch.ones(1)], "lr": 1.0}], lr=0.5)
    assert "    weight_decay: 0\n\nParameter Group 1\n" in repr(optimizer)
