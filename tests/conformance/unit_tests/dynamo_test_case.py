"""Stands in for torch._dynamo.test_case and torch._inductor.test_case, which set private options around each test."""

from __future__ import annotations

import contextlib

import torch
from torch.testing._internal.common_utils import TestCase as _TestCase
from torch.testing._internal.common_utils import run_tests  # noqa: F401


class TestCase(_TestCase):
    """A test of torch.compile: starts and ends without compiled functions and counters."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls._exit_stack = contextlib.ExitStack()  # to which tests add settings

    @classmethod
    def tearDownClass(cls) -> None:
        cls._exit_stack.close()
        super().tearDownClass()

    def setUp(self) -> None:
        super().setUp()
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()

    def tearDown(self) -> None:
        torch._dynamo.utils.counters.clear()
        super().tearDown()

    def assertEqual(self, x: object, y: object, *args: object, **options: object) -> None:
        """Ints of captured graphs compare as ints."""
        x, y = (int(value) if isinstance(value, torch.SymInt) else value for value in (x, y))
        super().assertEqual(x, y, *args, **options)
