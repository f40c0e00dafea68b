"""The units of systemd, checked by systemd's own tool. It needs no running systemd."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.conftest import BUILD, IN_PROCESS, ROOT

FOLDER = ROOT / "deploy/systemd"
ENGINE = str(BUILD / "bin/teletensord")
pytestmark = [
    pytest.mark.skipif(IN_PROCESS, reason="checks files, and the daemon"),
    pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed"),
]


def analyze(*arguments) -> str:
    done = subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_units_are_valid(tmp_path):
    """Names of options, their values, and references between the units."""
    units = []
    for name in ("teletensord.service", "teletensord.socket"):
        units.append(tmp_path / name)
        units[-1].write_text((FOLDER / name).read_text().replace("/usr/bin/teletensord", ENGINE))
    output = analyze("verify", "--man=no", *units)
    assert "teletensord" not in output, output  # warnings about other units of the machine may be in it


def test_exposure_is_low():
    """docs/running.md states the exposure."""
    output = analyze("security", "--offline=yes", "--no-pager", "--threshold=17", FOLDER / "teletensord.service")
    exposure = re.search(r"exposure level for teletensord.service: ([\d.]+)", output)[1]
    assert f"exposure level is {exposure}" in (ROOT / "docs/running.md").read_text()


def test_configuration_file(tmp_path):
    """The packaged file, and with every option in it that is a comment."""
    text = (FOLDER / "teletensord.conf").read_text()
    for folder in ("/var/lib/teletensor", "/etc/teletensor", "/var/log/teletensor"):
        text = text.replace(folder, str(tmp_path))
    (tmp_path / "checkpoints").mkdir()
    for name in ("tls-cert.pem", "tls-key.pem", "principals.json"):
        (tmp_path / name).write_text("")
    uncommented = re.sub(r"^# (?=[a-z-]+ = )", "", text, flags=re.MULTILINE)
    assert uncommented.count("\n#") < text.count("\n#")
    for content in (text, uncommented):
        file = tmp_path / "teletensord.conf"
        file.write_text(content)
        done = subprocess.run([ENGINE, "--config", file, "--check-config"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        printed = dict(re.findall(r"^([a-z-]+)=(.*)$", done.stdout, re.MULTILINE))
        for name, value in re.findall(r"^([a-z-]+) = (.*)$", content, re.MULTILINE):
            size = re.fullmatch(r"(\d+)GB", value)
            expected = int(size[1]) << 30 if size else value
            assert printed[name].strip('"') == str(expected).strip('"'), name
