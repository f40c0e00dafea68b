"""Errors of torch.export."""

from __future__ import annotations


class UserError(RuntimeError):
    """The program or the declared sizes cannot be exported as they are."""
