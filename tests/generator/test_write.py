"""Files written to the generated tree, and stale files removed from it."""

from __future__ import annotations

from engine.codegen.__main__ import write


def test_only_changed_files_are_written_and_stale_files_removed(tmp_path):
    files = {"kernels/a.cc": "a", "kernels/b.h": "b", "docs/page.md": "page"}
    assert write(tmp_path, files) == 3
    written = (tmp_path / "kernels/a.cc").stat().st_mtime_ns
    (tmp_path / "kernels/of_yesterday.cu").write_text("what a build would find and compile")
    (tmp_path / "docs/of_others.md").write_text("not a source")
    (tmp_path / "proto").mkdir()
    (tmp_path / "proto/of_others.cc").write_text("not the generator's folder")
    assert write(tmp_path, files | {"kernels/b.h": "B"}) == 1
    assert (tmp_path / "kernels/a.cc").stat().st_mtime_ns == written
    assert not (tmp_path / "kernels/of_yesterday.cu").exists()
    assert (tmp_path / "docs/of_others.md").exists() and (tmp_path / "proto/of_others.cc").exists()
