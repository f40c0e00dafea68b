"""PyTorch's runs find the libraries, and nothing of the distribution that has teletensor under PyTorch's names."""

from tests.conformance.libraries import environment


def test_runs_of_pytorch_do_not_find_teletensor(tmp_path, monkeypatch):
    packages = tmp_path / "lib/python3.11/site-packages"
    for name in ("torch", "torchao", "torch-2.15.0+teletensor.dist-info", "timm", "timm-1.0.dist-info", "torchvision"):
        (packages / name).mkdir(parents=True)
    information = packages / "torch-2.15.0+teletensor.dist-info"
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.15.0+teletensor\n")
    (information / "RECORD").write_text(f"torch/__init__.py,,\ntorchao/__init__.py,,\n{information.name}/METADATA,,\n")
    (packages / "timm-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: timm\nVersion: 1.0\n")
    (tmp_path / "peers/lib/python3.11/site-packages").mkdir(parents=True)
    monkeypatch.setattr(environment, "VENV", tmp_path)
    monkeypatch.setattr(environment, "PEERS", tmp_path / "peers")
    for _ in range(2):  # the second run finds the links of the first
        folder = environment.paths("torch")[-1]
        assert sorted(path.name for path in folder.iterdir()) == ["timm", "timm-1.0.dist-info", "torchvision"]
    assert (folder / "timm").resolve() == packages / "timm"
