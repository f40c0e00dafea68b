"""Kernels that torch.library.impl registers for device types in a library, and tags."""


def test_kernels_for_device_types_and_tags(torch):
    library = torch.library.Library("keys_and_tags", "FRAGMENT")
    for name, types in (("one", "cpu"), ("two", ("cpu", "cuda")), ("three", "default")):
        torch.library.define(f"keys_and_tags::{name}", "(Tensor x) -> Tensor", lib=library, tags=[torch.Tag.pointwise])
        torch.library.impl(f"keys_and_tags::{name}", types, lambda x: x + 1, lib=library)
        operator = getattr(torch.ops.keys_and_tags, name)
        assert operator(torch.ones(1)).tolist() == [2]
        assert operator.default.tags == [torch.Tag.pointwise]
