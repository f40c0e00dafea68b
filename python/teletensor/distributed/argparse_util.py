"""torch.distributed.argparse_util: argparse actions whose defaults are variables PET_<NAME> of the environment."""

from __future__ import annotations

import argparse
import os

__all__ = ["check_env", "env"]


class env(argparse.Action):  # noqa: N801 - PyTorch's name
    """Stores a value; the default is the variable ``PET_<DEST>`` if it is set. With it a required option may be absent."""

    def __init__(self, dest, default=None, required=False, **kwargs):
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(dest=dest, default=default, required=required and not default, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)


class check_env(argparse.Action):  # noqa: N801 - PyTorch's name
    """Stores True, without a value; the default is whether the variable ``PET_<DEST>`` is a number other than 0."""

    def __init__(self, dest, default=False, **kwargs):
        default = bool(int(os.environ.get(f"PET_{dest.upper()}", "1" if default else "0")))
        super().__init__(dest=dest, const=True, default=default, nargs=0, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, self.const)
