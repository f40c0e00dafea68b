"""Layouts, memory formats and results of out= in functions that are captured whole."""

from __future__ import annotations

import teletensor as torch


def compiled(function):
    return torch.compile(function, fullgraph=True, backend="eager")


def test_memory_formats_and_layouts_are_constants():
    x = torch.rand(2, 3, 4, 4)
    last = torch.channels_last

    def moved(t):
        return t.to(memory_format=last) + 1

    def checked(t):
        return t if t.is_contiguous(memory_format=last) else t.contiguous(memory_format=last) + 1

    def strided(t):
        return t * 2 if t.layout == torch.strided and t.layout is torch.strided else t

    for function in (moved, checked, strided):
        got, expected = compiled(function)(x), function(x)
        assert torch.equal(got, expected) and got.stride() == expected.stride()
    assert compiled(lambda t: t.clone(memory_format=torch.preserve_format) + torch.zeros(4, layout=torch.strided))(x).shape == x.shape


def test_a_format_that_changes_is_guarded():
    formats = [torch.contiguous_format]

    def moved(t):
        return t.to(memory_format=formats[0]) * 1

    run, x = torch.compile(moved, backend="eager"), torch.rand(2, 3, 4, 4)
    assert run(x).stride() == (48, 16, 4, 1)
    formats[0] = torch.channels_last
    assert run(x).stride() == (48, 1, 12, 3)


def test_named_results_of_out_and_sizes_by_name():
    p, q = torch.empty(2, 2), torch.empty(2, 2, dtype=torch.int32)
    found = torch.compile(lambda x, p, q: torch.frexp(x, out=(p, q)), backend="eager")(torch.eye(2), p, q)
    assert found.mantissa.tolist() == [[0.5, 0], [0, 0.5]] and found.exponent.tolist() == [[1, 0], [0, 1]]
    assert compiled(lambda x: x + x.size(dim=0))(torch.ones(2)).tolist() == [3, 3]
