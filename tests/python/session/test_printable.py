"""Texts that a client chose, in commands, pages, logs, metrics and notebooks: none controls a terminal or forges a line."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request

import pytest

from teletensor import _html, _printable
from tests.adversary.wire import Peer, instruction, message
from tests.conftest import IN_PROCESS, eventually
from tests.python.session.test_principals import Engine, run, user
from tests.python.session.test_tls import free_port

pytestmark = [pytest.mark.slow, pytest.mark.skipif(IN_PROCESS, reason="requires an engine in another process")]

# tests/base/text_test.cc has the same rows.
ROWS = (
    ("Grüße, 日本語 🙂 \\", "Grüße, 日本語 🙂 \\"),
    ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    ("a\r\n\tb", "a\\r\\n\\tb"),
    ("\x7f\x80\x9b\x9f\xa0", "\\x7f\\x80\\x9b\\x9f\xa0"),
    ("\u2028\u2029", "\\u2028\\u2029"),
    ("\u202a\u202e", "\\u202a\\u202e"),
    ("\u2066\u2069", "\\u2066\\u2069"),
    ("\u200e\u200f\u061c", "\\u200e\\u200f\\u061c"),
)
HOSTILE = tuple(text for text, expected in ROWS if text != expected)
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")  # all but newlines
FLOAT32, CPU = 8, 0


def test_escapes():
    for text, expected in ROWS:
        assert _printable.printable(text) == expected == _printable.printable(expected)
    assert _printable.printable("\udc9b") == "\\udc9b"  # an invalid byte
    assert _printable.loads(json.dumps({"a\n": ["\x1b", 1, None]})) == {"a\\n": ["\\x1b", 1, None]}
    assert "<td>\\x1b&lt;</td>" in _html.table("", [["\x1b<"]])


class Client:
    """A session that computes until the end of the test, with hostile texts wherever a client may send one."""

    def __init__(self, engine: Engine, token: str):
        self.peer = Peer(engine.address, token)
        hostile = "".join(HOSTILE)
        self.key = self.peer.hello(client=hostile, traceparent=hostile).session_key
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.compute)
        self.thread.start()

    def frames(self):
        sequence, name = 0, 1
        while not self.stopped.is_set():
            sequence += 1
            frame = message("Frame")(sequence=sequence)
            for i, text in enumerate(HOSTILE, 1):
                frame.sites.add(id=i, file=f"{text}.py", function=text, line=i)
            for i in range(len(HOSTILE)):
                name += 2
                instruction(frame, "ones", [300, 300], FLOAT32, CPU, result=name).site = i + 1
                instruction(frame, "matmul", ("h", name), ("h", name), result=name + 1).site = i + 1
                frame.release.extend([name, name + 1])
            yield frame
        yield message("Frame")(sequence=sequence + 1, close=True)

    def compute(self) -> None:
        for reply in self.peer.session(self.key, self.frames()):
            assert not reply.HasField("fault"), reply.fault

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()
        self.peer.close()


COMMANDS = (
    ("status",), ("status", "--wide"), ("status", "--json"), ("top", "--count", "1"), ("top", "--count", "1", "--principals"),
    ("profile",), ("profile", "--format", "collapsed"), ("profile", "--format", "json"), ("published",), ("published", "--json"),
    ("models",), ("models", "list", "--json"), ("models", "show", "".join(HOSTILE)), ("unpublish", "".join(HOSTILE)),
)  # fmt: skip


def test_commands_pages_and_logs(tmp_path):
    http = f"127.0.0.1:{free_port()}"
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "m").mkdir()
    (tmp_path / "models" / "m" / "".join(HOSTILE).replace("/", "")).mkdir()  # is no version
    engine = Engine(tmp_path, "--http", http, "--models", str(tmp_path / "models"))
    token = user(engine.file, "add", "root", "--role", "operator")
    engine.start()
    client = Client(engine, token)
    named = ("--address", engine.address, "--token", token, "--admin-token", token)
    try:
        eventually(lambda: "matmul" in run(*named, "profile").stdout)
        shown = {words: run(*named, *words, COLUMNS="400") for words in COMMANDS}
        shown = {" ".join(words): done.stdout + done.stderr for words, done in shown.items()}
        for path in ("metrics", "api/status", "api/profile", "v2/repository/index", "v2/models/m"):
            request = urllib.request.Request(f"http://{http}/{path}", headers={"authorization": f"Bearer {token}"})
            try:
                with urllib.request.urlopen(request, timeout=20) as response:
                    shown[path] = response.read().decode()
            except urllib.error.HTTPError as error:
                shown[path] = error.read().decode()
    finally:
        client.stop()
        engine.stop()
    shown |= {"log": engine.text(), "audit": engine.audit.read_text()}
    wrong = {name: FORBIDDEN.search(text) for name, text in shown.items() if FORBIDDEN.search(text)}
    assert not wrong
    assert "\\x1b]0;title\\x07.py" in shown["profile"] and "\\x1b]0;title" in shown["status --wide"]
    assert len(shown["profile"].splitlines()) < 40  # a newline of a site begins no line
