// Tensor: a tensor in an engine, with PyTorch's methods.
//
// Generated methods are in TensorMethods, functions in client/api/functions.h. A Tensor is a counted reference: copies
// refer to the same tensor. Calls return at once; only reading a value waits (item, data, printing), and operators
// whose result's shape depends on data. An error of the engine is thrown where a value is read.
//
// Threads: different tensors may be used by different threads at the same time, also of one session. One tensor may be
// read by several threads at once while none of them records calls with it for backward (NoGradGuard).
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/api/accessor.h"
#include "client/api/array_ref.h"
#include "client/api/operand.h"
#include "client/api/options.h"
#include "client/api/tensor_methods.h"

namespace teletensor {

class TensorIndex;
class Session;

class Tensor : public TensorMethods {
 public:
  Tensor() = default;  ///< An undefined tensor.
  explicit Tensor(tt::client::Tensor handle) : TensorMethods(std::move(handle)) {}
  /// A tensor without dimensions of the number's default dtype, in the current session.
  explicit Tensor(const Scalar& number);
  explicit Tensor(double number) : Tensor(Scalar(number)) {}
  explicit Tensor(int number) : Tensor(Scalar(number)) {}

  // Metadata; never waits. An undefined tensor throws RuntimeError. A Program (client/api/program.h) requires of its
  // runs what the traced function has read.
  int64_t dim() const { return meta().dim(); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return read_meta(Read::kSizes).numel(); }
  IntArrayRef sizes() const { return IntArrayRef(read_meta(Read::kSizes).sizes); }
  IntArrayRef strides() const { return IntArrayRef(read_meta(Read::kStrides).strides); }
  /// The size of a dimension; negative ones count from the end. Throws IndexError.
  int64_t size(int64_t dim) const;
  int64_t stride(int64_t dim) const;
  int64_t storage_offset() const { return read_meta(Read::kOffset).offset; }
  Dtype dtype() const { return meta().dtype; }
  Dtype scalar_type() const { return dtype(); }
  Device device() const { return Device(meta().device); }
  TensorOptions options() const { return TensorOptions(dtype()).device(device()); }
  size_t element_size() const { return tt::item_size(dtype()); }
  bool is_same_size(const Tensor& other) const { return sizes() == other.sizes(); }
  size_t nbytes() const { return element_size() * static_cast<size_t>(numel()); }
  bool is_contiguous() const { return read_meta(Read::kContiguity).is_contiguous(); }
  bool is_floating_point() const { return tt::is_floating(dtype()); }
  bool is_complex() const { return tt::is_complex(dtype()); }
  bool is_cuda() const { return device().is_cuda(); }
  bool is_cpu() const { return device().is_cpu(); }
  /// Whether both refer to the same tensor.
  bool is_same(const Tensor& other) const { return handle_ == other.handle_; }
  Session session() const;

  // Values. All wait.
  /// The value of a tensor with one element.
  Scalar item() const;
  template <typename T>
  T item() const {
    return scalar_to<T>(item());
  }
  /// Whether both have the same sizes and elements. NaN equals nothing.
  bool equal(const Tensor& other) const;
  /// Whether all elements are close: |this - other| <= atol + rtol * |other|.
  bool allclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false) const;
  /// A copy of the elements in row-major order, converted to T in the engine if the dtype differs.
  template <typename T>
  std::vector<T> data() const {
    std::vector<T> values(static_cast<size_t>(numel()));
    read(values.data(), values.size() * sizeof(T), dtype_of<T>());
    return values;
  }
  /// A copy of the elements, accessed by N indices.
  template <typename T, size_t N>
  TensorAccessor<T, N> accessor() const {
    return TensorAccessor<T, N>(data<T>(), sizes().vec());
  }
  /// Writes the elements, converted to `dtype`, to memory of the caller of exactly this size.
  void read(void* into, size_t bytes, Dtype dtype) const;

  // Conversions. Return this tensor if there is nothing to convert.
  Tensor to(Dtype dtype) const;
  Tensor to(Device device) const;
  Tensor to(DeviceType type) const { return to(Device(type)); }
  Tensor to(const char* device) const { return to(Device(device)); }
  Tensor to(Device device, Dtype dtype) const { return to(device).to(dtype); }
  Tensor to(const TensorOptions& options) const;
  Tensor to(const Tensor& other) const { return to(other.device(), other.dtype()); }
  Tensor type_as(const Tensor& other) const { return to(other.dtype()); }
  Tensor cpu() const { return to(kCPU); }
  Tensor cuda(int index = 0) const { return to(Device(kCUDA, index)); }
  Tensor to_float() const { return to(kFloat); }

  // Indexing; see client/api/indexing.h.
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor operator[](const Tensor& index) const;
  Tensor index(ArrayRef<TensorIndex> indices) const;
  /// As libtorch: x.index({Slice(1, None), "...", mask}).
  Tensor index(std::initializer_list<TensorIndex> indices) const;
  Tensor index_put_(ArrayRef<TensorIndex> indices, const Operand& value) const;
  Tensor index_put_(std::initializer_list<TensorIndex> indices, const Operand& value) const;
  /// Of lists of index tensors, as Python's method.
  Tensor index_put_(const std::vector<Tensor>& indices, const Operand& values, bool accumulate = false) const;
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt, std::optional<int64_t> end = std::nullopt,
               int64_t step = 1) const;

  // Writes.
  /// Copies a tensor's or number's values into this tensor, which keeps its dtype and sizes.
  Tensor copy_(const Operand& source) const;
  Tensor zero_() const { return fill_(0); }
  using TensorMethods::fill_;
  Tensor where(const Tensor& condition, const Operand& other) const;

  // Autograd; see client/api/autograd.h.
  bool requires_grad() const { return meta().requires_grad; }
  /// Requires a leaf.
  const Tensor& set_requires_grad(bool value) const;
  Tensor requires_grad_(bool value = true) const { return set_requires_grad(value); }
  bool is_leaf() const;
  /// The gradient that backward() has accumulated; undefined if there is none.
  Tensor grad() const;
  /// Replaces the gradient; an undefined tensor removes it.
  void set_grad(const Tensor& grad) const;
  void backward(const Tensor& gradient = Tensor(), std::optional<bool> retain_graph = std::nullopt,
                bool create_graph = false) const;
  /// Makes backward() keep the gradient of a tensor that is not a leaf.
  void retain_grad() const;
  /// Makes this tensor have the dtype, device and values of `source`, everywhere it is referred to. Keeps
  /// requires_grad.
  void set_data(const Tensor& source) const;
  /// Throws RuntimeError if the tensor is undefined.
  const tt::TensorMeta& meta() const {
    if (!handle_) [[unlikely]]
      throw_undefined();
    return *handle_;
  }

  Tensor operator-() const { return neg(); }
  Tensor operator~() const { return bitwise_not(); }
  const Tensor& operator+=(const Operand& other) const { return add_(other), *this; }
  const Tensor& operator-=(const Operand& other) const { return sub_(other), *this; }
  const Tensor& operator*=(const Operand& other) const { return mul_(other), *this; }
  const Tensor& operator/=(const Operand& other) const { return div_(other), *this; }
  const Tensor& operator%=(const Operand& other) const { return remainder_(other), *this; }
  const Tensor& operator&=(const Operand& other) const { return bitwise_and_(other), *this; }
  const Tensor& operator|=(const Operand& other) const { return bitwise_or_(other), *this; }
  const Tensor& operator^=(const Operand& other) const { return bitwise_xor_(other), *this; }

  /// "CPUFloatType", as libtorch prints it.
  std::string toString() const;

 private:
  [[noreturn]] static void throw_undefined();
  static constexpr uint64_t kTracedHandle = uint64_t{1} << 63;  // as ProgramTrace::kTracedHandle
  // What the caller reads of the metadata.
  enum class Read : uint8_t { kSize, kSizes, kStride, kStrides, kOffset, kContiguity };
  const tt::TensorMeta& read_meta(Read what, size_t dim = 0) const {
    const tt::TensorMeta& read = meta();
    if ((handle_->id & kTracedHandle) != 0) [[unlikely]]
      require_of_runs(what, dim);
    return read;
  }
  void require_of_runs(Read what, size_t dim) const;
  template <typename T>
  static T scalar_to(const Scalar& value) {
    if constexpr (std::is_same_v<T, bool>) {
      return value.to_bool();
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(value.to_int());
    } else if constexpr (std::is_floating_point_v<T>) {
      return static_cast<T>(value.to_double());
    } else {
      return T(value.to_complex());
    }
  }
};

inline bool equal(const Tensor& input, const Tensor& other) { return input.equal(other); }
inline bool allclose(const Tensor& input, const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                     bool equal_nan = false) {
  return input.allclose(other, rtol, atol, equal_nan);
}

/// Prints as libtorch: values, then "[ CPUFloatType{2,3} ]". Waits.
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);

// Operators with numbers on either side. `a && b` is not overloaded.
#define TELETENSOR_OPERATOR(symbol, method)                                                                            \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return a.method(b); }                              \
  template <typename T>                                                                                                \
  requires(std::is_arithmetic_v<T> || std::is_same_v<T, Scalar>) Tensor operator symbol(const Tensor& a, const T& b) { \
    return a.method(b);                                                                                                \
  }
TELETENSOR_OPERATOR(+, add)
TELETENSOR_OPERATOR(-, sub)
TELETENSOR_OPERATOR(*, mul)
TELETENSOR_OPERATOR(/, div)
TELETENSOR_OPERATOR(%, remainder)
TELETENSOR_OPERATOR(==, eq)
TELETENSOR_OPERATOR(!=, ne)
TELETENSOR_OPERATOR(<, lt)
TELETENSOR_OPERATOR(<=, le)
TELETENSOR_OPERATOR(>, gt)
TELETENSOR_OPERATOR(>=, ge)
TELETENSOR_OPERATOR(&, bitwise_and)
TELETENSOR_OPERATOR(|, bitwise_or)
TELETENSOR_OPERATOR(^, bitwise_xor)
#undef TELETENSOR_OPERATOR

namespace internal {
Tensor subtract(const Operand& a, const Tensor& b);
Tensor divide(const Operand& a, const Tensor& b);
}  // namespace internal

// With the number on the left.
#define TELETENSOR_LEFT(symbol, expression)                                                                            \
  template <typename T>                                                                                                \
  requires(std::is_arithmetic_v<T> || std::is_same_v<T, Scalar>) Tensor operator symbol(const T& a, const Tensor& b) { \
    return expression;                                                                                                 \
  }
TELETENSOR_LEFT(+, b.add(a))
TELETENSOR_LEFT(-, internal::subtract(a, b))
TELETENSOR_LEFT(*, b.mul(a))
TELETENSOR_LEFT(/, internal::divide(a, b))
TELETENSOR_LEFT(<, b.gt(a))
TELETENSOR_LEFT(<=, b.ge(a))
TELETENSOR_LEFT(>, b.lt(a))
TELETENSOR_LEFT(>=, b.le(a))
#undef TELETENSOR_LEFT

}  // namespace teletensor
