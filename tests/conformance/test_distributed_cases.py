"""Tests of the run of PyTorch's distributed tests: a test that fails, hangs or needs a missing name is reported."""

from __future__ import annotations

import numpy as np
import pytest

import teletensor as torch

from .distributed import __main__ as runner
from .distributed.absent import Absent, AbsentName, provide
from .distributed.assertions import TestCase, difference
from .distributed.ranks import Ranks, Setup, combine

FILE = """
import time, unittest
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase, skip_if_lt_x_gpu, TEST_SKIPS
from torch.nn.parallel.distributed import _NoSuchName
import torch

class Foo: pass
class Barrier: barrier_id = 0
def create_collectives_object_test_list(): return []

class TestDistBackend(MultiProcessTestCase):
    @classmethod
    def _run(cls, rank, name, file_name, pipe):
        self = cls(name)
        self.rank = rank
        dist.init_process_group("gloo", "file://" + file_name, world_size=2, rank=rank)
        self.run_test(name, pipe)

class DistributedTest:
    class _DistTestBase:
        def test_good(self):
            t = torch.ones(2)
            dist.all_reduce(t)
            self.assertEqual(t, torch.full((2,), 2.0))
        def test_wrong_on_one_rank(self): self.assertEqual(torch.tensor(self.rank), 0)
        def test_missing_name(self): _NoSuchName(3)
        def test_hangs(self):
            if self.rank == 1: time.sleep(60)
        @skip_if_lt_x_gpu(2)
        def test_gpu(self): pass

class TestAlone(unittest.TestCase):
    def test_alone(self): self.assertFalse(dist.is_initialized())
"""


@pytest.fixture
def ranks(tmp_path):
    file = tmp_path / "distributed_test.py"
    file.write_text(FILE)
    group = Ranks(Setup("gloo", 2, False), file, tmp_path / "log")
    yield group
    group.stop()


@pytest.mark.slow
def test_results_of_a_file(ranks):
    names = [name for _, name in ranks.names()]
    assert names == ["test_good", "test_gpu", "test_hangs", "test_missing_name", "test_wrong_on_one_rank", "test_alone"]
    results = {name: ranks.run(cls, name, limit=3 if name == "test_hangs" else 20) for cls, name in ranks.names()}
    states = {name: result["state"] for name, result in results.items()}
    assert states == {
        "test_good": "passed", "test_gpu": "skipped", "test_hangs": "failed", "test_missing_name": "absent",
        "test_wrong_on_one_rank": "failed", "test_alone": "passed",
    }  # fmt: skip
    assert results["test_hangs"]["reason"] == "rank 1 did not finish within 3 s"
    assert results["test_missing_name"]["reason"] == "torch.nn.parallel.distributed._NoSuchName"
    assert results["test_wrong_on_one_rank"]["rank"] == 1 and "1 of 1 elements" in results["test_wrong_on_one_rank"]["reason"]


def test_cause_precedes_its_consequences():
    replies = [{"state": "failed", "reason": "rank 1 has left the group"}, {"state": "failed", "reason": "KeyError: 3"}]
    assert combine(replies, 30)["reason"] == "KeyError: 3"


def test_judgement():
    reasons = [{"test": "x", "saying": "left", "why": "on purpose"}, {"test": "y", "result": "not run", "why": "needs it"}]
    assert runner.judge("x", {"state": "failed", "reason": "left"}, reasons) == ("differs", "on purpose")
    assert runner.judge("x", {"state": "failed", "reason": "else"}, reasons) == ("failed", "else")
    assert runner.judge("y", {"state": "absent", "reason": "torch.y"}, reasons) == ("not run", "needs it")
    assert runner.judge("z", {"state": "passed", "reason": "", "setup": "s"}, reasons) == ("passed", "s")


def test_differences_are_found():
    for a, b in (
        (torch.tensor([1.0]), torch.tensor([1.1])), (torch.tensor([1.0]), torch.tensor([1])), (torch.ones(2), torch.ones(3)),
        (torch.ones(2), "x"), ([1, 2], [1]), ({"a": 1}, {"b": 1}), ({"a": torch.ones(1)}, {"a": torch.zeros(1)}), (1, 2),
        (1.0, 1.1), ("a", "b"), (None, 0), (torch.tensor([1 + 1j]), torch.tensor([1 - 1j])),
    ):  # fmt: skip
        assert difference(a, b)
        with pytest.raises(AssertionError):
            TestCase().assertEqual(a, b)


def test_equal_values():
    for a, b in (
        (torch.tensor([np.nan]), torch.tensor([np.nan])), (torch.ones(2), torch.ones(2) + 1e-7), (torch.ones(()), 1),
        ((1, [2]), (1, [2])), (torch.Size([2]), (2,)),
    ):  # fmt: skip
        assert not difference(a, b)
    with pytest.raises(AssertionError):
        TestCase().assertNotEqual(1, 1)


def test_absent_names_raise_on_use():
    with pytest.raises(AbsentName, match="a.b"):
        Absent("a.b")()
    with pytest.raises(AbsentName, match="a.b.c"):
        Absent("a.b").c(1)
    assert provide("import json") == []
