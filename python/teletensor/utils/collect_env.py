"""torch.utils.collect_env: describes this machine and the engine, for bug reports.

    python -m teletensor.utils.collect_env
"""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import NamedTuple

from .. import _connection
from .._version import __version__

__all__ = ["SystemEnv", "get_env_info", "get_pip_packages", "get_pretty_env_info", "main", "sys"]

_PACKAGES = ("numpy", "teletensor", "safetensors", "transformers", "lightning", "einops")


class SystemEnv(NamedTuple):
    """What get_env_info found."""

    torch_version: str
    is_debug_build: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    nvidia_gpu_models: list[str]
    nvidia_driver_version: str
    cpu_info: str
    pip_packages: list[str]
    engine_version: str


def get_pip_packages() -> list[str]:
    """The versions of related packages that are installed here."""
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def get_env_info() -> SystemEnv:
    """Describes this machine and the engine. Connects to it if there is no connection yet."""
    engine = _connection.connection().engine()
    gpus = [d for d in engine["devices"] if d["device"].startswith("cuda")]
    cpu = next(d for d in engine["devices"] if d["device"].startswith("cpu"))
    return SystemEnv(
        torch_version=__version__,
        is_debug_build="False",
        os=platform.platform(),
        libc_version="-".join(platform.libc_ver()),
        python_version=sys.version.replace("\n", " "),
        python_platform=platform.platform(),
        is_cuda_available=str(bool(gpus)),
        nvidia_gpu_models=[f"{d['device']}: {d['name']}" for d in gpus],
        nvidia_driver_version=gpus[0]["driver"] if gpus else "N/A",
        cpu_info=cpu["name"],
        pip_packages=get_pip_packages(),
        engine_version=engine["version"],
    )


def get_pretty_env_info() -> str:
    """The description as text."""
    lines = []
    for name, value in get_env_info()._asdict().items():
        shown = "\n  ".join(["", *value]) if isinstance(value, list) else f" {value}"
        lines.append(f"{name.replace('_', ' ')}:{shown}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Prints the description."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
