#!/usr/bin/env python3
"""Packs a wheel again so that equal contents give equal bytes, and checks its size and that it has no foreign parts.

    deploy/pack_wheel.py --limit MEGABYTES --out FOLDER WHEEL

Files are sorted, and have the date of SOURCE_DATE_EPOCH, normal permissions and the best deflate compression: zlib's, or with
--zopfli that of the package zopfli, which takes minutes and saves 3 %. RECORD, which lists the files' digests, is written
again; the wheel's digests are compared with the old one first.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import time
import zipfile
from pathlib import Path


def digest(content: bytes) -> str:
    """The form that RECORD has."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def read(wheel: Path) -> tuple[dict[str, tuple[int, bytes]], str]:
    """Returns the mode and content of each file by name, and the name of RECORD, which is not among them."""
    with zipfile.ZipFile(wheel) as file:
        found = {info.filename: (info.external_attr >> 16, file.read(info)) for info in file.infolist() if not info.is_dir()}
    (name,) = (name for name in found if name.endswith(".dist-info/RECORD"))
    rows = csv.reader(io.StringIO(found.pop(name)[1].decode()))
    recorded = {path: value for path, value, _ in rows if path != name}
    if wrong := {path for path in {*found, *recorded} if path not in found or recorded.get(path) != digest(found[path][1])}:
        raise SystemExit(f"pack_wheel.py: expected {wheel.name} to agree with its RECORD, got other files: {sorted(wrong)[:5]}")
    return found, name


class Zopfli:
    """A compressor of the module zipfile: deflate by the package zopfli."""

    def __init__(self) -> None:
        self._content: list[bytes] = []

    def compress(self, data: bytes) -> bytes:
        """Keeps the data."""
        self._content.append(bytes(data))
        return b""

    def flush(self) -> bytes:
        """The compressed data, without the header and checksum of zlib's format."""
        import zopfli.zlib

        return zopfli.zlib.compress(b"".join(self._content), numiterations=3)[2:-4]


def write(path: Path, files: dict[str, tuple[int, bytes]], record: str, epoch: int) -> None:
    """Writes the wheel; the folder dist-info is last, as the format recommends."""
    date = time.gmtime(max(epoch, 315532800))[:6]  # zip files know no date before 1980
    order = sorted(files, key=lambda name: (".dist-info/" in name, name))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [*((name, digest(files[name][1]), len(files[name][1])) for name in order), (record, "", "")]
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, (mode, content) in [*((name, files[name]) for name in order), (record, (0o644, text.getvalue().encode()))]:
            info = zipfile.ZipInfo(name, date)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.create_system = 3  # Unix: the mode below is one
            info.external_attr = (0o100755 if mode & 0o100 else 0o100644) << 16
            file.writestr(info, content)


def main() -> None:
    """Packs one wheel."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--zopfli", action="store_true", help="compress with the package zopfli")
    parser.add_argument("--limit", type=float, required=True, metavar="MEGABYTES", help="the wheel's largest size")
    args = parser.parse_args()
    files, record = read(args.wheel)
    if args.zopfli:
        zipfile._get_compressor = lambda *_: Zopfli()  # zipfile has no public place for another compressor
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / args.wheel.name
    write(path, files, record, int(os.environ.get("SOURCE_DATE_EPOCH", "315532800")))
    size, installed = path.stat().st_size / 1e6, sum(len(content) for _, content in files.values()) / 1e6
    print(f"wheel: {size:.2f} MB ({installed:.0f} MB installed, {len(files)} files) in {path}")
    if size > args.limit:
        raise SystemExit(f"pack_wheel.py: expected at most {args.limit:g} MB, got {size:.2f} MB: {path}")


if __name__ == "__main__":
    main()
