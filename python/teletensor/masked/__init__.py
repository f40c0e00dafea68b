"""torch.masked: tensors with a mask, and functions over unmasked elements, i.e. those whose mask is True (docs/masked.md)."""

from .._lazy import lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_calls": "MaskedTensor is_masked_tensor",  # with the operators on masked tensors
    "_creation": "as_masked_tensor masked_tensor",
    "_functions": (
        "_input_mask amax amin argmax argmin cumprod cumsum log_softmax logaddexp logsumexp mean median norm normalize prod "
        "softmax softmin std sum var"
    ),
}

__all__ = [  # noqa: F822 - imported at their first use
    "MaskedTensor", "amax", "amin", "argmax", "argmin", "as_masked_tensor", "cumprod", "cumsum", "is_masked_tensor",
    "log_softmax", "logaddexp", "logsumexp", "masked_tensor", "mean", "median", "norm", "normalize", "prod", "softmax",
    "softmin", "std", "sum", "var",
]  # fmt: skip

__getattr__, __dir__ = lazy_attributes(globals(), None, _NAMES)
