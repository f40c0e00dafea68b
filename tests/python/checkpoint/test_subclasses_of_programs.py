"""torch.save and torch.load of tensors of a class that the program defines."""

from __future__ import annotations

import io

import pytest

import teletensor as torch


class Named(torch.Tensor):
    pass


def saved(value) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return file


def test_a_class_of_the_program():
    x = torch.ones(2).as_subclass(Named)
    x.label = "rows"
    found = torch.load(saved({"w": x}), weights_only=False)["w"]
    assert type(found) is Named and found.label == "rows" and found.tolist() == [1.0, 1.0]


def test_weights_only_refuses_it():
    with pytest.raises(Exception, match="Named"):
        torch.load(saved(torch.ones(2).as_subclass(Named)), weights_only=True)
    with torch.serialization.safe_globals([Named]):
        assert type(torch.load(saved(torch.ones(2).as_subclass(Named)), weights_only=True)) is Named
