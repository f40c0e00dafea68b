"""Reasons for failures in third-party suites: by suite, and by a regular expression over test names. Any other
failure is a bug."""

from __future__ import annotations

REASONS: dict[str, dict[str, str]] = {
    "array API standard": {
        r"test_dunder_dlpack$": "asks for `copy=False`: the bytes are in an engine, what leaves is a copy, and the "
        "standard asks for BufferError then",
        r"tanh\(real\(x_i\) is \+infinity and isfinite\(imag": "tanh(inf + 2j) is 1 - 0j, as C has it "
        "(0 has the sign of sin(4)); NumPy's too",
    },
    "einops": {
        r"test_torch_layer$": "pickles tensors, which are the engine's: `save` writes them",
        r"test_torch_compile_with_dynamic_shape": "looks into torch._dynamo: `compile` returns the model",
    },
    "opt_einsum": {
        r"test_sharing_nesting\[torch\]": "relies on from_numpy() sharing the array's memory, and so keeping it alive; "
        "ours copies",
    },
    "TensorLy": {
        r"test_backend::test_lstsq$": "wants no residuals for a matrix of low rank; which rank it has depends on data",
    },
}
