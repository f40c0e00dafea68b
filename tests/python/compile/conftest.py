"""The tensors that the tests' functions use as global variables belong to the session of the test, which others replace."""

from __future__ import annotations

import pytest

import teletensor as torch

from . import rows

_sessions: dict[str, object] = {}


@pytest.fixture(autouse=True)
def _tensors_of_the_session(request):
    for module in (rows, request.module):
        if hasattr(module, "make_tensors") and _sessions.get(module.__name__) is not torch.connection():
            module.make_tensors()
            _sessions[module.__name__] = torch.connection()
