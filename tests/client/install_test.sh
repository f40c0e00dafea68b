#!/usr/bin/env bash
# Installs the C++ client of a build, builds examples/cpp against the installation, and runs it.
# Usage: install_test.sh BUILD SOURCE DAEMON
set -euo pipefail
build=$1 source=$2 daemon=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/prefix" --component client >"$folder/install.log"
if grep -rIl -e "$source" "$folder/prefix/lib/cmake" "$folder/prefix/lib64/cmake" 2>/dev/null; then
  echo "the installed package names the source tree" >&2
  exit 1
fi
cp -r "$source/examples/cpp" "$folder/example"
cmake -S "$folder/example" -B "$folder/example/build" -DCMAKE_PREFIX_PATH="$folder/prefix" \
  -DCMAKE_BUILD_TYPE=Debug "${@:4}" >"$folder/configure.log" || { cat "$folder/configure.log"; exit 1; }
cmake --build "$folder/example/build"
env -u TELETENSOR_ADDRESS TELETENSOR_DAEMON="$daemon" "$folder/example/build/linear_regression"
