"""This process's agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._agent import Agent

_agent: Agent | None = None


def agent() -> Agent:
    """Returns the agent. Raises RuntimeError before init_rpc() and after shutdown()."""
    if _agent is None:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
    return _agent


def set_agent(agent: Agent | None) -> None:
    global _agent
    _agent = agent
