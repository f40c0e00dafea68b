#!/usr/bin/env bash
# Installs the C++ client of a build, builds examples/cpp against the installation, by CMake and by pkg-config, and runs
# the examples. Usage: install_test.sh BUILD SOURCE DAEMON [CMAKE-OPTION...]
set -euo pipefail
build=$1 source=$2 daemon=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/prefix" --component client >"$folder/install.log"
if grep -rIl -e "$source" "$folder"/prefix/lib*/cmake "$folder"/prefix/lib*/pkgconfig 2>/dev/null; then
  echo "the installed package names the source tree" >&2
  exit 1
fi
cp -r "$source/examples/cpp" "$folder/example"
cmake -S "$folder/example" -B "$folder/example/build" -DCMAKE_PREFIX_PATH="$folder/prefix" \
  -DCMAKE_BUILD_TYPE=Debug "${@:4}" >"$folder/configure.log" || { cat "$folder/configure.log"; exit 1; }
cmake --build "$folder/example/build"
export TELETENSOR_DAEMON="$daemon"
cd "$folder"
env -u TELETENSOR_ADDRESS "$folder/example/build/linear_regression"
env -u TELETENSOR_ADDRESS "$folder/example/build/traced_step"

# A few steps of the classifier on two black and two white images.
mkdir "$folder/images"
for set in train t10k; do
  { printf '\0\0\10\3\0\0\1\0\0\0\0\34\0\0\0\34'; for _ in $(seq 128); do head -c 784 /dev/zero; head -c 784 /dev/zero | tr '\0' '\377'; done; } \
    >"$folder/images/$set-images-idx3-ubyte"
  { printf '\0\0\10\1\0\0\1\0'; for _ in $(seq 128); do printf '\3\7'; done; } >"$folder/images/$set-labels-idx1-ubyte"
done
env -u TELETENSOR_ADDRESS "$folder/example/build/fashion_mnist" "$folder/images" 3
test -s "$folder/fashion_mnist.pt"

# The libraries that pkg-config names are sufficient too. Sanitizers need the options of the build.
if [ $# -eq 3 ]; then
  export PKG_CONFIG_PATH="$(dirname "$(find "$folder/prefix" -name teletensor.pc)")"
  read -ra flags <<<"$(pkg-config --cflags --libs teletensor)"
  c++ "$folder/example/build/CMakeFiles/linear_regression.dir/linear_regression.cc.o" -o "$folder/by_pkgconfig" "${flags[@]}"
  env -u TELETENSOR_ADDRESS "$folder/by_pkgconfig" >/dev/null
fi
