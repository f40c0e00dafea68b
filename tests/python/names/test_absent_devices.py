"""Modules of devices that the engine does not have act as in PyTorch's build for CPUs, whose outcomes are recorded."""

import json

import pytest

from .record_absent import RECORDED, codes, outcome

EXPECTED = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("code", codes())
def test_outcome(torch, code):
    assert outcome(torch, code) == EXPECTED[code]


# PyTorch's error is an AttributeError about an internal name of its build.
INTERNAL = [
    ("torch.xpu.reset_peak_memory_stats()", "AssertionError"), ("torch.xpu.reset_accumulated_memory_stats()", "AssertionError"),
    ("torch.xpu.change_current_allocator(None)", "AssertionError"), ("torch.mps.current_stream()", "RuntimeError"),
    ("torch.mps.stream(None)", "RuntimeError"), ("torch.mps.Event()", "RuntimeError"), ("torch.mtia.Stream()", "RuntimeError"),
]  # fmt: skip


@pytest.mark.parametrize("code, error", INTERNAL)
def test_errors_of_internal_names(torch, code, error):
    kind, name, message = outcome(torch, code)
    assert (kind, name) == ("error", error) and ("without" in message or "not compiled" in message)


def test_a_device_that_is_absent_has_a_module(torch):
    assert torch.get_device_module("xpu") is torch.xpu and not torch.get_device_module("mps").is_available()
