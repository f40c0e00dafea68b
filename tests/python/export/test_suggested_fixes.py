"""Violated constraints: the declarations that messages suggest, and draft_export, which uses them."""

from __future__ import annotations

import pytest


def branching(torch):
    class Branching(torch.nn.Module):
        def forward(self, x, y):
            return x - y if x.shape[0] <= 5 else x + y

    return Branching()


def fixed(torch):
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x.view(3, -1) * 2

    return Fixed()


def declared(torch, *names):
    n, m, k = (torch.export.Dim(name) for name in ("n", "m", "k"))
    return [{"x": {0: n}, "y": {0: m}}, {"x": {0: n}, "y": {0: n}}, {"x": {0: n, 1: k}, "y": {0: n}}]


# PyTorch's suggestions for the same modules and declarations.
SUGGESTIONS = [{"n = Dim('n', max=5)", "m = n"}, {"n = Dim('n', max=5)"}, {"n = Dim('n', max=5)", "k = 4"}]


@pytest.mark.parametrize("place", range(3))
def test_suggestions_are_pytorchs_and_can_be_applied(torch, place):
    from teletensor.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes

    shapes, arguments = declared(torch)[place], (torch.randn(3, 4), torch.randn(3, 4))
    with pytest.raises(RuntimeError, match="Constraints violated") as e:
        torch.export.export(branching(torch), arguments, dynamic_shapes=shapes)
    _, _, text = str(e.value).partition("Suggested fixes:")
    assert {line.strip() for line in text.splitlines() if line.strip()} == SUGGESTIONS[place]
    shapes = refine_dynamic_shapes_from_suggested_fixes(str(e.value), shapes)
    program = torch.export.export(branching(torch), arguments, dynamic_shapes=shapes)
    x, y = torch.randn(5, 4), torch.randn(5, 4)
    torch.testing.assert_close(program.module()(x, y), x - y)
    with pytest.raises(AssertionError, match="<= 5"):
        program.module()(torch.randn(6, 4), torch.randn(6, 4))


def test_a_constant_is_suggested(torch):
    with pytest.raises(RuntimeError, match=r"Suggested fixes:\n  n = 4"):
        torch.export.export(torch.nn.Linear(4, 2), (torch.randn(2, 4),), dynamic_shapes=({1: torch.export.Dim("n")},))


def test_draft_export_limits_sizes_and_reports(torch):
    arguments = torch.randn(3, 4), torch.randn(3, 4)
    program = torch.export.draft_export(branching(torch), arguments, dynamic_shapes=declared(torch)[0])
    assert [r.upper for r in program.range_constraints.values()] == [5]
    report = program._report
    assert not report.successful()
    assert [str(f.failure_type) for f in report.failures] == ["GUARD_ADDED"] * 2
    assert "n = Dim('n', max=5)" in str(report)
    program = torch.export.draft_export(branching(torch), arguments)
    assert program._report.successful()
    assert "Congratulations" in str(program._report)
