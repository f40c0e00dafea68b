// A plug-in of another daemon: has the symbols, but a different operator table, so that it must not be registered.
#include <cstdlib>

#include "kernels/cuda/plugin.h"

uint64_t teletensor_cuda_digest() { return 1; }

int teletensor_cuda_register(tt::Devices*, tt::Dispatcher*, char*, size_t) { std::abort(); }
