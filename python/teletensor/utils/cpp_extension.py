"""torch.utils.cpp_extension: compiles operators in C++ and CUDA."""

from __future__ import annotations

import os
import shutil
import tempfile

from .._not_implemented import not_implemented

CUDA_HOME = os.environ.get("CUDA_HOME")
ROCM_HOME = None


def is_ninja_available() -> bool:
    """Whether the build tool ninja is installed."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Raises RuntimeError unless ninja is installed."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def get_default_build_root() -> str:
    """The folder in which PyTorch would build extensions."""
    return os.path.realpath(os.path.join(tempfile.gettempdir(), "torch_extensions"))


not_implemented(
    globals(), "the engine runs no code of clients; declare operators in engine/ops, or compose those of torch",
    "CUDAExtension CppExtension SyclExtension check_compiler_is_gcc check_compiler_ok_for_platform "
    "get_compiler_abi_compatibility_and_version get_cxx_compiler include_paths library_paths load load_inline "
    "remove_extension_h_precompiler_headers",
    "BuildExtension",
)  # fmt: skip
