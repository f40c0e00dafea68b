"""The environments of the programs: .venv-libraries has the libraries, and a distribution `torch` that is teletensor.

PyTorch's runs use .venv-peers, with the libraries of .venv-libraries behind its own packages.
"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

from benchmarks import peers

ROOT = Path(__file__).resolve().parents[3]
VENV, PEERS = ROOT / ".venv-libraries", ROOT / ".venv-peers"
AS_TORCH = ROOT / "deploy/teletensor-as-torch"

# Installed without their dependencies, one of which is torch.
LIBRARIES = (
    "accelerate==1.15.0", "botorch==0.18.1", "captum==0.9.0", "diffusers==0.42.1", "e3nn==0.6.0", "einops==0.8.2",
    "entmax==1.3", "fastai==2.8.12", "fvcore==0.1.5.post20221221", "geoopt==0.5.1", "gpytorch==1.15.2", "kornia==0.9.0",
    "lightning-utilities==0.15.3", "lightning==2.6.6", "linear_operator==0.6.1", "monai==1.6.1", "nflows==0.14",
    "opacus==1.6.0", "open_clip_torch==3.3.0", "opt_einsum_fx==0.1.4", "peft==0.21.2", "pyro-ppl==1.9.2",
    "pytorch-ignite==0.5.5", "pytorch-lightning==2.6.6", "pytorch-metric-learning==2.9.0", "safetensors==0.8.0",
    "schedulefree==1.4.1", "sentence-transformers==6.2.0", "skorch==1.4.0", "snntorch==1.0.0", "stable-baselines3==2.9.2",
    "timm==1.0.31", "torch-einops-utils==0.2.0", "torch_geometric==2.8.1", "torchaudio==2.11.0", "torchcde==0.2.5",
    "torchdiffeq==0.2.5", "torchmetrics==1.9.0", "torchsde==0.2.6", "torchvision==0.29.2", "transformers==5.23.0",
    "vit-pytorch==1.26.14", "x-transformers==2.31.10", "zuko==1.6.0",
)  # fmt: skip
# Dependencies of the libraries and of teletensor.
DEPENDENCIES = (
    "aiohttp", "annotated-doc", "cloudpickle", "einx", "fastcore", "fastdownload", "fastlite", "fastprogress", "fasttransform",
    "filelock", "fsspec", "ftfy", "grpcio", "gymnasium", "h2", "huggingface_hub", "importlib_metadata", "iopath", "jaxtyping",
    "jinja2", "kornia_rs", "loguru", "matplotlib", "mpmath", "multipledispatch", "networkx", "numpy", "opt_einsum", "packaging",
    "pandas", "pillow", "plum-dispatch", "protobuf", "psutil", "pyparsing", "pyre_extensions", "pyro-api", "python-fasthtml",
    "pyyaml", "regex", "requests", "scikit-learn", "scipy", "setuptools", "shellingham", "sympy", "tabulate", "termcolor",
    "threadpoolctl", "tokenizers", "tqdm", "trampoline", "typer", "typing_extensions", "xxhash", "yacs",
)  # fmt: skip


def prepare() -> None:
    """Creates .venv-peers if it is missing, and .venv-libraries if it is missing or the lists have changed."""
    if not (PEERS / "bin/python").exists():
        print("libraries: creating .venv-peers with PyTorch", flush=True)
        peers.interpreter()
    wanted, stamp = "\n".join([*LIBRARIES, *DEPENDENCIES]), VENV / "requirements.txt"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    print(f"libraries: creating {VENV.name} with {len(LIBRARIES)} libraries", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    install = [str(VENV / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--no-deps", *LIBRARIES, str(AS_TORCH)], check=True)
    subprocess.run([*install, *DEPENDENCIES], check=True)
    stamp.write_text(wanted)


def _packages(venv: Path) -> Path:
    return next((venv / "lib").glob("python3*")) / "site-packages"


def _without_torch() -> Path:
    """A folder with links to what .venv-libraries has, except the distribution `torch` (torch, torchao and others)."""
    packages, folder = _packages(VENV), VENV / "without-torch"
    (torch,) = importlib.metadata.distributions(name="torch", path=[str(packages)])
    ours = {file.parts[0] for file in torch.files or ()}
    folder.mkdir(exist_ok=True)
    for entry in packages.iterdir():
        link = folder / entry.name
        if entry.name not in ours and not link.is_symlink():
            link.symlink_to(entry)
    return folder


def interpreter(library: str) -> str:
    """The Python of a run with "teletensor" or "torch"."""
    return str((VENV if library == "teletensor" else PEERS) / "bin/python")


def paths(library: str) -> list[Path]:
    """The path of a run: the programs, and teletensor or PyTorch before the libraries."""
    return [ROOT, ROOT / "build/python"] if library == "teletensor" else [ROOT, _packages(PEERS), _without_torch()]


def version_of(package: str) -> str:
    """The installed version of a package."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([str(VENV / "bin/python"), "-c", code], check=True, capture_output=True, text=True).stdout.strip()
