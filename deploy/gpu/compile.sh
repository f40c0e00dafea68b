#!/usr/bin/env bash
# Compiles the CUDA plug-in for the newest two architectures. Without a toolkit it says so and succeeds: what needs a GPU
# is checked where there is one (bundle.sh), and the kernels' logic by the tests' simulated devices.
set -euo pipefail
cd "$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")"
command -v nvcc >/dev/null || PATH=$PATH:/usr/local/cuda/bin
command -v nvcc >/dev/null || { echo "cuda: there is no nvcc here; the plug-in was not compiled"; exit 0; }
cmake --preset cuda >/dev/null
cmake --build --preset cuda --target teletensor_cuda
echo "cuda: $(du -h build-cuda/lib/libteletensor_cuda.so | cut -f1) for $(cmake -L -N build-cuda | sed -n 's/^TT_CUDA_ARCHITECTURES[^=]*=//p')"
