"""torch.hub: entry points of a folder's hubconf.py, and files of weights. Repositories are not downloaded."""

from __future__ import annotations

import builtins
import contextlib
import hashlib
import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from . import _C

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the hash in a file's name
_READ_BYTES = 1 << 20
_directory: str | None = None


def __getattr__(name: str) -> Any:
    """The progress bar of tqdm, if that package is installed: libraries import it from here."""
    if name == "tqdm":
        try:
            from tqdm import tqdm
        except ImportError as error:
            raise AttributeError("torch.hub.tqdm: the package tqdm is not installed") from error
        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_dir() -> str:
    """The folder of the hub: that of set_dir(), $TORCH_HOME/hub, $XDG_CACHE_HOME/torch/hub or ~/.cache/torch/hub."""
    if _directory is not None:
        return _directory
    return os.path.join(_get_torch_home(), "hub")


def _get_torch_home() -> str:
    """The folder of PyTorch's downloads: $TORCH_HOME, $XDG_CACHE_HOME/torch or ~/.cache/torch."""
    if named := os.environ.get("TORCH_HOME"):
        return os.path.expanduser(named)
    if not (cache := _C.user_folder("cache")):
        raise RuntimeError("expected an absolute path in HOME, XDG_CACHE_HOME or the password database: set HOME or TORCH_HOME")
    return os.path.join(cache, "torch")


def set_dir(d: str | os.PathLike) -> None:
    """Sets the folder of the hub."""
    global _directory
    _directory = os.path.expanduser(d)


def _module(folder: str | os.PathLike) -> Any:
    """Runs a folder's hubconf.py and returns its module. Its imports also search the folder."""
    path = Path(folder, "hubconf.py")
    if not path.is_file():
        raise FileNotFoundError(f"expected a folder with a hubconf.py, found no file {path}")
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("hubconf", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    missing = [n for n in getattr(module, "dependencies", None) or [] if not _importable(n)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _importable(name: str) -> bool:
    return (name == "torch" or name in sys.modules) or importlib.util.find_spec(name) is not None


def _entry(module: Any, model: str) -> Any:
    if not isinstance(model, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, model, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {model} in hubconf")
    return found


def _folder(github: str | os.PathLike) -> str | os.PathLike:
    """The folder of a repository "owner/name[:ref]" in the hub, or a folder given by path."""
    if os.path.isfile(os.path.join(github, "hubconf.py")):
        return github
    owner_and_name, _, ref = str(github).partition(":")
    for reference in [ref] if ref else ["main", "master"]:
        folder = os.path.join(get_dir(), "_".join([*owner_and_name.split("/"), reference.replace("/", "_")]))
        if os.path.isfile(os.path.join(folder, "hubconf.py")):
            return folder
    raise NotImplementedError(
        f"torch.hub does not download repositories: clone {github} yourself and pass its folder (with source='local' to load)"
    )


def _check(force_reload: bool) -> None:
    if force_reload:
        raise NotImplementedError("force_reload=True is not supported: torch.hub does not download repositories")


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True) -> builtins.list[str]:
    """The names of the entry points of a folder, or of a repository that is in the hub already."""
    _check(force_reload)
    found = vars(_module(_folder(github)))
    return [name for name, value in found.items() if callable(value) and not name.startswith("_")]


def help(github, model: str, force_reload=False, skip_validation=False, trust_repo="check") -> str | None:
    """The docstring of an entry point."""
    _check(force_reload)
    return _entry(_module(_folder(github)), model).__doc__


def load(
    repo_or_dir, model: str, *args, source: str = "github", trust_repo="check", force_reload: bool = False, verbose: bool = True,
    skip_validation: bool = False, **kwargs,
) -> Any:  # fmt: skip
    """Calls an entry point: model(*args, **kwargs).

    Args:
        source: "local" for a folder, "github" for a repository that is in the hub already. `trust_repo`, `verbose` and
            `skip_validation` concern downloads, which raise NotImplementedError.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    _check(force_reload and source == "github")
    folder = repo_or_dir if source == "local" else _folder(repo_or_dir)
    return _entry(_module(folder), model)(*args, **kwargs)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Downloads a file. `dst` does not exist, or is the old file, until the download is complete.

    Args:
        hash_prefix: the beginning of the file's SHA-256 in hexadecimal digits, which is checked.
        progress: shows a bar if the package tqdm is installed.

    Raises:
        RuntimeError: the hash differs.
        OSError: the file cannot be fetched or written.
    """
    from urllib.request import Request, urlopen

    dst = os.path.expanduser(dst)
    digest = hashlib.sha256()
    with urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as answer:  # noqa: S310 - the caller chose the URL
        length = answer.headers.get("Content-Length")
        file = tempfile.NamedTemporaryFile(dir=os.path.dirname(os.path.abspath(dst)), suffix=".partial", delete=False)
        try:
            with file, _progress_bar(int(length) if length else None, progress) as bar:
                while part := answer.read(_READ_BYTES):
                    file.write(part)
                    digest.update(part)
                    if bar is not None:
                        bar.update(len(part))
            if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
            os.chmod(file.name, 0o666 & ~_umask())
            os.replace(file.name, dst)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.remove(file.name)
            raise


def _umask() -> int:
    before = os.umask(0o077)
    os.umask(before)
    return before


def _progress_bar(total: int | None, shown: bool) -> Any:
    tqdm = getattr(sys.modules[__name__], "tqdm", None) if shown else None
    return contextlib.nullcontext() if tqdm is None else tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024)


def load_state_dict_from_url(
    url: str, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False
) -> dict:
    """Loads a file of the folder `model_dir` (checkpoints in the hub), which is downloaded if it is not there.

    Args:
        check_hash: whether the name of the file has the form ``name-HASH.ext``, with 8 or more digits of its SHA-256, which
            are checked when it is downloaded.
    """
    from . import load as load_file

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else os.path.expanduser(model_dir)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        found = HASH_REGEX.search(name) if check_hash else None
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        download_url_to_file(url, path, found[1] if found else None, progress=progress)
    return load_file(path, map_location=map_location, weights_only=weights_only)
