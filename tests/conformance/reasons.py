"""Reasons for failures in third-party suites: by suite, and by a regular expression over test names. Any other
failure is a bug."""

from __future__ import annotations

REASONS: dict[str, dict[str, str]] = {
    "array API standard": {
        r"test_dunder_dlpack$": "requests `copy=False`: the data is in an engine and can only be copied, for which the "
        "standard requires BufferError",
        r"tanh\(real\(x_i\) is \+infinity and isfinite\(imag": "tanh(inf + 2j) is 1 - 0j, as in C "
        "(0 has the sign of sin(4)) and NumPy",
    },
    "einops": {
        r"test_torch_layer$": "pickles tensors; tensors are in the engine and are saved with `save`",
        r"test_torch_compile_with_dynamic_shape": "inspects torch._dynamo's symbolic sizes; sizes are constants of compiled functions",
    },
    "opt_einsum": {
        r"test_sharing_nesting\[torch\]": "relies on from_numpy() sharing the array's memory, and so keeping it alive; "
        "teletensor copies",
    },
    "TensorLy": {
        r"test_backend::test_lstsq$": "expects no residuals for a matrix of low rank; the rank depends on data",
    },
}
