"""The store through which the engines of this process's run form groups."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class _RunStore:
    address: str = ""  # host:port
    token: str = ""
    run: str = ""  # prefix of the groups' names in the store


run_store = _RunStore()  # init_process_group() sets the attributes
