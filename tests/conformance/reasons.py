"""Why tests of others fail: by suite, and by a regular expression over their names. What is not here is a bug."""

from __future__ import annotations

REASONS: dict[str, dict[str, str]] = {
    "array API standard": {
        r"test_dunder_dlpack$": "requests `copy=False`: the bytes are in an engine, so exporting them copies, and the "
        "standard requires a BufferError",
        r"tanh\(real\(x_i\) is \+infinity and isfinite\(imag": "tanh(inf + 2j) is 1 - 0j, as in C "
        "(0 has the sign of sin(4)) and in NumPy",
    },
    "einops": {
        r"test_torch_layer$": "pickles tensors, which are stored in an engine: use `save`",
        r"test_torch_compile_with_dynamic_shape": "inspects torch._dynamo: `compile` returns the model",
    },
    "opt_einsum": {
        r"test_sharing_nesting\[torch\]": "expects from_numpy() to share the array's memory and keep it alive; "
        "teletensor copies",
    },
    "TensorLy": {
        r"test_backend::test_lstsq$": "expects no residuals for a matrix of low rank; the rank depends on data",
    },
}
