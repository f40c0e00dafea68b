"""A page of headless Chromium, controlled with the DevTools protocol. Requires Debian's package chromium."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time


class Page:
    """A page of a headless Chromium, controlled with the DevTools protocol over pipes."""

    def __init__(self, width: int, height: int):
        browser = shutil.which("chromium") or shutil.which("google-chrome")
        if browser is None:
            raise SystemExit("expected Chromium: apt-get install chromium")
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_end, self._write = os.pipe()
        self._read, write_end = os.pipe()
        command = [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
            "--hide-scrollbars", f"--window-size={width},{height}", f"--user-data-dir={self._profile.name}", "about:blank",
        ]  # fmt: skip
        # Chromium reads commands from file descriptor 3 and writes replies to 4.
        shell = f'exec "$@" 3<&{read_end} 4>&{write_end}'
        self._process = subprocess.Popen(["bash", "-c", shell, "_", *command], pass_fds=(read_end, write_end),
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        os.close(read_end), os.close(write_end)
        self._replies, self._last = os.fdopen(self._read, "rb"), 0
        self.events: list[dict] = []  # of the domains that a caller enables
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.resize(width, height)

    def _call(self, method: str, session: str | None = None, **parameters) -> dict:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters} | ({"sessionId": session} if session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._receive()
            if "method" in reply:
                self.events.append(reply)
            if reply.get("id") == self._last:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]

    def _receive(self) -> dict:
        found = bytearray()
        while (byte := self._replies.read(1)) != b"\0":
            if not byte:
                raise RuntimeError("Chromium has ended")
            found += byte
        return json.loads(found)

    def call(self, method: str, **parameters) -> dict:
        """Calls a method of the DevTools protocol on the page."""
        return self._call(method, self._session, **parameters)

    def resize(self, width: int, height: int, scale: float = 1, mobile: bool = False) -> None:
        """Sets the size of the page's window in CSS pixels, and the pixels of the picture for each."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=mobile)

    def run(self, script: str):
        """Returns the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    def wait_for(self, script: str, seconds: float = 240) -> None:
        """Waits until a JavaScript expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > deadline:
                raise SystemExit(f"the page did not become ready: {script}; its text: {self.run('document.body.innerText')[:500]}")
            time.sleep(0.3)

    def picture(self) -> bytes:
        """Returns what the window shows as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def picture_at_rest(self, seconds: float = 240) -> bytes:
        """Returns the page as a PNG once it does not change for some seconds: a progress bar moves while it loads."""
        deadline, before = time.monotonic() + seconds, b""
        while (now := self.picture()) != before and time.monotonic() < deadline:
            before = now
            time.sleep(5)
        return now

    def close(self) -> None:
        """Ends the browser."""
        self._process.kill()
        self._process.wait()
        self._profile.cleanup()
