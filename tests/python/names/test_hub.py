"""torch.hub: downloads of files, from URLs of this host's files."""

import hashlib

import pytest


def test_a_file_is_downloaded_and_checked(torch, tmp_path, capsys):
    data = bytes(range(256)) * 10
    source, digest = tmp_path / "source.bin", hashlib.sha256(data).hexdigest()
    source.write_bytes(data)
    target = tmp_path / "target.bin"
    target.write_text("old")
    with pytest.raises(RuntimeError, match='invalid hash value \\(expected "00", got'):
        torch.hub.download_url_to_file(source.as_uri(), str(target), hash_prefix="00", progress=False)
    assert target.read_text() == "old" and sorted(p.name for p in tmp_path.iterdir()) == ["source.bin", "target.bin"]
    torch.hub.download_url_to_file(source.as_uri(), str(target), hash_prefix=digest[:8], progress=False)
    assert target.read_bytes() == data
    with pytest.raises(OSError, match="No such file"):
        torch.hub.download_url_to_file((tmp_path / "none").as_uri(), str(target), progress=False)
    assert target.read_bytes() == data


def test_weights_are_downloaded_once(torch, tmp_path, capsys):
    file = tmp_path / "weights.pt"
    torch.save({"w": torch.arange(3.0)}, file)
    named = tmp_path / f"net-{hashlib.sha256(file.read_bytes()).hexdigest()[:8]}.pt"
    file.rename(named)
    folder = tmp_path / "models"
    for _ in range(2):
        state = torch.hub.load_state_dict_from_url(named.as_uri(), model_dir=str(folder), check_hash=True, progress=False)
        assert state["w"].tolist() == [0, 1, 2]
        if named.exists():
            assert "Downloading" in capsys.readouterr().err
            named.unlink()
    assert [p.name for p in folder.iterdir()] == [named.name]
    wrong = tmp_path / "net-00000000.pt"
    torch.save({}, wrong)
    with pytest.raises(RuntimeError, match="invalid hash value"):
        torch.hub.load_state_dict_from_url(wrong.as_uri(), model_dir=str(folder), check_hash=True)
