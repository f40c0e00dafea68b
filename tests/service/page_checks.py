"""The page of a real engine in headless Chromium. `make service-test` runs these; the ordinary suite does not.

``TELETENSOR_SCREENSHOTS=docs/images`` writes the pictures of the documentation.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from docs.browser import Page
from tests.conftest import await_listener, client_environment
from tests.python.session.test_principals import Engine, user
from tests.python.session.test_tls import free_port

USUAL, HOSTILE = "0.1.0", "<img src=x onerror=document.title=1><script>document.title=1</script>"
PICTURES = os.environ.get("TELETENSOR_SCREENSHOTS")
MOST_BYTES = 150_000  # of a picture

# Trains until its input ends. argv: the client's name, the number of rows.
CLIENT = """
import sys, threading, teletensor as torch
from teletensor import _connection
_connection.__version__ = sys.argv[1]
torch.connect()
rows = int(sys.argv[2])
model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
x, y = torch.randn(rows, 256), torch.randint(10, (rows,))
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
print("ready", flush=True)
while not ended.is_set():
    loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    loss.item()
"""
# Python would give a script's source lines the names of all its folders.
RUN = "exec(compile(open('train.py').read(), 'train.py', 'exec'))"


class Clients:
    """Programs that train on the engine until stop()."""

    def __init__(self, engine: Engine, folder: Path, *programs: tuple[str, str, int]):
        (folder / "train.py").write_text(CLIENT)
        self.processes = [
            subprocess.Popen(
                [sys.executable, "-c", RUN, name, str(rows)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=folder,
                env=client_environment(TELETENSOR_ADDRESS=engine.address, TELETENSOR_TOKEN=token),
            )
            for token, name, rows in programs
        ]  # fmt: skip
        for process in self.processes:
            assert process.stdout.readline() == "ready\n"

    def stop(self) -> None:
        for process in self.processes:
            process.communicate(timeout=60)
            assert process.returncode == 0


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine")
    engine = Engine(folder, "--http", f"127.0.0.1:{free_port()}", "--threads", "1", "--memory-limit", "256MB")
    engine.place = engine.options[1]
    engine.watcher = user(engine.file, "add", "watcher", "--role", "observer")
    engine.alice = user(engine.file, "add", "alice", "--memory", "160MB")
    engine.nightly = user(engine.file, "add", "nightly", "--memory", "80MB", "--priority", "batch")
    engine.start()
    await_listener(engine.place)
    yield engine
    engine.stop()


@pytest.fixture(scope="module")
def clients(engine):
    programs = [(engine.alice, HOSTILE, 256), (engine.alice, USUAL, 64), (engine.nightly, USUAL, 512)]
    clients = Clients(engine, engine.folder, *programs)
    yield clients
    clients.stop()


@pytest.fixture
def page(engine):
    page = Page(1200, 900)
    for domain in ("Log", "Runtime", "Network", "Page"):
        page.call(f"{domain}.enable")
    yield page
    page.close()


def problems(page: Page) -> list:
    """Messages of the console, exceptions, and violations of the policy, without refused tokens."""
    page.run("0")  # receives what is pending
    found = []
    for event in page.events:
        parameters = event["params"]
        if event["method"] == "Log.entryAdded":
            message, url = parameters["entry"]["text"], parameters["entry"].get("url", "")
            if not (re.search("status of 40[13]", message) or url.endswith("/favicon.ico")):
                found.append(message)
        elif event["method"] in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            found.append(parameters)
    return found


def open_page(page: Page, engine: Engine) -> None:
    page.call("Page.navigate", url=f"http://{engine.place}/")
    page.wait_for("document.readyState === 'complete' && !!document.getElementById('login')", 30)


def give(page: Page, token: str) -> None:
    page.wait_for("!document.getElementById('login').hidden", 30)
    page.run(f"document.getElementById('token').value = {token!r}")
    page.run("document.querySelector('#login button').click()")


def show(page: Page, engine: Engine) -> None:
    open_page(page, engine)
    give(page, engine.watcher)
    page.wait_for("!document.getElementById('data').hidden", 30)
    page.wait_for("document.querySelectorAll('#memory path.series').length > 0", 30)


def text(page: Page, selector: str) -> str:
    return page.run(f"document.querySelector({selector!r}).innerText")


def test_a_wrong_token_is_explained(page, engine):
    open_page(page, engine)
    page.wait_for("!document.getElementById('login').hidden", 30)
    assert text(page, "#refusal") == "" and page.run("document.getElementById('data').hidden")
    give(page, "0" * 64)
    page.wait_for("document.getElementById('refusal').textContent !== ''", 30)
    assert text(page, "#refusal") == "The engine refused the token: the token does not belong to this engine"
    give(page, engine.alice)
    page.wait_for("document.getElementById('refusal').textContent.includes('role')", 30)
    assert "requires a token of the role observer or operator" in text(page, "#refusal")
    give(page, "two words")
    page.wait_for("document.getElementById('refusal').textContent.includes('Expected a token')", 30)
    assert page.run("sessionStorage.length + localStorage.length + document.cookie.length") == 0
    assert page.run("location.href") == f"http://{engine.place}/"
    assert problems(page) == []


def test_sessions_are_shown_and_names_are_text(page, engine, clients):
    show(page, engine)
    page.wait_for("document.querySelectorAll('#sessions tbody tr').length === 3", 30)
    sessions = text(page, "#sessions")
    assert HOSTILE in sessions and "alice" in sessions and "nightly" in sessions
    assert page.run("document.querySelectorAll('img, #data script').length") == 0
    assert page.run("document.title") == "teletensor engine"
    assert "of 160 MiB" in text(page, "#principals") and "batch" in text(page, "#principals")
    assert "cpu" in text(page, "#devices") and "allocated" in text(page, "#devices")
    assert "3 sessions" in text(page, "#summary")
    # Rates after the second answer, and the profile of the last seconds after two of its answers.
    page.wait_for("document.querySelector('#instructions svg') !== null && document.querySelector('#frames svg') !== null", 30)
    page.wait_for("document.querySelector('#operators-note').textContent.startsWith('In the last')", 30)
    operators = text(page, "#operators")
    assert "backward" in operators and "train.py:" in operators
    frames = page.run("[...document.querySelectorAll('.flame-frame')].map((each) => each.getAttribute('aria-label')).join('\\n')")
    assert "alice, session" in frames and "train.py:" in frames
    # A frame is enlarged, and the root leads back.
    page.run("[...document.querySelectorAll('.flame-frame')][1].dispatchEvent(new MouseEvent('click'))")
    assert page.run("document.querySelector('.flame-frame').getAttribute('aria-label')").startswith("← ")
    page.run("document.querySelector('.flame-frame').dispatchEvent(new MouseEvent('click'))")
    assert page.run("document.querySelector('.flame-frame').getAttribute('aria-label')").startswith("all sessions")
    requests = [event["params"]["request"] for event in page.events if event["method"] == "Network.requestWillBeSent"]
    assert requests and all(each["url"].startswith(f"http://{engine.place}/") and engine.watcher not in each["url"] for each in requests)
    assert page.run("Object.keys(sessionStorage).join()") == "teletensor-token" and page.run("localStorage.length") == 0
    assert problems(page) == []
    page.run("document.getElementById('forget').click()")
    assert page.run("document.getElementById('data').hidden && sessionStorage.length === 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone(page, engine, clients, scheme):
    """At a width of 360 px nothing is cut off, in both colour schemes."""
    page.resize(360, 740, scale=1, mobile=True)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    show(page, engine)
    page.wait_for("document.querySelectorAll('.flame-frame').length > 3", 60)
    assert page.run("document.documentElement.scrollWidth") <= 360
    cut = page.run(
        "[...document.querySelectorAll('body *')].filter((each) => {"
        "  const box = each.getBoundingClientRect();"
        "  return box.width > 0 && (box.right > 361 || box.left < -1) && !each.closest('noscript');"
        "}).map((each) => each.outerHTML.slice(0, 100))"
    )
    assert cut == []
    channels = [int(part) for part in page.run("getComputedStyle(document.body).backgroundColor").strip("rgb()").split(",")]
    assert (max(channels) < 80) == (scheme == "dark")
    assert problems(page) == []


def test_an_engine_that_ends_is_reported(page, tmp_path):
    engine = Engine(tmp_path, "--http", f"127.0.0.1:{free_port()}")
    engine.place = engine.options[1]
    engine.watcher = user(engine.file, "add", "watcher", "--role", "observer")
    engine.start()
    await_listener(engine.place)
    show(page, engine)
    assert "No session is open" in text(page, "#sessions") and "No session waits" in text(page, "#queue")
    engine.stop()
    page.wait_for("document.getElementById('connection').textContent.startsWith('No answer since')", 30)
    assert not page.run("document.getElementById('data').hidden")  # the last data stays
    engine = Engine(tmp_path, *engine.options).start()
    page.wait_for("document.getElementById('connection').textContent.startsWith('updated')", 30)
    engine.stop()


def write_picture(page: Page, name: str) -> None:
    data = page.picture()
    assert len(data) < MOST_BYTES, (name, len(data))
    Path(PICTURES, name).write_bytes(data)


if PICTURES:

    def test_pictures(page, engine):
        """The pictures of the documentation, after the page has shown the engine for 70 seconds."""
        clients = Clients(engine, engine.folder, (engine.alice, USUAL, 1024), (engine.alice, USUAL, 512), (engine.nightly, USUAL, 2048))
        show(page, engine)
        time.sleep(70)
        write_picture(page, "dashboard.png")
        page.run("document.getElementById('operators-title').scrollIntoView()")
        write_picture(page, "dashboard-profile.png")
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        page.resize(360, 740, mobile=True)
        page.run("scrollTo(0, 0)")
        time.sleep(5)
        write_picture(page, "dashboard-phone.png")
        clients.stop()
