"""torch.package: patterns, listings and importers."""

import collections

import pytest


@pytest.mark.parametrize(
    "include, exclude, separator, matching, others",
    [
        ("torch.**", (), ".", ["torch", "torch.nn", "torch.nn.functional"], ["torchvision", "a.torch"]),
        ("torch.*", (), ".", ["torch.nn"], ["torch", "torch.nn.functional"]),
        ("torch*.**", "torchvision.**", ".", ["torch", "torchaudio.x"], ["torchvision", "torchvision.ops"]),
        (["a/*.txt", "b/**"], ["b/c"], "/", ["a/x.txt", "b", "b/d/e"], ["a/x.py", "a/b/x.txt", "b/c"]),
        ("a.b+c", (), ".", ["a.b+c"], ["a.bbc"]),
    ],
)
def test_patterns(torch, include, exclude, separator, matching, others):
    group = torch.package.GlobGroup(include, exclude=exclude, separator=separator)
    assert [name for name in matching + others if group.matches(name)] == matching


def test_two_stars_are_a_whole_segment(torch):
    with pytest.raises(ValueError, match="entire path segment"):
        torch.package.GlobGroup("a.b**")
    assert repr(torch.package.GlobGroup("a")) == "GlobGroup(include=a, exclude=())"


def test_listings(torch):
    root = torch.package.Directory("root", True)
    for path in ("b.txt", "a/x/y.py", "a/z.py"):
        root._add_file(path)
    assert [root.has_file(p) for p in ("a", "a/x", "a/x/y.py", "b.txt", "a/y.py", "b.txt/c")] == [True] * 4 + [False] * 2
    assert str(root) == (
        "─── root\n    ├── a\n    │   ├── x\n    │   │   └── y.py\n    │   └── z.py\n    └── b.txt\n"
    )


def test_importers(torch):
    package = torch.package
    importer = package.sys_importer
    assert importer.get_name(collections.OrderedDict) == ("collections", "OrderedDict")
    assert importer.import_module("collections") is collections

    class Other(package.Importer):
        def import_module(self, module_name):
            if module_name != "mine":
                raise ModuleNotFoundError(module_name)
            return importer

    ordered = package.OrderedImporter(Other(), importer)
    assert ordered.import_module("mine") is importer and ordered.import_module("collections") is collections
    assert ordered.get_name(collections.OrderedDict) == ("collections", "OrderedDict")
    with pytest.raises(ModuleNotFoundError):
        ordered.import_module("no_such_module")
    with pytest.raises(package.ObjNotFoundError, match="was not found"):
        importer.get_name(lambda: None)
    pretender = type("OrderedDict", (), {"__module__": "collections"})
    with pytest.raises(package.ObjMismatchError, match="another object"):
        importer.get_name(pretender)
    with pytest.raises(TypeError, match="is not an Importer"):
        package.OrderedImporter(object()).import_module("json")
