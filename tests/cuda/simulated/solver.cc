// Simulated cuSOLVER, by LAPACK.
//
// Stricter than the real library where its documentation leaves the behaviour undefined: workspaces are overwritten,
// and undefined results are NaN.
#include "tests/cuda/simulated/loader.h"

#if __has_include(<cusolverDn.h>)

#include <cusolverDn.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>
#include <type_traits>
#include <vector>

#include "kernels/common/math/scalar_traits.h"
#include "kernels/cpu/blas/routines.h"
#include "kernels/cuda/launch/launch_host.h"
#include "tests/cuda/simulated/runtime.h"

namespace tt::cuda {
namespace {

namespace lapack = cpu::lapack;

constexpr cusolverStatus_t kDone = CUSOLVER_STATUS_SUCCESS, kInvalid = CUSOLVER_STATUS_INVALID_VALUE;
constexpr size_t kHostWorkspace = 64;

struct Handle {
  cudaStream_t stream = nullptr;
};

std::mutex mutex;
// Never destroyed: handles live as long as the process, and would count as leaked without this set.
auto& handles = *new std::set<const Handle*>;

Handle* own(cusolverDnHandle_t handle) {
  auto* const found = reinterpret_cast<Handle*>(handle);
  const std::lock_guard lock(mutex);
  return handles.contains(found) ? found : nullptr;
}

// Calls f(std::type_identity of the elements).
template <typename F>
cusolverStatus_t with_type(cudaDataType type, F f) {
  switch (type) {
    case CUDA_R_32F: return f(std::type_identity<float>());
    case CUDA_R_64F: return f(std::type_identity<double>());
    case CUDA_C_32F: return f(std::type_identity<Complex<float>>());
    case CUDA_C_64F: return f(std::type_identity<Complex<double>>());
    default: return CUSOLVER_STATUS_NOT_SUPPORTED;
  }
}

cudaDataType real_of(cudaDataType type) {
  return type == CUDA_C_32F ? CUDA_R_32F : type == CUDA_C_64F ? CUDA_R_64F : type;
}
cudaDataType complex_of(cudaDataType type) {
  return type == CUDA_R_32F ? CUDA_C_32F : type == CUDA_R_64F ? CUDA_C_64F : type;
}

template <typename T>
T nan_of() {
  return T(std::numeric_limits<real_of_t<T>>::quiet_NaN());
}

// The workspace passed to a call. It must be as large as the size query returned.
struct Workspace {
  void* device;
  size_t device_bytes;
  void* host;
  size_t host_bytes;

  bool suffices(size_t bytes) const {
    return device_bytes >= bytes && (device || bytes == 0) && host_bytes >= kHostWorkspace && host;
  }
};

// Adds work to the handle's stream, which must not be capturing. The host workspace is used only during the call.
template <typename F>
cusolverStatus_t add(cusolverDnHandle_t handle, const char* name, const Workspace& workspace, F f) {
  Handle* const found = own(handle);
  if (!found || !found->stream) return CUSOLVER_STATUS_NOT_INITIALIZED;
  if (simulated_runtime().is_capturing(found->stream)) return CUSOLVER_STATUS_EXECUTION_FAILED;
  simulated_runtime().note(name);
  if (workspace.host) std::memset(workspace.host, 0xff, workspace.host_bytes);
  enqueue(found->stream, [workspace, f] {
    const auto* const bytes = static_cast<const char*>(workspace.device);
    if (std::any_of(bytes, bytes + workspace.device_bytes, [](char byte) { return byte != 0; })) {
      simulated_runtime().fail_work("the workspace is not initialised to zero");
    }
    if (workspace.device) std::memset(workspace.device, 0xff, workspace.device_bytes);
    f();
  });
  return kDone;
}

// A copy of a matrix in host memory, with the padding that LAPACK's routines may read beyond it.
template <typename T>
struct Copy {
  int rows, columns;
  std::vector<T> elements;

  Copy(int64_t m, int64_t n)
      : rows(static_cast<int>(m)), columns(static_cast<int>(n)), elements(lapack::padded_elements(m, n)) {}
  Copy(const T* from, int64_t m, int64_t n, int64_t ld) : Copy(m, n) {
    for (int64_t j = 0; j < n; ++j) std::copy_n(from + j * ld, m, elements.data() + j * m);
  }
  void store(T* to, int64_t ld) const {
    for (int64_t j = 0; j < columns; ++j) std::copy_n(elements.data() + j * rows, rows, to + j * ld);
  }
  T* data() { return elements.data(); }
};

template <typename T>
void fill_nan(T* to, int64_t rows, int64_t columns, int64_t ld) {
  for (int64_t j = 0; j < columns; ++j) std::fill_n(to + j * ld, rows, nan_of<T>());
}

// Queries a routine for its workspace size, then runs it.
template <typename T, typename F>
int run(lapack::Workspace<T>& space, F f) {
  f(space);
  const auto grow = [](auto& numbers, auto wanted) {
    numbers.resize(std::max(numbers.size(), static_cast<size_t>(wanted)));
  };
  grow(space.work, math::real(space.work[0]));
  grow(space.reals, space.reals[0]);
  grow(space.integers, space.integers[0]);
  space.size_query = false;
  return f(space);
}

size_t bytes_for(int64_t m, int64_t n) { return static_cast<size_t>(8 * (m + 2 * n)); }

// ---- Handles ----------------------------------------------------------------------------------

cusolverStatus_t create(cusolverDnHandle_t* handle) {
  auto* const made = new Handle;
  const std::lock_guard lock(mutex);
  handles.insert(made);
  *handle = reinterpret_cast<cusolverDnHandle_t>(made);
  return kDone;
}

cusolverStatus_t create_parameters(cusolverDnParams_t* parameters) {
  static int any = 0;
  *parameters = reinterpret_cast<cusolverDnParams_t>(&any);
  return kDone;
}

cusolverStatus_t set_stream(cusolverDnHandle_t handle, cudaStream_t stream) {
  Handle* const found = own(handle);
  if (!found) return CUSOLVER_STATUS_NOT_INITIALIZED;
  found->stream = stream;
  return kDone;
}

cusolverStatus_t version(int* number) {
  *number = CUSOLVER_VERSION;
  return kDone;
}

// ---- Cholesky ---------------------------------------------------------------------------------

template <typename T>
void factor_cholesky(cublasFillMode_t uplo, int64_t n, T* a, int64_t lda, int* info) {
  const bool upper = uplo == CUBLAS_FILL_MODE_UPPER;
  Copy<T> copy(a, n, n, lda);
  *info = lapack::potrf(upper ? 'U' : 'L', copy.rows, copy.data(), copy.rows);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      if (upper ? i > j : i < j) copy.data()[j * n + i] = nan_of<T>();
    }
  }
  copy.store(a, lda);
}

cusolverStatus_t cholesky_size(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t, int64_t n,
                               cudaDataType type, const void*, int64_t lda, cudaDataType computed, size_t* device,
                               size_t* host) {
  if (!own(handle) || lda < n || computed != type) return kInvalid;
  *device = bytes_for(n, n);
  *host = kHostWorkspace;
  return kDone;
}

cusolverStatus_t cholesky(cusolverDnHandle_t handle, cusolverDnParams_t, cublasFillMode_t uplo, int64_t n,
                          cudaDataType type, void* a, int64_t lda, cudaDataType computed, void* device,
                          size_t device_bytes, void* host, size_t host_bytes, int* info) {
  const Workspace workspace{device, device_bytes, host, host_bytes};
  if (lda < n || computed != type || !workspace.suffices(bytes_for(n, n))) return kInvalid;
  return with_type(type, [&]<typename T>(std::type_identity<T>) {
    return add(handle, "cusolverDnXpotrf", workspace, [=] { factor_cholesky(uplo, n, static_cast<T*>(a), lda, info); });
  });
}

// `E`: the element type as the library names it; `T`: as the tests name it.
template <typename T, typename E>
cusolverStatus_t batched_cholesky(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, E* matrices[], int lda,
                                  int* info, int batch) {
  if (lda < n || batch < 1) return kInvalid;
  return add(handle, "cusolverDnpotrfBatched", {}, [=] {
    for (int i = 0; i < batch; ++i) factor_cholesky(uplo, n, reinterpret_cast<T*>(matrices[i]), lda, info + i);
  });
}

// ---- LU and QR --------------------------------------------------------------------------------

cusolverStatus_t lu_size(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n, cudaDataType type,
                         const void*, int64_t lda, cudaDataType computed, size_t* device, size_t* host) {
  if (!own(handle) || lda < m || computed != type) return kInvalid;
  *device = bytes_for(m, n);
  *host = kHostWorkspace;
  return kDone;
}

cusolverStatus_t lu(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n, cudaDataType type, void* a,
                    int64_t lda, int64_t* pivots, cudaDataType computed, void* device, size_t device_bytes, void* host,
                    size_t host_bytes, int* info) {
  const Workspace workspace{device, device_bytes, host, host_bytes};
  if (lda < m || computed != type || !workspace.suffices(bytes_for(m, n))) return kInvalid;
  return with_type(type, [&]<typename T>(std::type_identity<T>) {
    return add(handle, "cusolverDnXgetrf", workspace, [=] {
      Copy<T> copy(static_cast<T*>(a), m, n, lda);
      std::vector<int> found(static_cast<size_t>(std::min(m, n)));
      *info = lapack::getrf(copy.rows, copy.columns, copy.data(), copy.rows, found.data());
      std::copy(found.begin(), found.end(), pivots);
      copy.store(static_cast<T*>(a), lda);
    });
  });
}

cusolverStatus_t qr_size(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n, cudaDataType type,
                         const void*, int64_t lda, cudaDataType tau_type, const void*, cudaDataType computed,
                         size_t* device, size_t* host) {
  if (!own(handle) || lda < m || computed != type || tau_type != type) return kInvalid;
  *device = bytes_for(m, n);
  *host = kHostWorkspace;
  return kDone;
}

cusolverStatus_t qr(cusolverDnHandle_t handle, cusolverDnParams_t, int64_t m, int64_t n, cudaDataType type, void* a,
                    int64_t lda, cudaDataType tau_type, void* tau, cudaDataType computed, void* device,
                    size_t device_bytes, void* host, size_t host_bytes, int* info) {
  const Workspace workspace{device, device_bytes, host, host_bytes};
  if (lda < m || computed != type || tau_type != type || !workspace.suffices(bytes_for(m, n))) return kInvalid;
  return with_type(type, [&]<typename T>(std::type_identity<T>) {
    return add(handle, "cusolverDnXgeqrf", workspace, [=] {
      Copy<T> copy(static_cast<T*>(a), m, n, lda);
      std::vector<T> factors(static_cast<size_t>(std::min(m, n)));
      lapack::Workspace<T> space;
      *info = run(space, [&](auto& s) {
        return lapack::geqrf(copy.rows, copy.columns, copy.data(), copy.rows, factors.data(), s);
      });
      std::copy(factors.begin(), factors.end(), static_cast<T*>(tau));
      copy.store(static_cast<T*>(a), lda);
    });
  });
}

template <typename E>
cusolverStatus_t expand_q_size(cusolverDnHandle_t handle, int m, int n, int k, const E*, int lda, const E*,
                               int* elements) {
  if (!own(handle) || m < n || n < k || lda < m) return kInvalid;
  *elements = 3 * n;
  return kDone;
}

template <typename T, typename E>
cusolverStatus_t expand_q(cusolverDnHandle_t handle, int m, int n, int k, E* a, int lda, const E* tau, E* device,
                          int elements, int* info) {
  if (m < n || n < k || lda < m || !device || elements < 3 * n) return kInvalid;
  const Workspace workspace{device, sizeof(E) * static_cast<size_t>(elements), nullptr, 0};
  return add(handle, "cusolverDnorgqr", workspace, [=] {
    Copy<T> copy(reinterpret_cast<T*>(a), m, n, lda);
    const std::vector<T> factors(reinterpret_cast<const T*>(tau), reinterpret_cast<const T*>(tau) + k);
    lapack::Workspace<T> space;
    *info = run(space, [&](auto& s) { return lapack::orgqr(m, n, k, copy.data(), m, factors.data(), s); });
    copy.store(reinterpret_cast<T*>(a), lda);
  });
}

// ---- Eigenvalues and singular values ----------------------------------------------------------

template <typename T>
void decompose_eigh(bool vectors, bool upper, int64_t n, T* a, int64_t lda, real_of_t<T>* values, int* info) {
  Copy<T> copy(a, n, n, lda);
  std::vector<real_of_t<T>> found(static_cast<size_t>(n));
  lapack::Workspace<T> space;
  *info = run(space, [&](auto& s) {
    return lapack::heevd(vectors ? 'V' : 'N', upper ? 'U' : 'L', copy.rows, copy.data(), copy.rows, found.data(), s);
  });
  std::copy(found.begin(), found.end(), values);
  vectors ? copy.store(a, lda) : fill_nan(a, n, n, lda);
}

cusolverStatus_t batched_eigh_size(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t, cublasFillMode_t,
                                   int64_t n, cudaDataType type, const void*, int64_t lda, cudaDataType real,
                                   const void*, cudaDataType computed, size_t* device, size_t* host, int64_t batch) {
  if (!own(handle) || lda < n || computed != type || real != real_of(type)) return kInvalid;
  *device = static_cast<size_t>(batch) * bytes_for(n, n);
  *host = kHostWorkspace;
  return kDone;
}

cusolverStatus_t batched_eigh(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t mode,
                              cublasFillMode_t uplo, int64_t n, cudaDataType type, void* a, int64_t lda,
                              cudaDataType real, void* values, cudaDataType computed, void* device, size_t device_bytes,
                              void* host, size_t host_bytes, int* info, int64_t batch) {
  const Workspace workspace{device, device_bytes, host, host_bytes};
  if (lda < n || computed != type || real != real_of(type) || batch < 1 ||
      !workspace.suffices(static_cast<size_t>(batch) * bytes_for(n, n))) {
    return kInvalid;
  }
  return with_type(type, [&]<typename T>(std::type_identity<T>) {
    return add(handle, batch > 1 ? "cusolverDnXsyevBatched" : "cusolverDnXsyevd", workspace, [=] {
      for (int64_t i = 0; i < batch; ++i) {
        decompose_eigh(mode == CUSOLVER_EIG_MODE_VECTOR, uplo == CUBLAS_FILL_MODE_UPPER, n,
                       static_cast<T*>(a) + i * lda * n, lda, static_cast<real_of_t<T>*>(values) + i * n, info + i);
      }
    });
  });
}

cusolverStatus_t eigh_size(cusolverDnHandle_t handle, cusolverDnParams_t parameters, cusolverEigMode_t mode,
                           cublasFillMode_t uplo, int64_t n, cudaDataType type, const void* a, int64_t lda,
                           cudaDataType real, const void* values, cudaDataType computed, size_t* device, size_t* host) {
  return batched_eigh_size(handle, parameters, mode, uplo, n, type, a, lda, real, values, computed, device, host, 1);
}

cusolverStatus_t eigh(cusolverDnHandle_t handle, cusolverDnParams_t parameters, cusolverEigMode_t mode,
                      cublasFillMode_t uplo, int64_t n, cudaDataType type, void* a, int64_t lda, cudaDataType real,
                      void* values, cudaDataType computed, void* device, size_t device_bytes, void* host,
                      size_t host_bytes, int* info) {
  return batched_eigh(handle, parameters, mode, uplo, n, type, a, lda, real, values, computed, device, device_bytes,
                      host, host_bytes, info, 1);
}

bool is_svd(signed char left, signed char right, int64_t m, int64_t n, cudaDataType type, int64_t lda,
            cudaDataType real, cudaDataType u_type, int64_t ldu, cudaDataType vh_type, int64_t ldvh,
            cudaDataType computed) {
  const bool vectors = left != 'N', known = vectors ? (left == 'A' || left == 'S') && right == 'A' : right == 'N';
  return known && m >= n && lda >= m && ldu >= m && ldvh >= n && real == real_of(type) && u_type == type &&
         vh_type == type && computed == type;
}

cusolverStatus_t svd_size(cusolverDnHandle_t handle, cusolverDnParams_t, signed char left, signed char right, int64_t m,
                          int64_t n, cudaDataType type, const void*, int64_t lda, cudaDataType real, const void*,
                          cudaDataType u_type, const void*, int64_t ldu, cudaDataType vh_type, const void*,
                          int64_t ldvh, cudaDataType computed, size_t* device, size_t* host) {
  if (!own(handle) || !is_svd(left, right, m, n, type, lda, real, u_type, ldu, vh_type, ldvh, computed))
    return kInvalid;
  *device = bytes_for(m, n);
  *host = kHostWorkspace;
  return kDone;
}

cusolverStatus_t svd(cusolverDnHandle_t handle, cusolverDnParams_t, signed char left, signed char right, int64_t m,
                     int64_t n, cudaDataType type, void* a, int64_t lda, cudaDataType real, void* values,
                     cudaDataType u_type, void* u, int64_t ldu, cudaDataType vh_type, void* vh, int64_t ldvh,
                     cudaDataType computed, void* device, size_t device_bytes, void* host, size_t host_bytes,
                     int* info) {
  const Workspace workspace{device, device_bytes, host, host_bytes};
  if (!is_svd(left, right, m, n, type, lda, real, u_type, ldu, vh_type, ldvh, computed) ||
      !workspace.suffices(bytes_for(m, n))) {
    return kInvalid;
  }
  return with_type(type, [&]<typename T>(std::type_identity<T>) {
    return add(handle, "cusolverDnXgesvd", workspace, [=] {
      using R = real_of_t<T>;
      Copy<T> copy(static_cast<T*>(a), m, n, lda), found_u(m, left == 'A' ? m : n), found_vh(n, n);
      std::vector<R> found(static_cast<size_t>(n));
      lapack::Workspace<T> space;
      space.integers.resize(static_cast<size_t>(8 * n));
      space.reals.resize(static_cast<size_t>(std::max(7 * n, n * std::max(5 * n + 7, 2 * m + 2 * n + 1))));
      *info = run(space, [&](auto& s) {
        return lapack::gesdd(static_cast<char>(left), copy.rows, copy.columns, copy.data(), copy.rows, found.data(),
                             found_u.data(), found_u.rows, found_vh.data(), found_vh.rows, s);
      });
      std::copy(found.begin(), found.end(), static_cast<R*>(values));
      if (left != 'N') found_u.store(static_cast<T*>(u), ldu);
      if (left != 'N') found_vh.store(static_cast<T*>(vh), ldvh);
      fill_nan(static_cast<T*>(a), m, n, lda);
    });
  });
}

template <typename T>
int decompose_eig(char job, Copy<T>& a, Complex<real_of_t<T>>* values, Copy<T>& vectors) {
  lapack::Workspace<T> space;
  const int n = a.rows;
  if constexpr (is_complex_v<T>) {
    std::vector<T> found(static_cast<size_t>(n));
    space.reals.resize(static_cast<size_t>(2 * n));
    const int info =
        run(space, [&](auto& s) { return lapack::geev(job, n, a.data(), n, found.data(), vectors.data(), n, s); });
    std::copy(found.begin(), found.end(), values);
    return info;
  } else {
    std::vector<T> re(static_cast<size_t>(n)), im(static_cast<size_t>(n));
    const int info = run(
        space, [&](auto& s) { return lapack::geev(job, n, a.data(), n, re.data(), im.data(), vectors.data(), n, s); });
    for (int i = 0; i < n; ++i) values[i] = {re[static_cast<size_t>(i)], im[static_cast<size_t>(i)]};
    return info;
  }
}

bool is_eig(cusolverEigMode_t left, int64_t n, cudaDataType type, int64_t lda, cudaDataType values_type,
            cudaDataType left_type, int64_t ldvl, cudaDataType right_type, int64_t ldvr, cudaDataType computed) {
  return left == CUSOLVER_EIG_MODE_NOVECTOR && lda >= n && ldvl >= n && ldvr >= n && values_type == complex_of(type) &&
         left_type == type && right_type == type && computed == type;
}

cusolverStatus_t eig_size(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t left, cusolverEigMode_t,
                          int64_t n, cudaDataType type, const void*, int64_t lda, cudaDataType values_type, const void*,
                          cudaDataType left_type, const void*, int64_t ldvl, cudaDataType right_type, const void*,
                          int64_t ldvr, cudaDataType computed, size_t* device, size_t* host) {
  if (!own(handle) || !is_eig(left, n, type, lda, values_type, left_type, ldvl, right_type, ldvr, computed)) {
    return kInvalid;
  }
  *device = bytes_for(n, n);
  *host = kHostWorkspace;
  return kDone;
}

cusolverStatus_t eig(cusolverDnHandle_t handle, cusolverDnParams_t, cusolverEigMode_t left, cusolverEigMode_t right,
                     int64_t n, cudaDataType type, void* a, int64_t lda, cudaDataType values_type, void* values,
                     cudaDataType left_type, void*, int64_t ldvl, cudaDataType right_type, void* vectors, int64_t ldvr,
                     cudaDataType computed, void* device, size_t device_bytes, void* host, size_t host_bytes,
                     int* info) {
  const Workspace workspace{device, device_bytes, host, host_bytes};
  if (!is_eig(left, n, type, lda, values_type, left_type, ldvl, right_type, ldvr, computed) ||
      !workspace.suffices(bytes_for(n, n))) {
    return kInvalid;
  }
  const bool wanted = right == CUSOLVER_EIG_MODE_VECTOR;
  return with_type(type, [&]<typename T>(std::type_identity<T>) {
    return add(handle, "cusolverDnXgeev", workspace, [=] {
      Copy<T> copy(static_cast<T*>(a), n, n, lda), found(n, n);
      *info = decompose_eig(wanted ? 'V' : 'N', copy, static_cast<Complex<real_of_t<T>>*>(values), found);
      if (wanted) found.store(static_cast<T*>(vectors), ldvr);
      fill_nan(static_cast<T*>(a), n, n, lda);
    });
  });
}

}  // namespace

const LibraryFunctions& simulated_cusolver() {
  using F = Complex<float>;
  using D = Complex<double>;
  static const LibraryFunctions functions = {
      {"cusolverDnCreate", entry<decltype(&cusolverDnCreate)>(&create)},
      {"cusolverDnCreateParams", entry<decltype(&cusolverDnCreateParams)>(&create_parameters)},
      {"cusolverDnSetStream", entry<decltype(&cusolverDnSetStream)>(&set_stream)},
      {"cusolverGetVersion", entry<decltype(&cusolverGetVersion)>(&version)},
      {"cusolverDnXpotrf_bufferSize", entry<decltype(&cusolverDnXpotrf_bufferSize)>(&cholesky_size)},
      {"cusolverDnXpotrf", entry<decltype(&cusolverDnXpotrf)>(&cholesky)},
      {"cusolverDnSpotrfBatched", entry<decltype(&cusolverDnSpotrfBatched)>(&batched_cholesky<float, float>)},
      {"cusolverDnDpotrfBatched", entry<decltype(&cusolverDnDpotrfBatched)>(&batched_cholesky<double, double>)},
      {"cusolverDnCpotrfBatched", entry<decltype(&cusolverDnCpotrfBatched)>(&batched_cholesky<F, cuComplex>)},
      {"cusolverDnZpotrfBatched", entry<decltype(&cusolverDnZpotrfBatched)>(&batched_cholesky<D, cuDoubleComplex>)},
      {"cusolverDnXgetrf_bufferSize", entry<decltype(&cusolverDnXgetrf_bufferSize)>(&lu_size)},
      {"cusolverDnXgetrf", entry<decltype(&cusolverDnXgetrf)>(&lu)},
      {"cusolverDnXgeqrf_bufferSize", entry<decltype(&cusolverDnXgeqrf_bufferSize)>(&qr_size)},
      {"cusolverDnXgeqrf", entry<decltype(&cusolverDnXgeqrf)>(&qr)},
      {"cusolverDnSorgqr_bufferSize", entry<decltype(&cusolverDnSorgqr_bufferSize)>(&expand_q_size<float>)},
      {"cusolverDnSorgqr", entry<decltype(&cusolverDnSorgqr)>(&expand_q<float, float>)},
      {"cusolverDnDorgqr_bufferSize", entry<decltype(&cusolverDnDorgqr_bufferSize)>(&expand_q_size<double>)},
      {"cusolverDnDorgqr", entry<decltype(&cusolverDnDorgqr)>(&expand_q<double, double>)},
      {"cusolverDnCungqr_bufferSize", entry<decltype(&cusolverDnCungqr_bufferSize)>(&expand_q_size<cuComplex>)},
      {"cusolverDnCungqr", entry<decltype(&cusolverDnCungqr)>(&expand_q<F, cuComplex>)},
      {"cusolverDnZungqr_bufferSize", entry<decltype(&cusolverDnZungqr_bufferSize)>(&expand_q_size<cuDoubleComplex>)},
      {"cusolverDnZungqr", entry<decltype(&cusolverDnZungqr)>(&expand_q<D, cuDoubleComplex>)},
      {"cusolverDnXsyevd_bufferSize", entry<decltype(&cusolverDnXsyevd_bufferSize)>(&eigh_size)},
      {"cusolverDnXsyevd", entry<decltype(&cusolverDnXsyevd)>(&eigh)},
      {"cusolverDnXsyevBatched_bufferSize", entry<decltype(&cusolverDnXsyevBatched_bufferSize)>(&batched_eigh_size)},
      {"cusolverDnXsyevBatched", entry<decltype(&cusolverDnXsyevBatched)>(&batched_eigh)},
      {"cusolverDnXgesvd_bufferSize", entry<decltype(&cusolverDnXgesvd_bufferSize)>(&svd_size)},
      {"cusolverDnXgesvd", entry<decltype(&cusolverDnXgesvd)>(&svd)},
      {"cusolverDnXgeev_bufferSize", entry<decltype(&cusolverDnXgeev_bufferSize)>(&eig_size)},
      {"cusolverDnXgeev", entry<decltype(&cusolverDnXgeev)>(&eig)}};
  return functions;
}

}  // namespace tt::cuda

#else  // no toolkit: only our own kernels are tested

namespace tt::cuda {

const LibraryFunctions& simulated_cusolver() {
  static const LibraryFunctions functions;
  return functions;
}

}  // namespace tt::cuda

#endif
