#!/usr/bin/env bash
# Installs the missing Debian packages of packages.txt (or of the given list), and prints their names. With OPTIONAL=1 it
# fails soon where it cannot: without a password for sudo, and after 15 s without an answer of the mirror.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
list=${1:-$here/packages.txt}

missing=()
while read -r package; do
  [[ -z "$package" || "$package" == \#* ]] && continue
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ "$state" == installed ]] || missing+=("$package")
done <"$list"

if ((${#missing[@]} == 0)); then
  echo "packages: all installed"
  exit 0
fi
echo "packages: installing ${missing[*]}"
run=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || { echo "packages: run this as root, or install: ${missing[*]}" >&2; exit 1; }
  run=(sudo ${OPTIONAL:+-n})
fi
options=()
if [[ ${OPTIONAL:-} ]]; then
  options=(-o Acquire::Retries=0 -o Acquire::http::Timeout=15 -o Acquire::https::Timeout=15 -o DPkg::Lock::Timeout=30)
fi
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get "${options[@]}" update -qq
"${run[@]}" apt-get "${options[@]}" install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
