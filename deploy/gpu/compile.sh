#!/usr/bin/env bash
# Compiles the CUDA plug-in for the newest two architectures, or for those that ARCHITECTURES lists ("90;100"). Without
# a toolkit prints a message and succeeds: bundle.sh covers checks that need a GPU, and the tests' simulated devices cover
# the kernels' logic.
set -euo pipefail
cd "$(readlink -f "$(dirname "$(readlink -f "$0")")/../..")"
. deploy/common.sh
find_nvcc || { echo "cuda: nvcc not found; the plug-in was not compiled"; exit 0; }
deploy/gpu/fetch_headers.sh
.venv/bin/python deploy/build.py ${ARCHITECTURES:+-D "TT_CUDA_ARCHITECTURES=$ARCHITECTURES"} cuda teletensor_cuda
echo "cuda: $(du -h build-cuda/lib/libteletensor_cuda.so | cut -f1) for $(cmake -L -N build-cuda | sed -n 's/^TT_CUDA_ARCHITECTURES[^=]*=//p')"
