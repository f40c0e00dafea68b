// inclusive_scan: running totals of any associative operation, in one pass.
//
//   inclusive_scan(queue, n, load, op, store);   // for each i: store(i, op(... op(load(0), load(1)) ..., load(i)))
//
// load, op and store are objects of named types (not lambdas) whose call operators are TT_FUNCTIONs. They may be called
// several times per index, in any order, so load(i + 1) must not read what store(i) writes.
#pragma once

#ifdef __CUDACC__
#include "kernels/cuda/launch/inclusive_scan_device.h"
#else
#include "kernels/cuda/launch/inclusive_scan_host.h"
#endif
