"""The environments of the programs: .venv-libraries has the libraries, and a distribution `torch` that is teletensor.

PyTorch's runs use .venv-peers, with the libraries of .venv-libraries behind its own packages.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VENV, PEERS = ROOT / ".venv-libraries", ROOT / ".venv-peers"
AS_TORCH = ROOT / "deploy/teletensor-as-torch"

# Installed without their dependencies, one of which is torch.
LIBRARIES = (
    "accelerate", "einops", "gpytorch", "lightning", "lightning-utilities", "linear_operator", "peft", "pyro-ppl",
    "pytorch-lightning", "safetensors", "sentence-transformers", "stable-baselines3", "timm", "torch_geometric", "torchmetrics",
    "torchvision", "transformers",
)  # fmt: skip
# Dependencies of the libraries and of teletensor.
DEPENDENCIES = (
    "aiohttp", "annotated-doc", "cloudpickle", "filelock", "fsspec", "grpcio", "gymnasium", "h2", "huggingface_hub", "jaxtyping",
    "jinja2", "matplotlib", "mpmath", "networkx", "numpy", "opt_einsum", "packaging", "pandas", "pillow", "protobuf", "psutil",
    "pyparsing", "pyro-api", "pyyaml", "regex", "requests", "scikit-learn", "scipy", "setuptools", "shellingham", "sympy",
    "tokenizers", "tqdm", "typer", "typing_extensions", "xxhash",
)  # fmt: skip


def prepare() -> None:
    """Creates or updates .venv-libraries if the lists have changed.

    Raises:
        SystemExit: there is no .venv-peers.
    """
    if not (PEERS / "bin/python").exists():
        sys.exit("no .venv-peers with PyTorch: run make bench-peers once")
    wanted, stamp = "\n".join([*LIBRARIES, *DEPENDENCIES]), VENV / "requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"libraries: creating {VENV.name}")
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    install = [str(VENV / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--no-deps", *LIBRARIES, str(AS_TORCH)], check=True)
    subprocess.run([*install, *DEPENDENCIES], check=True)
    stamp.write_text(wanted)


def _packages(venv: Path) -> Path:
    return next((venv / "lib").glob("python3*")) / "site-packages"


def interpreter(library: str) -> str:
    """The Python of a run with "teletensor" or "torch"."""
    return str((VENV if library == "teletensor" else PEERS) / "bin/python")


def paths(library: str) -> list[Path]:
    """The path of a run: the programs, and teletensor or PyTorch before the libraries."""
    return [ROOT, ROOT / "build/python"] if library == "teletensor" else [ROOT, _packages(PEERS), _packages(VENV)]


def version_of(package: str) -> str:
    """The installed version of a package."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([str(VENV / "bin/python"), "-c", code], check=True, capture_output=True, text=True).stdout.strip()
