// Solver by cuSOLVER's dense functions, most of them of the 64-bit interface.
#if __has_include(<cusolverDn.h>)

#include <cusolverDn.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "engine/device/cancellation.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/runtime/solver.h"

namespace tt::cuda {
namespace {

// XsyevBatched rejects batches of about 32,000 matrices and more (github.com/mujocolab/mjlab, pull request 732).
constexpr int64_t kMaxMatrices = 16 * 1024;

const char* text_of(cusolverStatus_t status) {
  switch (status) {
    case CUSOLVER_STATUS_NOT_INITIALIZED: return "CUSOLVER_STATUS_NOT_INITIALIZED";
    case CUSOLVER_STATUS_ALLOC_FAILED: return "CUSOLVER_STATUS_ALLOC_FAILED";
    case CUSOLVER_STATUS_INVALID_VALUE: return "CUSOLVER_STATUS_INVALID_VALUE";
    case CUSOLVER_STATUS_ARCH_MISMATCH: return "CUSOLVER_STATUS_ARCH_MISMATCH";
    case CUSOLVER_STATUS_MAPPING_ERROR: return "CUSOLVER_STATUS_MAPPING_ERROR";
    case CUSOLVER_STATUS_EXECUTION_FAILED: return "CUSOLVER_STATUS_EXECUTION_FAILED";
    case CUSOLVER_STATUS_INTERNAL_ERROR: return "CUSOLVER_STATUS_INTERNAL_ERROR";
    case CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED: return "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED";
    case CUSOLVER_STATUS_NOT_SUPPORTED: return "CUSOLVER_STATUS_NOT_SUPPORTED";
    default: return "an unknown status";
  }
}

void must(const char* call, cusolverStatus_t status) {
  check(status == CUSOLVER_STATUS_SUCCESS, "cuSOLVER error: ", text_of(status), " (", static_cast<int>(status),
        ", from ", call, ")");
}

// Function types that older toolkits do not declare.
using BatchedEighSize = cusolverStatus_t (*)(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t,
                                             cublasFillMode_t, int64_t, cudaDataType, const void*, int64_t,
                                             cudaDataType, const void*, cudaDataType, size_t*, size_t*, int64_t);
using BatchedEigh = cusolverStatus_t (*)(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t, cublasFillMode_t,
                                         int64_t, cudaDataType, void*, int64_t, cudaDataType, void*, cudaDataType,
                                         void*, size_t, void*, size_t, int*, int64_t);
using EigSize = cusolverStatus_t (*)(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t, cusolverEigMode_t,
                                     int64_t, cudaDataType, const void*, int64_t, cudaDataType, const void*,
                                     cudaDataType, const void*, int64_t, cudaDataType, const void*, int64_t,
                                     cudaDataType, size_t*, size_t*);
using Eig = cusolverStatus_t (*)(cusolverDnHandle_t, cusolverDnParams_t, cusolverEigMode_t, cusolverEigMode_t, int64_t,
                                 cudaDataType, void*, int64_t, cudaDataType, void*, cudaDataType, void*, int64_t,
                                 cudaDataType, void*, int64_t, cudaDataType, void*, size_t, void*, size_t, int*);

// Functions that the library has once per element type.
template <typename T>
struct TypedFunctions {
  cusolverStatus_t (*batched_cholesky)(cusolverDnHandle_t, cublasFillMode_t, int, T* matrices[], int, int*, int);
  cusolverStatus_t (*expand_q_size)(cusolverDnHandle_t, int, int, int, const T*, int, const T*, int*);
  cusolverStatus_t (*expand_q)(cusolverDnHandle_t, int, int, int, T*, int, const T*, T*, int, int*);

  // `letter` stands for the element type in the names of functions.
  void find(const Library& library, const char* letter, const char* expand_q_name) {
    const std::string prefix = absl::StrCat("cusolverDn", letter);
    library.find(batched_cholesky, absl::StrCat(prefix, "potrfBatched").c_str());
    library.find(expand_q_size, absl::StrCat(prefix, expand_q_name, "_bufferSize").c_str());
    library.find(expand_q, absl::StrCat(prefix, expand_q_name).c_str());
  }
};
static_assert(std::is_same_v<decltype(TypedFunctions<float>::batched_cholesky), decltype(&cusolverDnSpotrfBatched)>);
static_assert(std::is_same_v<decltype(TypedFunctions<double>::expand_q_size), decltype(&cusolverDnDorgqr_bufferSize)>);
static_assert(std::is_same_v<decltype(TypedFunctions<cuComplex>::expand_q), decltype(&cusolverDnCungqr)>);

struct Cusolver {
  Library library{"cuSOLVER", {"libcusolver.so.12", "libcusolver.so.11"}};
  decltype(&cusolverDnCreate) create;
  decltype(&cusolverDnCreateParams) create_parameters;
  decltype(&cusolverDnSetStream) set_stream;
  decltype(&cusolverDnXpotrf_bufferSize) cholesky_size;
  decltype(&cusolverDnXpotrf) cholesky;
  decltype(&cusolverDnXgetrf_bufferSize) lu_size;
  decltype(&cusolverDnXgetrf) lu;
  decltype(&cusolverDnXgeqrf_bufferSize) qr_size;
  decltype(&cusolverDnXgeqrf) qr;
  decltype(&cusolverDnXsyevd_bufferSize) eigh_size;
  decltype(&cusolverDnXsyevd) eigh;
  decltype(&cusolverDnXgesvd_bufferSize) svd_size;
  decltype(&cusolverDnXgesvd) svd;
  BatchedEighSize batched_eigh_size;  // null in older versions, as are the functions below
  BatchedEigh batched_eigh;
  EigSize eig_size;
  Eig eig;
  TypedFunctions<float> of_float;
  TypedFunctions<double> of_double;
  TypedFunctions<cuComplex> of_complex;
  TypedFunctions<cuDoubleComplex> of_double_complex;

  void find() {
    library.find(create, "cusolverDnCreate");
    library.find(create_parameters, "cusolverDnCreateParams");
    library.find(set_stream, "cusolverDnSetStream");
    library.find(cholesky_size, "cusolverDnXpotrf_bufferSize");
    library.find(cholesky, "cusolverDnXpotrf");
    library.find(lu_size, "cusolverDnXgetrf_bufferSize");
    library.find(lu, "cusolverDnXgetrf");
    library.find(qr_size, "cusolverDnXgeqrf_bufferSize");
    library.find(qr, "cusolverDnXgeqrf");
    library.find(eigh_size, "cusolverDnXsyevd_bufferSize");
    library.find(eigh, "cusolverDnXsyevd");
    library.find(svd_size, "cusolverDnXgesvd_bufferSize");
    library.find(svd, "cusolverDnXgesvd");
    library.find_optional(batched_eigh_size, "cusolverDnXsyevBatched_bufferSize");
    library.find_optional(batched_eigh, "cusolverDnXsyevBatched");
    library.find_optional(eig_size, "cusolverDnXgeev_bufferSize");
    library.find_optional(eig, "cusolverDnXgeev");
    of_float.find(library, "S", "orgqr");
    of_double.find(library, "D", "orgqr");
    of_complex.find(library, "C", "ungqr");
    of_double_complex.find(library, "Z", "ungqr");
    decltype(&cusolverGetVersion) version;
    library.find(version, "cusolverGetVersion");
    int number = 0;  // 12004 means 12.0.4
    must("cusolverGetVersion", version(&number));
    library.record_version(absl::StrCat(number / 1000, ".", number / 100 % 10, ".", number % 100));
  }
  // Calls f(functions, null pointer to the element type).
  template <typename F>
  void with_type(DType dtype, F f) const {
    switch (dtype) {
      case DType::kFloat32: return f(of_float, static_cast<float*>(nullptr));
      case DType::kFloat64: return f(of_double, static_cast<double*>(nullptr));
      case DType::kComplex64: return f(of_complex, static_cast<cuComplex*>(nullptr));
      default: return f(of_double_complex, static_cast<cuDoubleComplex*>(nullptr));
    }
  }
};

cudaDataType type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64: return CUDA_R_64F;
    case DType::kComplex64: return CUDA_C_32F;
    case DType::kComplex128: return CUDA_C_64F;
    default: return CUDA_R_32F;
  }
}

int as_int(int64_t size) {
  check(size <= std::numeric_limits<int>::max(),
        "[linalg] expected at most 2147483647 rows, columns and matrices, got ", size);
  return static_cast<int>(size);
}

// Bytes of workspace that a call requires, on the device and on the host.
struct WorkspaceSizes {
  size_t device = 0, host = 0;
};

// The library's handle for one stream. Streams do not share a handle, because it owns memory that each call uses.
struct Handle {
  Mutex mutex;
  cusolverDnHandle_t handle ABSL_GUARDED_BY(mutex) = nullptr;
  cusolverDnParams_t parameters ABSL_GUARDED_BY(mutex) = nullptr;
  std::vector<std::byte> workspace ABSL_GUARDED_BY(mutex);  // in host memory
};

class CusolverDecompositions final : public Solver {
 public:
  explicit CusolverDecompositions(std::unique_ptr<Cusolver> functions) : cusolver_(std::move(functions)) {}

  void cholesky(const Queue& queue, DType dtype, int64_t n, void* a, int32_t* info) override {
    const cudaDataType type = type_of(dtype);
    call(
        queue, "cusolverDnXpotrf",
        [&](auto handle, auto parameters, WorkspaceSizes& sizes) {
          return cusolver_->cholesky_size(handle, parameters, CUBLAS_FILL_MODE_UPPER, n, type, a, n, type,
                                          &sizes.device, &sizes.host);
        },
        [&](auto handle, auto parameters, void* device, void* host, const WorkspaceSizes& sizes) {
          return cusolver_->cholesky(handle, parameters, CUBLAS_FILL_MODE_UPPER, n, type, a, n, type, device,
                                     sizes.device, host, sizes.host, info);
        });
  }

  void batched_cholesky(const Queue& queue, DType dtype, int64_t n, void** matrices, int64_t batch,
                        int32_t* info) override {
    cusolver_->with_type(dtype, [&]<typename T>(const TypedFunctions<T>& functions, T*) {
      call(
          queue, "cusolverDnpotrfBatched", [](auto...) { return CUSOLVER_STATUS_SUCCESS; },
          [&](auto handle, auto...) {
            return functions.batched_cholesky(handle, CUBLAS_FILL_MODE_UPPER, as_int(n),
                                              reinterpret_cast<T**>(matrices), as_int(n), info, as_int(batch));
          });
    });
  }

  void lu(const Queue& queue, DType dtype, int64_t m, int64_t n, void* a, int64_t* pivots, int32_t* info) override {
    const cudaDataType type = type_of(dtype);
    call(
        queue, "cusolverDnXgetrf",
        [&](auto handle, auto parameters, WorkspaceSizes& sizes) {
          return cusolver_->lu_size(handle, parameters, m, n, type, a, m, type, &sizes.device, &sizes.host);
        },
        [&](auto handle, auto parameters, void* device, void* host, const WorkspaceSizes& sizes) {
          return cusolver_->lu(handle, parameters, m, n, type, a, m, pivots, type, device, sizes.device, host,
                               sizes.host, info);
        });
  }

  void qr(const Queue& queue, DType dtype, int64_t m, int64_t n, void* a, void* tau, int32_t* info) override {
    const cudaDataType type = type_of(dtype);
    call(
        queue, "cusolverDnXgeqrf",
        [&](auto handle, auto parameters, WorkspaceSizes& sizes) {
          return cusolver_->qr_size(handle, parameters, m, n, type, a, m, type, tau, type, &sizes.device, &sizes.host);
        },
        [&](auto handle, auto parameters, void* device, void* host, const WorkspaceSizes& sizes) {
          return cusolver_->qr(handle, parameters, m, n, type, a, m, type, tau, type, device, sizes.device, host,
                               sizes.host, info);
        });
  }

  void expand_q(const Queue& queue, DType dtype, int64_t m, int64_t columns, int64_t k, void* q, const void* tau,
                int32_t* info) override {
    const int rows = as_int(m), width = as_int(columns), count = as_int(k);
    cusolver_->with_type(dtype, [&]<typename T>(const TypedFunctions<T>& functions, T*) {
      T* const a = static_cast<T*>(q);
      const T* const factors = static_cast<const T*>(tau);
      int elements = 0;
      call(
          queue, "cusolverDnorgqr",
          [&](auto handle, auto, WorkspaceSizes& sizes) {
            const auto status = functions.expand_q_size(handle, rows, width, count, a, rows, factors, &elements);
            sizes.device = sizeof(T) * static_cast<size_t>(elements);
            return status;
          },
          [&](auto handle, auto, void* device, auto...) {
            return functions.expand_q(handle, rows, width, count, a, rows, factors, static_cast<T*>(device), elements,
                                      info);
          });
    });
  }

  void eigh(const Queue& queue, DType dtype, bool upper, bool vectors, int64_t n, void* a, void* values,
            int32_t* info) override {
    const cudaDataType type = type_of(dtype), real = type_of(to_real(dtype));
    call(
        queue, "cusolverDnXsyevd",
        [&](auto handle, auto parameters, WorkspaceSizes& sizes) {
          return cusolver_->eigh_size(handle, parameters, mode(vectors), triangle(upper), n, type, a, n, real, values,
                                      type, &sizes.device, &sizes.host);
        },
        [&](auto handle, auto parameters, void* device, void* host, const WorkspaceSizes& sizes) {
          return cusolver_->eigh(handle, parameters, mode(vectors), triangle(upper), n, type, a, n, real, values, type,
                                 device, sizes.device, host, sizes.host, info);
        });
  }

  bool batched_eigh(const Queue& queue, DType dtype, bool upper, bool vectors, int64_t n, void* a, void* values,
                    int64_t batch, int32_t* info) override {
    if (!cusolver_->batched_eigh || !cusolver_->batched_eigh_size) return false;
    for (int64_t first = 0; first < batch; first += kMaxMatrices) {
      eigh_of_some(queue, dtype, upper, vectors, n,
                   static_cast<std::byte*>(a) + first * n * n * static_cast<int64_t>(item_size(dtype)),
                   static_cast<std::byte*>(values) + first * n * static_cast<int64_t>(item_size(to_real(dtype))),
                   std::min(kMaxMatrices, batch - first), info + first);
    }
    return true;
  }

  void svd(const Queue& queue, DType dtype, SingularVectors wanted, int64_t m, int64_t n, void* a, void* u,
           void* values, void* vh, int32_t* info) override {
    const cudaDataType type = type_of(dtype), real = type_of(to_real(dtype));
    const signed char left = wanted == SingularVectors::kFull ? 'A' : wanted == SingularVectors::kThin ? 'S' : 'N';
    const signed char right = wanted == SingularVectors::kNone ? 'N' : 'A';
    call(
        queue, "cusolverDnXgesvd",
        [&](auto handle, auto parameters, WorkspaceSizes& sizes) {
          return cusolver_->svd_size(handle, parameters, left, right, m, n, type, a, m, real, values, type, u, m, type,
                                     vh, n, type, &sizes.device, &sizes.host);
        },
        [&](auto handle, auto parameters, void* device, void* host, const WorkspaceSizes& sizes) {
          return cusolver_->svd(handle, parameters, left, right, m, n, type, a, m, real, values, type, u, m, type, vh,
                                n, type, device, sizes.device, host, sizes.host, info);
        });
  }

  bool has_eig() const override { return cusolver_->eig && cusolver_->eig_size; }

  void eig(const Queue& queue, DType dtype, int64_t n, void* a, void* values, void* vectors, int32_t* info) override {
    const cudaDataType type = type_of(dtype), complex = type_of(to_complex(dtype));
    constexpr cusolverEigMode_t left = CUSOLVER_EIG_MODE_NOVECTOR;  // the only supported mode
    const cusolverEigMode_t right = mode(vectors != nullptr);
    call(
        queue, "cusolverDnXgeev",
        [&](auto handle, auto parameters, WorkspaceSizes& sizes) {
          return cusolver_->eig_size(handle, parameters, left, right, n, type, a, n, complex, values, type, nullptr, n,
                                     type, vectors, n, type, &sizes.device, &sizes.host);
        },
        [&](auto handle, auto parameters, void* device, void* host, const WorkspaceSizes& sizes) {
          return cusolver_->eig(handle, parameters, left, right, n, type, a, n, complex, values, type, nullptr, n, type,
                                vectors, n, type, device, sizes.device, host, sizes.host, info);
        });
  }

 private:
  static cusolverEigMode_t mode(bool vectors) {
    return vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
  }
  // Requires at most kMaxMatrices matrices.
  void eigh_of_some(const Queue& queue, DType dtype, bool upper, bool vectors, int64_t n, void* a, void* values,
                    int64_t batch, int32_t* info) {
    const cudaDataType type = type_of(dtype), real = type_of(to_real(dtype));
    call(
        queue, "cusolverDnXsyevBatched",
        [&](auto handle, auto parameters, WorkspaceSizes& sizes) {
          return cusolver_->batched_eigh_size(handle, parameters, mode(vectors), triangle(upper), n, type, a, n, real,
                                              values, type, &sizes.device, &sizes.host, batch);
        },
        [&](auto handle, auto parameters, void* device, void* host, const WorkspaceSizes& sizes) {
          return cusolver_->batched_eigh(handle, parameters, mode(vectors), triangle(upper), n, type, a, n, real,
                                         values, type, device, sizes.device, host, sizes.host, info, batch);
        });
  }
  static cublasFillMode_t triangle(bool upper) { return upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER; }

  // Calls `query_sizes`, which stores the sizes of the workspace, and then `run` with the workspace. Does not use
  // Queue::add(), whose work may be captured into a graph: some functions wait for the device and compute on the host.
  template <typename QuerySizes, typename Run>
  void call(const Queue& queue, const char* name, QuerySizes query_sizes, Run run) {
    check_cancelled();  // a batch may require many calls
    Handle& own = handle_of(queue);
    WorkspaceSizes sizes;
    {
      MutexLock lock(own.mutex);
      must(name, query_sizes(own.handle, own.parameters, sizes));
    }
    // Allocated without the lock, so that freeing memory never waits for it.
    Tensor workspace;
    if (sizes.device > 0) workspace = empty(Sizes{static_cast<int64_t>(sizes.device)}, DType::kUInt8, queue.device());
    // XsyevBatched of cuSOLVER 11.7.1 computes wrong vectors if its workspace is not zero (PyTorch issue 192483).
    if (workspace) queue.fill(workspace.data(), 0, sizes.device);
    queue.cuda_stream().mark();  // issues held launches
    MutexLock lock(own.mutex);
    // The host workspace is used only during the call.
    if (own.workspace.size() < sizes.host) own.workspace.resize(sizes.host);
    must(name, run(own.handle, own.parameters, workspace ? workspace.data() : nullptr,
                   sizes.host > 0 ? own.workspace.data() : nullptr, sizes));
  }

  Handle& handle_of(const Queue& queue) {
    Handle* own = nullptr;
    {
      MutexLock lock(mutex_);
      std::unique_ptr<Handle>& found = handles_[queue.stream()];
      if (!found) found = std::make_unique<Handle>();
      own = found.get();
    }
    MutexLock lock(own->mutex);
    if (!own->handle) must("cusolverDnCreate", cusolver_->create(&own->handle));
    if (!own->parameters) must("cusolverDnCreateParams", cusolver_->create_parameters(&own->parameters));
    must("cusolverDnSetStream", cusolver_->set_stream(own->handle, static_cast<cudaStream_t>(queue.stream())));
    return *own;
  }

  const std::unique_ptr<Cusolver> cusolver_;
  Mutex mutex_;
  // One per stream; streams are few and live as long as their devices.
  std::map<StreamHandle, std::unique_ptr<Handle>> handles_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Solver> make_solver() {
  auto functions = std::make_unique<Cusolver>();
  if (!functions->library) return nullptr;
  functions->find();
  return std::make_unique<CusolverDecompositions>(std::move(functions));
}

}  // namespace tt::cuda

#else  // a toolkit without cuSOLVER: decompositions use our own kernels

#include "kernels/cuda/runtime/solver.h"

namespace tt::cuda {

std::unique_ptr<Solver> make_solver() { return nullptr; }

}  // namespace tt::cuda

#endif
