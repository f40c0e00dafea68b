// Blas by cuBLASLt. A row-major product is computed as the column-major product of the transposed matrices.
#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/mutex.h"
#include "kernels/cuda/libraries/library.h"
#include "kernels/cuda/runtime/blas.h"

namespace tt::cuda {
namespace {

constexpr uint64_t kMaxWorkspace = uint64_t{32} << 20;  // NVIDIA's recommendation since Hopper
constexpr size_t kMaxChoices = 4096;                    // cache size; the cache is cleared when it is full

struct CublasLt {
  Library library{"cuBLASLt", {"libcublasLt.so.13", "libcublasLt.so.12"}};
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
  decltype(&cublasLtMatmulDescInit_internal) init_desc;
  decltype(&cublasLtMatmulDescSetAttribute) set_desc;
  decltype(&cublasLtMatrixLayoutInit_internal) init_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceInit_internal) init_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtGetStatusString) text;

  CublasLt() {
    check(static_cast<bool>(library),
          "matrix products on CUDA require libcublasLt, which could not be opened: ", library.why());
    library.find(create, "cublasLtCreate");
    library.find(matmul, "cublasLtMatmul");
    library.find(choose, "cublasLtMatmulAlgoGetHeuristic");
    library.find(init_desc, "cublasLtMatmulDescInit_internal");
    library.find(set_desc, "cublasLtMatmulDescSetAttribute");
    library.find(init_layout, "cublasLtMatrixLayoutInit_internal");
    library.find(set_layout, "cublasLtMatrixLayoutSetAttribute");
    library.find(init_preference, "cublasLtMatmulPreferenceInit_internal");
    library.find(set_preference, "cublasLtMatmulPreferenceSetAttribute");
    library.find(text, "cublasLtGetStatusString");
    decltype(&cublasLtGetVersion) version;
    library.find(version, "cublasLtGetVersion");
    library.record_version(version());
  }
  void must(const char* call, cublasStatus_t status) const {
    check(status == CUBLAS_STATUS_SUCCESS, "cuBLAS error: ", text(status), " (from ", call, ")");
  }
};

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16: return CUDA_R_16F;
    case DType::kBFloat16: return CUDA_R_16BF;
    case DType::kFloat64: return CUDA_R_64F;
    case DType::kComplex64: return CUDA_C_32F;
    case DType::kComplex128: return CUDA_C_64F;
    case DType::kFloat8E4m3fn: return CUDA_R_8F_E4M3;
    case DType::kFloat8E5m2: return CUDA_R_8F_E5M2;
    default: return CUDA_R_32F;
  }
}

bool is_double(DType dtype) { return to_real(dtype) == DType::kFloat64; }

bool is_narrow(DType dtype) { return is_floating(dtype) && item_size(dtype) < 4; }

// The dtypes of b and of c. They may differ from a's dtype: both if a is 8-bit, and c's if p.wide.
DType other_type(const BlasProduct& p) { return is_float8(p.dtype) ? p.float8.other : p.dtype; }
DType result_type(const BlasProduct& p) {
  if (is_float8(p.dtype)) return p.float8.result;
  return p.wide ? DType::kFloat32 : p.dtype;
}

cublasComputeType_t compute_type(const BlasProduct& p) {
  if (is_double(p.dtype)) return CUBLAS_COMPUTE_64F;
  return to_real(p.dtype) == DType::kFloat32 && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// Whether cuBLAS has to transpose the matrix. A row-major matrix needs no transposition: read as column-major, it is
// already the transpose.
bool is_transposed(const Matrix& x) { return x.column_stride != 1; }
int64_t leading_dimension(const Matrix& x) { return is_transposed(x) ? x.column_stride : x.row_stride; }

cublasLtEpilogue_t epilogue_of(Activation activation) {
  switch (activation) {
    case Activation::kRelu: return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Activation::kGelu: return CUBLASLT_EPILOGUE_GELU_BIAS;
    default: return CUBLASLT_EPILOGUE_BIAS;
  }
}

// Returns the alignment of an address in bytes, at most 256.
uint32_t alignment(const void* p) {
  uint32_t bytes = 256;
  while (reinterpret_cast<uintptr_t>(p) % bytes != 0) bytes /= 2;
  return bytes;
}

using Key = std::array<int64_t, 18>;

// Returns all properties that the choice of an algorithm depends on.
Key key_of(const BlasProduct& p, int device) {
  const int64_t flags = is_transposed(p.a) | is_transposed(p.b) << 1 | (p.bias != nullptr) << 2 | p.tf32 << 3 |
                        p.wide << 4 | p.accumulate << 5 | p.float8.fast_sums << 6 | (p.float8.a_scale != nullptr) << 7 |
                        (p.float8.b_scale != nullptr) << 8 | (p.float8.result_scale != nullptr) << 9 |
                        static_cast<int64_t>(p.activation) << 10 | static_cast<int64_t>(p.float8.bias) << 12;
  return {device,
          static_cast<int64_t>(p.dtype),
          static_cast<int64_t>(other_type(p)),
          static_cast<int64_t>(result_type(p)),
          flags,
          p.m,
          p.n,
          p.k,
          p.batch,
          p.a_step,
          p.b_step,
          p.c_step,
          leading_dimension(p.a),
          leading_dimension(p.b),
          alignment(p.a.data),
          alignment(p.b.data),
          alignment(p.c),
          alignment(p.bias)};
}

// The cuBLASLt descriptors of a product. They are plain structs that own nothing.
class Problem {
 public:
  Problem(const CublasLt& lt, const BlasProduct& p) : lt_(lt), p_(p) {
    const cudaDataType_t scale = is_narrow(p.dtype) ? CUDA_R_32F : type_of(p.dtype);
    lt.must("cublasLtMatmulDescInit", lt.init_desc(&desc_, sizeof(desc_), compute_type(p), scale));
    const cublasOperation_t turn_b = is_transposed(p.b) ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t turn_a = is_transposed(p.a) ? CUBLAS_OP_T : CUBLAS_OP_N;
    set(CUBLASLT_MATMUL_DESC_TRANSA, turn_b);
    set(CUBLASLT_MATMUL_DESC_TRANSB, turn_a);
    if (p.bias) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p.activation));
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    }
    if (is_float8(p.dtype)) set_float8_terms();
    lay_out(b_, other_type(p), p.b, p.k, p.n, p.b_step);
    lay_out(a_, p.dtype, p.a, p.m, p.k, p.a_step);
    lay_out(d_, result_type(p), {p.c, p.n, 1}, p.m, p.n, p.c_step);
    // An 8-bit result requires c to have the bias's dtype; c is not read if its factor is 0.
    lay_out(c_, is_float8(result_type(p)) ? p.float8.bias : result_type(p), {p.c, p.n, 1}, p.m, p.n, p.c_step);
  }

  cublasLtMatmulHeuristicResult_t choose(cublasLtHandle_t handle) const {
    cublasLtMatmulPreferenceOpaque_t preference;
    lt_.must("cublasLtMatmulPreferenceInit", lt_.init_preference(&preference, sizeof(preference)));
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      lt_.must("cublasLtMatmulPreferenceSetAttribute",
               lt_.set_preference(&preference, attribute, &value, sizeof(value)));
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMaxWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(p_.b.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(p_.a.data));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(p_.c));
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(p_.c));
    cublasLtMatmulHeuristicResult_t result{};
    int found = 0;
    lt_.must("cublasLtMatmulAlgoGetHeuristic", lt_.choose(handle, mutable_desc(), layout(b_), layout(a_), layout(c_),
                                                          layout(d_), &preference, 1, &result, &found));
    check(found > 0, "cuBLAS does not support the product of ", p_.m, "x", p_.k, " and ", p_.k, "x", p_.n,
          " matrices of ", p_.dtype);
    return result;
  }

  // `workspace` has chosen.workspaceSize bytes.
  void run(cublasLtHandle_t handle, const cublasLtMatmulHeuristicResult_t& chosen, void* workspace,
           StreamHandle stream) const {
    const double one[] = {p_.alpha, 0},
                 kept[] = {p_.accumulate ? 1.0 : 0.0, 0};  // [1]: the imaginary part, read for complex elements
    const float one_f[] = {static_cast<float>(p_.alpha), 0}, kept_f[] = {p_.accumulate ? 1.0F : 0.0F, 0};
    const bool in_double = is_double(p_.dtype);
    const void *alpha = in_double ? static_cast<const void*>(one) : one_f,
               *beta = in_double ? static_cast<const void*>(kept) : kept_f;
    // The library refuses c in the place of d with another dtype, which an 8-bit result has; it does not read c then.
    const void* const c = is_float8(result_type(p_)) ? nullptr : p_.c;
    lt_.must("cublasLtMatmul", lt_.matmul(handle, mutable_desc(), alpha, p_.b.data, layout(b_), p_.a.data, layout(a_),
                                          beta, c, layout(c_), p_.c, layout(d_), &chosen.algo, workspace,
                                          chosen.workspaceSize, static_cast<cudaStream_t>(stream)));
  }

 private:
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    lt_.must("cublasLtMatmulDescSetAttribute", lt_.set_desc(&desc_, attribute, &value, sizeof(value)));
  }
  // Operands are exchanged: the library's A is our b.
  void set_float8_terms() {
    const Float8Params& terms = p_.float8;
    if (terms.b_scale) set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, static_cast<const void*>(terms.b_scale));
    if (terms.a_scale) set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, static_cast<const void*>(terms.a_scale));
    if (terms.result_scale) set(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, static_cast<const void*>(terms.result_scale));
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(terms.fast_sums));
    if (p_.bias) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(terms.bias));
  }
  void lay_out(cublasLtMatrixLayoutOpaque_t& layout, DType dtype, const Matrix& x, int64_t rows, int64_t columns,
               int64_t step) {
    if (!is_transposed(x)) std::swap(rows, columns);
    lt_.must("cublasLtMatrixLayoutInit",
             lt_.init_layout(&layout, sizeof(layout), type_of(dtype), static_cast<uint64_t>(rows),
                             static_cast<uint64_t>(columns), leading_dimension(x)));
    if (p_.batch == 1) return;
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
      lt_.must("cublasLtMatrixLayoutSetAttribute", lt_.set_layout(&layout, attribute, &value, sizeof(value)));
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(p_.batch));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
  }
  // The library's parameters are not const, even if it only reads them.
  cublasLtMatmulDesc_t mutable_desc() const { return const_cast<cublasLtMatmulDescOpaque_t*>(&desc_); }
  static cublasLtMatrixLayout_t layout(const cublasLtMatrixLayoutOpaque_t& x) {
    return const_cast<cublasLtMatrixLayoutOpaque_t*>(&x);
  }

  const CublasLt& lt_;
  const BlasProduct& p_;
  cublasLtMatmulDescOpaque_t desc_;
  cublasLtMatrixLayoutOpaque_t a_, b_, c_, d_;
};

class CublasProducts final : public Blas {
 public:
  void multiply(const Queue& queue, const BlasProduct& product) override {
    const Choice choice = choose(product, queue.device().index);
    Tensor workspace;
    if (choice.result.workspaceSize > 0) {
      workspace = empty(Sizes{static_cast<int64_t>(choice.result.workspaceSize)}, DType::kUInt8, queue.device());
    }
    void* const scratch = workspace ? workspace.data() : nullptr;
    queue.add([this, product, choice, scratch](StreamHandle stream) {
      Problem(lt_, product).run(choice.handle, choice.result, scratch, stream);
    });
  }

 private:
  struct Choice {
    cublasLtHandle_t handle;
    cublasLtMatmulHeuristicResult_t result;
  };

  // Results are cached by key, because the library's heuristic takes many times as long as the launch.
  Choice choose(const BlasProduct& product, int device) {
    MutexLock lock(mutex_);
    cublasLtHandle_t& handle = handles_[device];
    if (!handle) lt_.must("cublasLtCreate", lt_.create(&handle));
    const Key key = key_of(product, device);
    auto found = choices_.find(key);
    if (found == choices_.end()) {
      if (choices_.size() >= kMaxChoices) choices_.clear();
      found = choices_.emplace(key, Problem(lt_, product).choose(handle)).first;
    }
    return {handle, found->second};
  }

  const CublasLt lt_;
  Mutex mutex_;
  std::map<int, cublasLtHandle_t> handles_ ABSL_GUARDED_BY(mutex_);  // per device
  std::map<Key, cublasLtMatmulHeuristicResult_t> choices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Blas> make_blas() { return std::make_unique<CublasProducts>(); }

}  // namespace tt::cuda
