// expect_alike: runs operators on the CPU and on a simulated GPU, and expects equal results.
#pragma once

#include <functional>
#include <string>

#include "engine/schema/error.h"
#include "tests/cuda/compare.h"

namespace tt::cuda {

// Calls operators on its arguments.
using Compute = std::function<Tensors(const Tensors&)>;

inline Tensors all_there(const Tensors& inputs, Device device) {
  Tensors moved;
  for (const Tensor& t : inputs) moved.push_back(there(t, device));
  return moved;
}

inline void expect_alike(const SimulatedEngine& engine, const std::string& what, const Tensors& inputs,
                         const Compute& compute, double tolerance = 0) {
  const Tensors want = compute(inputs), got = compute(all_there(inputs, engine.gpu()));
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].device(), engine.gpu()) << what;
    expect_same(got[i], want[i], tolerance, what + ", result " + std::to_string(i));
  }
}

// The error message of the call, or of reading its results.
inline std::string failure_of(const Tensors& inputs, const Compute& compute) {
  try {
    for (const Tensor& t : compute(inputs)) back(t);
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.kind())) + " " + error.what();
  }
  return "nothing was thrown";
}

// Expects both to fail with the same error, which contains `words`.
inline void expect_both_fail(const SimulatedEngine& engine, const std::string& words, const Tensors& inputs,
                             const Compute& compute) {
  const std::string here = failure_of(inputs, compute);
  EXPECT_NE(here.find(words), std::string::npos) << here;
  const std::string there = failure_of(all_there(inputs, engine.gpu()), compute);
  EXPECT_NE(there.find(words), std::string::npos) << there;
}

}  // namespace tt::cuda
