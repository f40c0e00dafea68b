"""torch.backends.cpu: the instruction set of the CPU."""

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """Always "DEFAULT": the engine uses its own CPU's instructions, and the client does not compute."""
    return "DEFAULT"
