// inclusive_scan: running totals of any associative operation, in one pass.
//
//   inclusive_scan(queue, n, load, op, store);   // store(i, op(op(load(0), load(1)), ... load(i))), for each i
//
// load, op and store are values of types with a name (not lambdas) whose operators are TT_FUNCTIONs; they may be called
// more often than once for an index, in any order, so what store(i) writes load(i + 1) must not read.
#pragma once

#ifdef __CUDACC__
#include "kernels/cuda/launch/inclusive_scan_device.h"
#else
#include "kernels/cuda/launch/inclusive_scan_host.h"
#endif
