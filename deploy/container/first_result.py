"""Runs the engine's image and prints the time until a client has the first result. Run by check.sh.

    first_result.py NAME TOKEN_FILE IMAGE PORT [PODMAN_OPTION...]
"""

import subprocess
import sys
import time

import numpy as np

import teletensor as torch

name, token_file, image, port, *options = sys.argv[1:]
with open(token_file) as file:
    token = file.read().strip()
address = f"127.0.0.1:{port}"
command = ["podman", "run", "--detach", "--pull=never", "--no-healthcheck", f"--name={name}", "--network=host",
           "--read-only", "--cap-drop=all", f"--volume={token_file}:/run/secrets/teletensor-token:ro", *options, image,
           "teletensord", "--listen", address, "--token-file", "/run/teletensor/token"]  # fmt: skip
start = time.monotonic()
subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
created = time.monotonic()
while True:
    try:
        torch.connect(address, token=token)
        break
    except ConnectionError:
        if time.monotonic() - start > 60:  # the limit only prevents a script that hangs
            raise
        time.sleep(0.01)
x = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
product = (torch.from_numpy(x) @ torch.from_numpy(x).T).numpy()
end = time.monotonic()
np.testing.assert_allclose(product, x @ x.T, rtol=1e-4, atol=1e-4)
print(f"first result after {end - start:.2f} s, of which podman {created - start:.2f} s")
