#!/usr/bin/env bash
# Builds dist/gpu-bundle.tar.xz: the daemon, its CUDA plug-in, the Python client, a Python interpreter, and the tests
# and benchmarks to run on a machine with a GPU. The machine needs a kernel, glibc 2.36, a driver, and the CUDA
# libraries to be used (cuBLASLt, cuDNN, NVRTC). Nothing is installed on the machine.
set -euo pipefail
root=$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")
cd "$root"
bundle=dist/gpu-bundle
python=$(readlink -f .venv/bin/python)
stdlib=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["stdlib"])')

. deploy/common.sh
find_nvcc || { echo "gpu-bundle: nvcc not found; install a CUDA toolkit, 12.4 or newer" >&2; exit 1; }

echo "gpu-bundle: building"
# ARCHITECTURES=90, for example, builds a smaller bundle for one kind of machine.
deploy/gpu/fetch_headers.sh
cmake --preset cuda ${ARCHITECTURES:+-D "TT_CUDA_ARCHITECTURES=$ARCHITECTURES"} >/dev/null
cmake --build --preset cuda --target teletensord teletensor_python teletensor_wheel teletensor_cuda allocator_bench

echo "gpu-bundle: gathering"
rm -rf "$bundle" && mkdir -p "$bundle/site" "$bundle/python/lib" "$bundle/data"
for component in wheel wheel-engine; do  # the client and the engine in one folder, with one lib/
  cmake --install build-cuda --component $component --prefix "$bundle/site/teletensor" --strip >/dev/null
done
cp -r python/teletensor/. "$bundle/site/teletensor/"
strip -o "$bundle/site/teletensor/lib/libteletensor_cuda.so" build-cuda/lib/libteletensor_cuda.so
.venv/bin/python -m pip install --quiet --disable-pip-version-check --target "$bundle/site" \
  numpy pytest pytest-xdist pyyaml rich

# The interpreter, without its development files.
mkdir -p "$bundle/python/bin" "$bundle/python/lib/$(basename "$stdlib")"
cp "$python" "$bundle/python/bin/python3"
tar -C "$stdlib" --exclude=site-packages --exclude=dist-packages --exclude=test --exclude=idlelib --exclude=tkinter --exclude=ensurepip \
  --exclude=lib2to3 --exclude='config-*' --exclude=__pycache__ -c . | tar -C "$bundle/python/lib/$(basename "$stdlib")" -x
find "$python" "$stdlib/lib-dynload" -type f -exec ldd {} + 2>/dev/null |
  awk '$1 ~ /^lib(python|z|expat|bz2|lzma|ffi)/ {print $3}' | sort -u | xargs -I{} cp -L {} "$bundle/python/lib/"

# Measures the cost of an allocation on the target machine's processor.
mkdir -p "$bundle/bin"
strip -o "$bundle/bin/allocator_bench" build-cuda/bin/allocator_bench
ldd build-cuda/bin/allocator_bench | awk '$1 ~ /^libbenchmark/ {print $3}' | xargs -I{} cp -L {} "$bundle/python/lib/"

# Tests read the declarations, and the sources to find which operators a backend has.
git ls-files tests benchmarks examples engine autograd server kernels distributed pyproject.toml | tar -c -T - | tar -C "$bundle" -x
.venv/bin/python deploy/gpu/shorten_data.py /usr/share/datasets/fashion-mnist "$bundle/data"
cp deploy/gpu/check "$bundle/check"
find "$bundle" -name __pycache__ -prune -exec rm -rf {} +
find "$bundle/site/numpy" -name tests -prune -exec rm -rf {} +
find "$bundle/python" -name '*.so*' -exec strip --strip-unneeded {} +

# Most of the bundle is machine code, for which the x86 filter is intended.
tar -C dist --sort=name -c gpu-bundle | xz -T0 --x86 --lzma2=preset=4,dict=32MiB >dist/gpu-bundle.tar.xz
echo "gpu-bundle: $(du -h dist/gpu-bundle.tar.xz | cut -f1) in dist/gpu-bundle.tar.xz; unpack it on the GPU machine and run gpu-bundle/check"
