#!/usr/bin/env python3
"""Writes a bill of materials (CycloneDX 1.5, JSON) of programs and libraries: the packages that they load, the packages
whose headers were compiled into them, and those of static libraries that were linked into them.

    deploy/sbom.py --out FILE [--compiled BUILD_FOLDER [--part FOLDER]... | --compiled LIST] [--linked ARCHIVE]...
                   [--installed] [--licenses FOLDER] BINARY...
    deploy/sbom.py --list-compiled BUILD_FOLDER --out LIST [--licenses FOLDER]

The list is for a machine without the build folder and its packages. Reads dpkg, and the build folder of ninja. Uses the
standard library only, because builds of wheels run it. The output has no time and no random number: it is the same for
the same packages.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import re
import subprocess
import uuid
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
# Objects of these folders are part of no package.
NOT_PACKED = ("tests/", "benchmarks/", "CMakeFiles/")
TEXTS = Path("/usr/share/common-licenses")  # which copyright files of Debian's packages refer to


def run(*command: str) -> str:
    """Returns a program's output, whether or not it succeeds."""
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def version() -> str:
    """teletensor's version."""
    text = (ROOT / "python/teletensor/_version.py").read_text() if (ROOT / "python").exists() else ""
    found = re.search(r'"(\d[^"]*)"', text)
    return found[1] if found else "0"


def libraries(binary: str) -> set[str]:
    """The shared libraries that a program or library loads at its start, directly and indirectly."""
    text = run("ldd", binary)
    if missing := re.findall(r"(\S+) => not found", text):
        raise SystemExit(f"sbom.py: expected the libraries of {binary}, missing {', '.join(missing)}")
    return {str(Path(path).resolve()) for path in re.findall(r"(/\S+) \(0x", text)}


def headers(folder: str, parts: list[str]) -> set[str]:
    """The headers of packages that were compiled into a build folder's objects, without its tests: into all, or into those
    whose paths begin with one of `parts`.
    """
    found: set[str] = set()
    wanted = False
    for line in run("ninja", "-C", folder, "-t", "deps").splitlines():
        if line.startswith(" "):
            if wanted and line.strip().startswith("/"):
                found.add(line.strip())
        else:
            wanted = bool(line) and not line.startswith(NOT_PACKED) and "(VALID)" in line
            wanted = wanted and (not parts or line.startswith(tuple(parts)))
    own = (str(ROOT) + "/", str(Path(folder).resolve()) + "/")
    return {str(Path(path).resolve()) for path in found if not path.startswith(own)}


def owners(files: set[str]) -> tuple[dict[str, str], set[str]]:
    """The Debian package of each file, and the files that belong to none."""
    # dpkg records either /lib or /usr/lib, depending on how a package was built.
    names = {name: file for file in files for name in (file, file.removeprefix("/usr"))}
    if not names:
        return {}, set()
    owner = {}
    for line in run("dpkg-query", "--search", *sorted(names)).splitlines():
        package, _, path = line.rpartition(": ")
        if path in names and not package.startswith("diversion "):
            owner[names[path]] = package.split(",")[0]
    return owner, files - set(owner)


def python_package(path: str) -> dict | None:
    """The component of a file in a Python package, such as pybind11's headers in a wheel's build."""
    found = re.match(r"(.*/(?:site|dist)-packages)/([^/]+)/", path)
    for metadata in Path(found[1]).glob(f"{found[2]}-*.dist-info/METADATA") if found else ():
        fields = dict(re.findall(r"^(Name|Version|License|License-Expression): (.*)$", metadata.read_text(), re.M))
        name = fields["Name"]
        component = {"type": "library", "name": name, "version": fields["Version"],
                     "purl": f"pkg:pypi/{name.lower()}@{fields['Version']}"}  # fmt: skip
        names = [fields[key] for key in ("License-Expression", "License") if fields.get(key)]
        return component | ({"licenses": [{"license": {"name": names[0]}}]} if names else {})
    return None


def licences(package: str) -> list[str]:
    """The names of licences in a Debian package's copyright file; none if it is not machine-readable."""
    try:
        text = Path(f"/usr/share/doc/{package}/copyright").read_text(errors="replace")
    except OSError:
        return []
    if not re.search(r"^Format: .*copyright-format", text, re.M):
        return []
    return sorted(set(re.findall(r"^License: *(\S.*?)\s*$", text, re.M)))


def debian_component(package: str) -> dict:
    """The component of an installed package."""
    form = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Homepage}"
    name, number, architecture, source, source_version, homepage = run("dpkg-query", "-W", "-f", form, package).split("\t")
    component: dict = {
        "type": "library",
        "name": name,
        "version": number,
        "purl": f"pkg:deb/debian/{name}@{quote(number)}?arch={architecture}&distro=debian-12",
        "properties": [{"name": "teletensor:source", "value": f"{source} {source_version}"}],
    }
    names = licences(name)
    component["licenses"] = [{"license": {"name": each}} for each in names or [f"see /usr/share/doc/{name}/copyright"]]
    if homepage.startswith("http"):
        component["externalReferences"] = [{"type": "website", "url": homepage}]
    return component


class Bill:
    """Components by package, with the reasons why they are listed."""

    def __init__(self) -> None:
        self.version = version()
        self.components: dict[str, dict] = {}
        self.uses: dict[str, set[str]] = collections.defaultdict(set)
        self.files: dict[str, set[str]] = collections.defaultdict(set)

    def add_package(self, package: str, use: str) -> str:
        """Adds an installed Debian package; returns its key."""
        component = debian_component(package)
        key = component["purl"]
        self.components[key] = component
        self.uses[key].add(use)
        return key

    def add_files(self, files: set[str], use: str) -> None:
        """Adds the packages of files."""
        owner, rest = owners(files)
        keys = {package: self.add_package(package, use) for package in sorted(set(owner.values()))}
        if use == "loaded":
            for file, package in owner.items():
                self.files[keys[package]].add(file)
        for path in sorted(rest):
            if component := python_package(path):
                self.components[component["purl"]] = component
                self.uses[component["purl"]].add(use)
            elif use in ("loaded", "linked"):
                raise SystemExit(f"sbom.py: expected {path} to belong to a package")

    def document(self, binaries: list[str]) -> dict:
        """Returns the bill as CycloneDX."""
        components = []
        for key in sorted(self.components):
            component = {"bom-ref": key, **self.components[key]}
            uses = [{"name": "teletensor:use", "value": use} for use in sorted(self.uses[key])]
            component["properties"] = component.get("properties", []) + uses
            if files := sorted(self.files[key]):
                component["components"] = [file_component(file) for file in files]
            components.append(component)
        root = {"bom-ref": "teletensor", "type": "application", "name": "teletensor", "version": self.version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
                "components": [file_component(file, "teletensor/") for file in binaries]}  # fmt: skip
        document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": root},
                    "components": components,
                    "dependencies": [{"ref": "teletensor", "dependsOn": sorted(self.components)}]}  # fmt: skip
        content = json.dumps(document, sort_keys=True)
        return {**document, "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}"}

    def copy_licences(self, folder: Path) -> None:
        """Copies the copyright files of the packages that were compiled or linked in."""
        folder.mkdir(parents=True, exist_ok=True)
        names: dict[bytes, str] = {}
        for key, component in self.components.items():
            source = Path(f"/usr/share/doc/{component['name']}/copyright")
            if self.uses[key] & {"compiled", "linked"} and key.startswith("pkg:deb") and source.exists():
                text = source.read_bytes()
                same = names.setdefault(text, component["name"])  # packages of one source have the same file
                (folder / component["name"]).write_bytes(text if same == component["name"] else f"See {same}.\n".encode())


def copy_texts(folder: Path) -> None:
    """Copies the texts to which the copyright files of a folder refer, which other systems than Debian lack, into its folder
    common-licenses.
    """
    found = "".join(path.read_text(errors="replace") for path in sorted(folder.iterdir()) if path.is_file())
    words = {word.rstrip(".-") for word in re.findall(rf"{TEXTS}/([\w.+-]+)", found)}
    sources = [source for source in sorted(TEXTS / word for word in words) if source.is_file()]
    for source in sources:
        (folder / TEXTS.name).mkdir(exist_ok=True)
        whole = source.resolve()  # GPL is a link to GPL-3
        is_copied = whole != source and whole in sources
        (folder / TEXTS.name / source.name).write_bytes(f"See {whole.name}.\n".encode() if is_copied else source.read_bytes())


def file_component(path: str, prefix: str = "") -> dict:
    """A file with its hash."""
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    name = Path(path).name
    return {"bom-ref": f"file:{prefix}{name}@{digest[:16]}", "type": "file", "name": name,
            "hashes": [{"alg": "SHA-256", "content": digest}]}  # fmt: skip


def add_compiled(bill: Bill, source: Path, parts: list[str]) -> None:
    """Adds the packages of the headers of a build folder or of its parts, or those in a list that --list-compiled has
    written.
    """
    if source.is_dir():
        bill.add_files(headers(str(source), parts), "compiled")
        return
    read = json.loads(source.read_text())
    bill.version = read["version"]
    for component in read["components"]:
        bill.components[component["purl"]] = component
        bill.uses[component["purl"]].add("compiled")


def main() -> None:
    """Writes the bill or the list."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binaries", nargs="*", metavar="BINARY")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    parser.add_argument("--compiled", type=Path, metavar="FOLDER|LIST", help="build folder, or a list from one")
    parser.add_argument("--part", action="append", default=[], metavar="FOLDER", help="in the build folder: objects to describe only")
    parser.add_argument("--list-compiled", type=Path, metavar="FOLDER", help="list the packages of a build folder's headers")
    parser.add_argument("--linked", action="append", default=[], metavar="ARCHIVE", help="a static library in the binaries")
    parser.add_argument("--installed", action="store_true", help="add every package of this machine, for an image")
    parser.add_argument("--licenses", type=Path, help="copy the copyright files of what is compiled in to this folder")
    parser.add_argument("--license-texts", action="store_true", help="with --licenses: also the licences to which the files there refer")
    args = parser.parse_args()
    if bool(args.binaries) == bool(args.list_compiled):
        parser.error("expected either the programs and libraries that the bill describes, or --list-compiled")
    bill = Bill()
    if source := args.list_compiled or args.compiled:
        add_compiled(bill, source, args.part)
    if args.list_compiled:
        document = {"version": bill.version, "components": [bill.components[key] for key in sorted(bill.components)]}
    else:
        bill.add_files(set().union(*map(libraries, args.binaries)), "loaded")
        bill.add_files({str(Path(path).resolve()) for path in args.linked}, "linked")
        if args.installed:
            for line in run("dpkg-query", "-W", "-f", "${db:Status-Status} ${binary:Package}\n").splitlines():
                if line.startswith("installed "):
                    bill.add_package(line.split()[1], "installed")
        document = bill.document(args.binaries)
    if args.licenses:
        bill.copy_licences(args.licenses)
    if args.license_texts:
        copy_texts(args.licenses)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
