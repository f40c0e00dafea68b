# shellcheck shell=bash
# Functions that several scripts of this folder source: . "$root/deploy/common.sh"

# Fails unless all programs are installed. WHAT tells how to get them.
require_programs() { # WHAT PROGRAM...
  local program
  for program in "${@:2}"; do
    command -v "$program" >/dev/null || { echo "$(basename "$0"): missing $program; install $1" >&2; exit 1; }
  done
}

# Creates a Python environment in FOLDER, and installs what the file lists unless it has not changed since.
install_requirements() { # FOLDER FILE [OPTION OF PIP...]
  [[ -x $1/bin/python ]] || { echo "venv: creating $1"; python3 -m venv "$1"; }
  cmp -s "$2" "$1/requirements.txt" && return
  echo "venv: installing the packages of $2"
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:3}" -r "$2"
  cp "$2" "$1/requirements.txt"
}

# Creates a minimal Debian system in TARGET, a folder or a .tar file. Prints the log only if that fails.
make_debian() { # SUITE TARGET [OPTION OF mmdebstrap...]
  local log status=0
  log=$(mktemp)
  mmdebstrap --quiet --variant=minbase "${@:3}" "$1" "$2" >"$log" 2>&1 || status=$?
  ((status == 0)) || cat "$log" >&2
  rm "$log"
  return $status
}

# Adds the usual folder of nvcc to PATH if that is needed. Fails if there is none.
find_nvcc() {
  command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin
  command -v nvcc >/dev/null
}
