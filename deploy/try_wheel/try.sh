#!/bin/bash
# Runs in the new system (try_wheel.sh): PYTHON is the interpreter.
set -e
cd /tmp
echo "$(. /etc/os-release && echo "$PRETTY_NAME"), $(ldd --version | head -1 | grep -o '[0-9.]*$' | tail -1), $("$PYTHON" --version)"
install() { "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$2" "${@:3}"; }

"$PYTHON" -m venv /client
install /client /wheels teletensor
/client/bin/python /lacking.py
"$PYTHON" -m venv /both
install /both /wheels 'teletensor[engine]'
/both/bin/python /train.py

# An engine that was started by its command, and a client without one.
serve() { # COMMAND
  "$@" --listen unix:/tmp/engine.sock --no-auth >/tmp/engine.log 2>&1 &
  engine=$!
  until [ -S /tmp/engine.sock ]; do kill -0 $engine || { cat /tmp/engine.log; exit 1; }; sleep 0.1; done
}
use() { TELETENSOR_ADDRESS=unix:/tmp/engine.sock "$1/bin/python" /use.py; kill $engine; wait $engine || true; rm -f /tmp/engine.sock; }
serve /both/bin/teletensord; use /client
# The engine's wheel is for every Python.
if [ "$PYTHON" != /usr/bin/python3 ]; then
  python3 -m venv /engine
  install /engine /wheels teletensor-engine
  serve /engine/bin/teletensord; use /client
fi
if [ -d /previous ]; then
  "$PYTHON" -m venv /old
  install /old /wheels numpy
  /old/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps /previous/*.whl
  echo "previous client, this engine"; serve /both/bin/teletensord; use /old
  old=$(echo /old/lib/python3*/site-packages/teletensor*/bin/teletensord)
  echo "this client, previous engine"; serve "$old"; use /client
fi
