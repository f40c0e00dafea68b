"""Reasons for failures of PyTorch's unit tests with teletensor: by a regular expression over "file::class::test: message".

The first match counts. An error with another text has the expected type, as assertRaisesRegex passes on others.
"""

from __future__ import annotations

_PRIVATE = "uses a private name of PyTorch"
_SAYS_SO = "is refused with an error that says so (docs/differences)"
_COPY = "shares memory with an array, whose tensor is a copy (docs/differences/tensors.md)"
_COUNTS = r"(frame_count|op_count|num_placeholders|counters\[|graphs)"
_REFUSED = ("does not find out whether", "the engine has stored the tensor", "has no values in the engine", "forward mode: expected")
REASONS: dict[str, str] = {
    rf"does not match .*({'|'.join(_REFUSED)})": _SAYS_SO,
    r"\[save\] cannot save an object of type|PackageExporter: a package contains pickles": _SAYS_SO,
    r""": AssertionError: ["'].*["'] does not match ["']""": "an error has another text",
    r"AttributeError: (module 'teletensor[\w.]*'|'teletensor\.Tensor' object) has no attribute '_(?!_)": _PRIVATE,
    r"(Attribute|ModuleNotFound|Import)Error: .*'(torch|teletensor)\.[\w.]*\b_[a-z][\w.]*'": _PRIVATE,
    r"UntypedStorage\._cdata|'_OpNamespace' 'aten' object has no attribute '_|does not have the attribute '_(?!_)": _PRIVATE,
    r"skipped: Skipped: PyTorch is built without (mkldnn|MKL)": "requires PyTorch's MKL or mkldnn",
    rf"Scalars are not equal!.* at self\.assert\w+\(.*{_COUNTS}": "counts graphs, or operators in them",
    r"Failed: Unexpected success": "passes where PyTorch is expected to fail",
    r"test_autograd::.*::test_autograd_inplace_views_cross_dtype: ": "expects the wrong gradient that the test describes",
    r"AbsentName(: | is raised)|<tests\.conformance\.distributed\.absent\.Abs": _PRIVATE,
    r"not implemented yet \(docs/names\.md\)": "uses a name that teletensor lacks (docs/names.md)",
    r"got torch\.complex32|'chalf'|!= torch\.complex32": "complex numbers of half precision (docs/differences/numbers.md)",
    r"more than one element of the written-to tensor": "writes to an expanded tensor (docs/differences/tensors.md)",
    r"Object comparison failed: \d+ != \d+ at .*(data_ptr\(\)|__array_interface__)|can't alias ndarray": _COPY,
    r"no warning caught at .*not writable|no warning caught at .*non-writable": _COPY,
    r"test_numpy_interop::.*test___eq__": "writes to the array of a tensor, which is a copy (docs/differences/tensors.md)",
    r"::test_sobolengine_\w*scrambled: .* not close": "scrambles with other random numbers (docs/differences/random.md)",
    r"test_segment_reductions::.*got tensor\(": "passes arguments in the order of a set",
}
