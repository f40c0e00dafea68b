// Simulated cuFFT: computes sums directly from the definition, for factors of the length.
//
// Stricter than the real library where its documentation leaves the behaviour undefined: the workspace is overwritten,
// a transform to real numbers always overwrites its input, and the result is NaN if input that must be real is not.
#include "tests/cuda/simulated/loader.h"

#if __has_include(<cufftXt.h>)

#include <cufftXt.h>

#include <array>
#include <complex>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/session/context.h"
#include "kernels/common/fft/fft_roots.h"
#include "kernels/cuda/launch/launch_host.h"
#include "tests/cuda/simulated/runtime.h"

namespace tt::cuda {
namespace {

constexpr int kMaxRank = 3;
constexpr int64_t kLongest = 20'000;  // longer lengths are rejected, so that tests cover unsupported lengths

using Number = std::complex<double>;
using Numbers = std::vector<Number>;
using Sizes3 = std::array<int64_t, kMaxRank>;

Numbers transformed(const Numbers& x, bool forward) {
  const size_t n = x.size();
  if (n == 1) return x;
  size_t p = 2;
  while (n % p != 0) ++p;
  Numbers roots(n);
  for (size_t k = 0; k < n; ++k) {
    const Root root = root_of_unity(static_cast<int64_t>(k), static_cast<int64_t>(n), forward);
    roots[k] = {root.re, root.im};
  }
  const size_t m = n / p;
  std::vector<Numbers> parts(p, Numbers(m));
  for (size_t i = 0; i < n; ++i) parts[i % p][i / p] = x[i];
  for (Numbers& part : parts) part = transformed(part, forward);
  Numbers result(n);
  for (size_t k = 0; k < n; ++k) {
    for (size_t j = 0; j < p; ++j) {
      const Number a = parts[j][k % m], b = roots[j * k % n];
      result[k] += Number(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    }
  }
  return result;
}

struct Side {
  Sizes3 embed;
  int64_t stride, distance;
  bool is_real;
};

struct Transform {
  int rank;
  Sizes3 sizes;  // padded with ones in front
  Side from, to;
  int64_t batch;
  bool is_double;
  size_t workspace;

  // Number of elements stored in the last dimension.
  int64_t stored(const Side& side) const {
    return from.is_real == to.is_real || side.is_real ? sizes[2] : sizes[2] / 2 + 1;
  }
};

int64_t place(const Side& side, int64_t b, int64_t i, int64_t j, int64_t k) {
  return b * side.distance + ((i * side.embed[1] + j) * side.embed[2] + k) * side.stride;
}

template <typename R>
struct Execution {
  Transform t;
  void *from, *to;
  bool forward;

  size_t index(int64_t i, int64_t j, int64_t k) const {
    return static_cast<size_t>((i * t.sizes[1] + j) * t.sizes[2] + k);
  }
  template <typename F>
  void each(int64_t last, F f) const {
    for (int64_t i = 0; i < t.sizes[0]; ++i) {
      for (int64_t j = 0; j < t.sizes[1]; ++j) {
        for (int64_t k = 0; k < last; ++k) f(i, j, k);
      }
    }
  }
  Number load(int64_t at) const {
    if (t.from.is_real) return static_cast<const R*>(from)[at];
    return Number(static_cast<const std::complex<R>*>(from)[at]);
  }
  // Reads all elements of transform b, including the half that a half spectrum does not store.
  Numbers read(int64_t b) const {
    Numbers x(index(t.sizes[0], 0, 0));
    const int64_t stored = t.stored(t.from);
    each(stored, [&](int64_t i, int64_t j, int64_t k) { x[index(i, j, k)] = load(place(t.from, b, i, j, k)); });
    if (stored == t.sizes[2] && !t.to.is_real) return x;
    each(t.sizes[2], [&](int64_t i, int64_t j, int64_t k) {
      const int64_t n = t.sizes[2];
      if (k < stored && !(t.rank == 1 && (k == 0 || 2 * k == n))) return;
      const size_t mirrored = index((t.sizes[0] - i) % t.sizes[0], (t.sizes[1] - j) % t.sizes[1], (n - k) % n);
      if (k >= stored)
        x[index(i, j, k)] = std::conj(x[mirrored]);
      else if (x[mirrored].imag() != 0)
        x[mirrored] = std::numeric_limits<double>::quiet_NaN();
    });
    return x;
  }
  void transform_along(int d, Numbers& x) const {
    Sizes3 lines = t.sizes;
    lines[d] = 1;
    for (int64_t i = 0; i < lines[0]; ++i) {
      for (int64_t j = 0; j < lines[1]; ++j) {
        for (int64_t k = 0; k < lines[2]; ++k) {
          Numbers line(static_cast<size_t>(t.sizes[d]));
          const auto at = [&](size_t e) {
            const auto p = static_cast<int64_t>(e);
            return d == 0 ? index(p, j, k) : d == 1 ? index(i, p, k) : index(i, j, p);
          };
          for (size_t e = 0; e < line.size(); ++e) line[e] = x[at(e)];
          line = transformed(line, forward);
          for (size_t e = 0; e < line.size(); ++e) x[at(e)] = line[e];
        }
      }
    }
  }
  void run() const {
    std::vector<Numbers> all;
    for (int64_t b = 0; b < t.batch; ++b) {
      all.push_back(read(b));
      for (int d = 0; d < kMaxRank; ++d) transform_along(d, all.back());
    }
    for (int64_t b = 0; b < t.batch && t.to.is_real; ++b) {
      each(t.stored(t.from), [&](int64_t i, int64_t j, int64_t k) {
        static_cast<std::complex<R>*>(from)[place(t.from, b, i, j, k)] = std::numeric_limits<R>::quiet_NaN();
      });
    }
    for (int64_t b = 0; b < t.batch; ++b) {
      each(t.stored(t.to), [&](int64_t i, int64_t j, int64_t k) {
        const Number value = all[static_cast<size_t>(b)][index(i, j, k)];
        const int64_t at = place(t.to, b, i, j, k);
        if (t.to.is_real)
          static_cast<R*>(to)[at] = static_cast<R>(value.real());
        else
          static_cast<std::complex<R>*>(to)[at] = std::complex<R>(value);
      });
    }
  }
};

struct Plan {
  bool allocates = true, is_made = false;
  Transform transform;
  void* workspace = nullptr;
  cudaStream_t stream = nullptr;
};

std::mutex mutex;
std::map<cufftHandle, std::shared_ptr<Plan>> plans;

std::shared_ptr<Plan> plan_of(cufftHandle handle) {
  const std::lock_guard lock(mutex);
  const auto found = plans.find(handle);
  return found == plans.end() ? nullptr : found->second;
}

cufftResult create(cufftHandle* handle) {
  const std::lock_guard lock(mutex);
  static cufftHandle next = 1;
  *handle = next++;
  plans[*handle] = std::make_shared<Plan>();
  return CUFFT_SUCCESS;
}

cufftResult destroy(cufftHandle handle) {
  simulated_runtime().note("cufftDestroy");
  const std::lock_guard lock(mutex);
  return plans.erase(handle) == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult set_auto_allocation(cufftHandle handle, int allocates) {
  const auto plan = plan_of(handle);
  if (!plan || plan->is_made) return CUFFT_INVALID_PLAN;
  plan->allocates = allocates != 0;
  return CUFFT_SUCCESS;
}

bool is_valid(const Transform& t, const Side& side) {
  bool valid = side.stride > 0 && side.distance > 0 && side.embed[2] >= t.stored(side);
  for (int d = 0; d < 2; ++d) valid = valid && side.embed[d] >= t.sizes[d];
  return valid;
}

cufftResult make_plan(cufftHandle handle, int rank, long long* n, long long* from_embed, long long from_stride,
                      long long from_distance, cudaDataType from, long long* to_embed, long long to_stride,
                      long long to_distance, cudaDataType to, long long batch, size_t* workspace,
                      cudaDataType computed) {
  const auto plan = plan_of(handle);
  simulated_runtime().note("cufftXtMakePlanMany");
  if (!plan || plan->is_made) return CUFFT_INVALID_PLAN;
  if (plan->allocates || Context::current().capturing()) return CUFFT_ALLOC_FAILED;
  if (rank < 1 || rank > kMaxRank || batch < 1) return CUFFT_INVALID_VALUE;
  const bool is_double = computed == CUDA_C_64F;
  const cudaDataType real = is_double ? CUDA_R_64F : CUDA_R_32F;
  if ((computed != CUDA_C_32F && !is_double) || (from != real && from != computed) || (to != real && to != computed) ||
      (from == real && to == real)) {
    return CUFFT_INVALID_TYPE;
  }
  Transform t{rank,
              {1, 1, 1},
              {{1, 1, 1}, from_stride, from_distance, from == real},
              {{1, 1, 1}, to_stride, to_distance, to == real},
              batch,
              is_double,
              0};
  for (int d = 0; d < rank; ++d) {
    const int at = kMaxRank - rank + d;
    t.sizes[at] = n[d];
    t.from.embed[at] = from_embed[d];
    t.to.embed[at] = to_embed[d];
    if (n[d] < 1 || n[d] > kLongest) return CUFFT_INVALID_SIZE;
  }
  // The first element of `embed` is not used.
  if (!is_valid(t, t.from) || !is_valid(t, t.to)) return CUFFT_INVALID_VALUE;
  t.workspace = n[0] % 2 == 0 ? 0 : static_cast<size_t>(16 * batch * n[rank - 1]);
  *workspace = t.workspace;
  plan->transform = t;
  plan->is_made = true;
  return CUFFT_SUCCESS;
}

cufftResult set_stream(cufftHandle handle, cudaStream_t stream) {
  const auto plan = plan_of(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}

cufftResult set_work_area(cufftHandle handle, void* workspace) {
  const auto plan = plan_of(handle);
  if (!plan || !plan->is_made) return CUFFT_INVALID_PLAN;
  plan->workspace = workspace;
  return CUFFT_SUCCESS;
}

cufftResult execute(cufftHandle handle, void* from, void* to, int direction) {
  const auto plan = plan_of(handle);
  if (!plan || !plan->is_made || !plan->stream) return CUFFT_INVALID_PLAN;
  const Transform t = plan->transform;
  void* const workspace = plan->workspace;
  if (t.workspace > 0 && !workspace) return CUFFT_NO_WORKSPACE;
  if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) return CUFFT_INVALID_VALUE;
  const uintptr_t alignment = t.is_double ? 16 : 8;
  if (reinterpret_cast<uintptr_t>(from) % alignment != 0 || reinterpret_cast<uintptr_t>(to) % alignment != 0) {
    return CUFFT_INVALID_VALUE;
  }
  const bool same = t.from.stride == t.to.stride && t.from.distance == t.to.distance && t.from.embed == t.to.embed;
  if (from == to && (!same || t.from.is_real || t.to.is_real)) return CUFFT_INVALID_VALUE;
  simulated_runtime().note("cufftXtExec");
  const bool forward = t.from.is_real || (!t.to.is_real && direction == CUFFT_FORWARD);
  plan->workspace = nullptr;  // must be set for each call
  const std::weak_ptr<Plan> used = plan;
  enqueue(plan->stream, [=] {
    if (used.expired()) return simulated_runtime().fail_work("a cuFFT plan was destroyed before its work was done");
    if (t.workspace > 0) std::memset(workspace, 0xff, t.workspace);
    t.is_double ? Execution<double>{t, from, to, forward}.run() : Execution<float>{t, from, to, forward}.run();
  });
  return CUFFT_SUCCESS;
}

cufftResult version(int* number) {
  *number = CUFFT_VERSION;
  return CUFFT_SUCCESS;
}

}  // namespace

const LibraryFunctions& simulated_cufft() {
  static const LibraryFunctions functions = {
      {"cufftCreate", entry<decltype(&cufftCreate)>(&create)},
      {"cufftDestroy", entry<decltype(&cufftDestroy)>(&destroy)},
      {"cufftSetAutoAllocation", entry<decltype(&cufftSetAutoAllocation)>(&set_auto_allocation)},
      {"cufftXtMakePlanMany", entry<decltype(&cufftXtMakePlanMany)>(&make_plan)},
      {"cufftSetStream", entry<decltype(&cufftSetStream)>(&set_stream)},
      {"cufftSetWorkArea", entry<decltype(&cufftSetWorkArea)>(&set_work_area)},
      {"cufftXtExec", entry<decltype(&cufftXtExec)>(&execute)},
      {"cufftGetVersion", entry<decltype(&cufftGetVersion)>(&version)}};
  return functions;
}

}  // namespace tt::cuda

#else  // no toolkit: only our own kernels are tested

namespace tt::cuda {

const LibraryFunctions& simulated_cufft() {
  static const LibraryFunctions functions;
  return functions;
}

}  // namespace tt::cuda

#endif
