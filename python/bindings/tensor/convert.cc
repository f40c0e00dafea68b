#include "python/bindings/tensor/convert.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "client/session/default_dtype.h"
#include "engine/schema/float8.h"
#include "engine/schema/op_ids.h"
#include "python/bindings/tensor/mode.h"
#include "python/bindings/tensor/object.h"
#include "python/bindings/tensor/operators.h"
#include "python/bindings/tensor/parse.h"
#include "python/bindings/tensor/read.h"
#include "python/bindings/tensor/symbolic_int.h"

namespace tt::python {
namespace {

// Returns the dtype for a buffer's format character; nullopt if the format is unsupported.
std::optional<DType> dtype_of_format(const char* format, Py_ssize_t itemsize) {
  if (!format) return DType::kUInt8;
  while (*format == '@' || *format == '=' || *format == '<') ++format;
  switch (*format) {
    case '?': return DType::kBool;
    case 'B': return DType::kUInt8;
    case 'b': return DType::kInt8;
    case 'h': return DType::kInt16;
    case 'H': return DType::kUInt16;
    case 'I':
    case 'L':
    case 'Q': return itemsize == 4 ? DType::kUInt32 : DType::kUInt64;
    case 'i':
    case 'l':
    case 'q': return itemsize == 4 ? DType::kInt32 : DType::kInt64;
    case 'e': return DType::kFloat16;
    case 'f': return DType::kFloat32;
    case 'd': return DType::kFloat64;
    case 'Z':
      if (format[1] == 'f') return DType::kComplex64;
      return format[1] == 'd' ? std::optional(DType::kComplex128) : std::nullopt;
    default: return std::nullopt;
  }
}

class Buffer {
 public:
  Buffer(PyObject* o, int flags) { valid_ = PyObject_GetBuffer(o, &view_, flags) == 0; }
  ~Buffer() {
    if (valid_) PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  bool valid() const { return valid_; }
  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
  bool valid_ = false;
};

// Returns the dtype of an object's buffer; nullopt if it is unsupported, or if the object is one of NumPy's numbers
// that exports the bytes of its value, such as datetime64: its buffer has a dimension, and the object has none.
std::optional<DType> dtype_of_buffer(PyObject* o, const Py_buffer& view) {
  if (view.ndim == 1 && is_array(o)) {
    Owned dimensions(PyObject_GetAttrString(o, "ndim"));
    if (!dimensions) PyErr_Clear();
    if (dimensions && PyObject_IsTrue(dimensions.get()) == 0) return std::nullopt;
  }
  return dtype_of_format(view.format, view.itemsize);
}

client::Tensor cast(client::Tensor t, std::optional<DType> dtype) {
  if (!dtype || *dtype == t->dtype) return t;
  const Arg args[] = {Arg(static_cast<const TensorMeta*>(t.get())), Arg(*dtype)};
  return call_op(op_id::kToDtype, args, *t->session)[0];
}

client::Tensor from_buffer(PyObject* data, std::optional<DType> dtype, Device device, client::Session& session) {
  Buffer buffer(data, PyBUF_FULL_RO);
  if (!buffer.valid()) {
    if (!is_array(data) || !PyErr_ExceptionMatches(PyExc_ValueError)) throw PythonErrorSet();
    PyErr_Clear();  // an array of dates, for example
    fail(ErrorKind::kType, "can't convert an array whose dtype has no buffer format, such as datetime64, to a tensor");
  }
  const Py_buffer& view = buffer.view();
  std::optional<DType> own = dtype_of_buffer(data, view);
  check(ErrorKind::kType, own.has_value(), "can't convert np.ndarray of format '", view.format ? view.format : "",
        "'. The supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
        "uint64, "
        "uint32, uint16, uint8, and bool.");
  // The bytes are read according to format and shape, so contradictory values are rejected.
  int64_t length = view.itemsize;
  for (int i = 0; i < view.ndim; ++i) {
    check(ErrorKind::kValue,
          view.shape && view.shape[i] >= 0 && !__builtin_mul_overflow(length, view.shape[i], &length),
          "expected a buffer of less than 2^63 bytes, got size ", view.shape ? view.shape[i] : -1, " in dimension ", i);
  }
  check(ErrorKind::kValue, static_cast<size_t>(view.itemsize) == item_size(*own) && length == view.len,
        "the buffer's format, shape and length contradict each other: ", view.len, " bytes, items of ", view.itemsize,
        " bytes in format '", view.format ? view.format : "", "'");
  Sizes sizes(view.shape, view.shape + view.ndim);
  absl::Span<const char> bytes(static_cast<const char*>(view.buf), static_cast<size_t>(view.len));
  std::string packed;
  if (!PyBuffer_IsContiguous(&view, 'C')) {
    packed.resize(static_cast<size_t>(view.len));
    if (PyBuffer_ToContiguous(packed.data(), &view, view.len, 'C') < 0) throw PythonErrorSet();
    bytes = packed;
  }
  return cast(upload(session, bytes, *own, sizes, device), dtype);
}

// What a Python int exceeds; a type exceeds those before it.
enum class Beyond : uint8_t { kNothing, kInt64, kUInt64, kDouble };

// The flattened entries of nested sequences, and the properties that determine the tensor's dtype.
struct FlattenedData {
  Sizes sizes;
  std::vector<Scalar> values;
  Category category = Category::kBool;  // category of all entries
  Category plain = Category::kBool;     // category of the Python numbers among the entries
  Beyond beyond = Beyond::kNothing;     // what some entry exceeds
  std::optional<DType> typed;           // promoted from the entries that have a dtype: tensors, arrays, NumPy's numbers
  bool is_plain = false;                // some entry is a Python number

  // The value of a Python int beyond int64, rounded if it exceeds uint64, too.
  Scalar beyond_int64(PyObject* o) {
    const unsigned long long v = PyLong_AsUnsignedLongLong(o);
    if (!PyErr_Occurred()) return beyond = std::max(beyond, Beyond::kInt64), Scalar::of_unsigned(v);
    PyErr_Clear();
    const double rounded = PyLong_AsDouble(o);
    beyond = std::max(beyond, PyErr_Occurred() ? Beyond::kDouble : Beyond::kUInt64);
    PyErr_Clear();
    return Scalar(rounded);
  }
  void add_type(std::optional<DType> dtype) {
    if (dtype) typed = typed ? promote(*typed, *dtype) : *dtype;
  }
};

bool is_sequence(PyObject* o) {
  if (!PySequence_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) || is_tensor(o)) return false;
  if (!is_array(o)) return true;
  Owned dimensions(PyObject_GetAttrString(o, "ndim"));  // a zero-dim array is a number
  if (!dimensions) PyErr_Clear();
  return !dimensions || PyObject_IsTrue(dimensions.get()) != 0;
}

// Returns the dtype of an array or of one of NumPy's numbers, and nullopt for another object. Throws Error (TypeError)
// if no dtype corresponds to the array's.
std::optional<DType> entry_dtype(PyObject* o) {
  const std::optional<DType> dtype = buffer_dtype(o);
  check(ErrorKind::kType, dtype || !is_array(o), "can't convert an entry of type ", Py_TYPE(o)->tp_name,
        ": its items have no corresponding dtype");
  return dtype;
}

void add_leaf(PyObject* o, FlattenedData* flat, bool in_array) {
  Scalar value;
  bool plain = !in_array, is_int = false;
  o = decided(o);
  if (PyBool_Check(o)) {
    value = Scalar(o == Py_True);
  } else if (PyLong_Check(o) || (PyIndex_Check(o) && !is_tensor(o))) {
    Owned index(throw_if_null(PyNumber_Index(o)));
    int overflow = 0;
    long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
    if (v == -1 && !overflow && PyErr_Occurred()) throw PythonErrorSet();
    value = overflow ? flat->beyond_int64(index.get()) : Scalar(int64_t{v});
    is_int = true;
  } else if (is_tensor(o)) {
    check(ErrorKind::kValue, handle_of(o)->numel() == 1, "only one element tensors can be converted to Python scalars");
    value = tensor_number(o);
    flat->add_type(handle_of(o)->dtype);
    plain = false;
  } else if (Arg number; PyNumber_Check(o) && !PyFloat_Check(o) && plain_number(o, &number)) {
    value = number.scalar();  // complex or NumPy's
  } else {
    double v = PyFloat_AsDouble(o);
    if (v == -1 && PyErr_Occurred()) throw PythonErrorSet();
    value = Scalar(v);
  }
  // Exact types: numpy.float64 and numpy.complex128 are subclasses of Python's numbers.
  if (plain && !PyFloat_CheckExact(o) && !PyLong_Check(o) && !PyComplex_CheckExact(o)) {
    const std::optional<DType> dtype = entry_dtype(o);
    flat->add_type(dtype);
    plain = !dtype;
  }
  const Category category = is_int ? Category::kInteger : value.category();
  if (plain) flat->plain = std::max(flat->plain, category);
  flat->is_plain |= plain;
  flat->category = std::max(flat->category, category);
  flat->values.push_back(value);
}

void flatten(PyObject* o, size_t depth, FlattenedData* flat, bool in_array = false) {
  if (!is_sequence(o)) {
    check(ErrorKind::kValue, depth == flat->sizes.size(), "expected sequence of length ",
          depth < flat->sizes.size() ? flat->sizes[depth] : 0, " at dim ", depth);
    return add_leaf(o, flat, in_array);
  }
  if (!in_array && is_array(o)) {
    flat->add_type(entry_dtype(o));
    in_array = true;
  }
  // Copied to a tuple: converting an entry may run Python code that changes the list.
  Owned items(throw_if_null(PySequence_Tuple(o)));
  int64_t n = PyTuple_GET_SIZE(items.get());
  check(ErrorKind::kValue, depth < flat->sizes.size() && flat->sizes[depth] == n, "expected sequence of length ",
        depth < flat->sizes.size() ? flat->sizes[depth] : 0, " at dim ", depth, " (got ", n, ")");
  for (int64_t i = 0; i < n; ++i) flatten(PyTuple_GET_ITEM(items.get(), i), depth + 1, flat, in_array);
}

// Returns the lengths of nested sequences, following the first element at each level. flatten() checks the other
// elements against these sizes.
Sizes infer_sizes(PyObject* o) {
  Sizes sizes;
  Owned level(Py_NewRef(o));
  while (is_sequence(level.get())) {
    check(ErrorKind::kValue, sizes.size() < 64, "too many dimensions in nested sequence");
    Py_ssize_t n = PySequence_Size(level.get());
    if (n < 0) throw PythonErrorSet();
    sizes.push_back(n);
    if (n == 0) break;
    level = Owned(throw_if_null(PySequence_GetItem(level.get(), 0)));
  }
  return sizes;
}

// PyTorch's rule: a negative number may wrap around in an unsigned type that holds its magnitude.
template <typename T>
bool fits(const Scalar& value) {
  using Limits = std::numeric_limits<T>;
  if (value.category() == Category::kFloating) {
    const double v = value.to_double(), end = std::ldexp(1.0, Limits::digits);  // exact, unlike max() of a 64-bit type
    return v < end && (std::is_signed_v<T> ? v >= -end : v > -end);             // NaN does not fit
  }
  if (value.is_beyond_int()) return sizeof(T) == 8 && !std::is_signed_v<T>;
  const int64_t v = value.to_int();
  if constexpr (sizeof(T) == 8) {
    return std::is_signed_v<T> || v >= 0;
  } else {
    const int64_t upper = Limits::max(), lower = std::is_signed_v<T> ? int64_t{Limits::min()} : -upper;
    return v <= upper && v >= lower;
  }
}

template <typename T>
void pack(const std::vector<Scalar>& values, std::string* bytes) {
  bytes->resize(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T v;
    if constexpr (std::is_same_v<T, std::complex<float>>)
      v = T(values[i].to_complex());
    else if constexpr (std::is_same_v<T, std::complex<double>>)
      v = values[i].to_complex();
    else if constexpr (std::is_integral_v<T>) {
      check(fits<T>(values[i]), "value cannot be converted to type ", std::is_signed_v<T> ? "int" : "uint",
            8 * sizeof(T), " without overflow, got ", values[i].to_string());
      v = values[i].category() == Category::kFloating && values[i].to_double() >= 0x1p63
              ? static_cast<T>(static_cast<uint64_t>(values[i].to_double()))
              : static_cast<T>(values[i].to_int());
    } else if constexpr (std::is_same_v<T, double>)
      v = values[i].to_double();
    else
      v = T(static_cast<float>(values[i].to_double()));
    std::memcpy(bytes->data() + i * sizeof(T), &v, sizeof(T));
  }
}

std::string pack_as(DType t, const std::vector<Scalar>& values) {
  std::string bytes;
  switch (t) {
    case DType::kBool:
      for (const Scalar& v : values) bytes.push_back(v.to_bool() ? 1 : 0);
      break;
    case DType::kUInt8: pack<uint8_t>(values, &bytes); break;
    case DType::kInt8: pack<int8_t>(values, &bytes); break;
    case DType::kInt16: pack<int16_t>(values, &bytes); break;
    case DType::kInt32: pack<int32_t>(values, &bytes); break;
    case DType::kInt64: pack<int64_t>(values, &bytes); break;
    case DType::kFloat16: pack<Half>(values, &bytes); break;
    case DType::kBFloat16: pack<BFloat16>(values, &bytes); break;
    case DType::kFloat32: pack<float>(values, &bytes); break;
    case DType::kFloat64: pack<double>(values, &bytes); break;
    case DType::kComplex64: pack<std::complex<float>>(values, &bytes); break;
    case DType::kComplex128: pack<std::complex<double>>(values, &bytes); break;
    case DType::kUInt16: pack<uint16_t>(values, &bytes); break;
    case DType::kUInt32: pack<uint32_t>(values, &bytes); break;
    case DType::kUInt64: pack<uint64_t>(values, &bytes); break;
    case DType::kFloat8E4m3fn: pack<Float8E4m3fn>(values, &bytes); break;
    case DType::kFloat8E5m2: pack<Float8E5m2>(values, &bytes); break;
  }
  return bytes;
}

// Raises PyTorch's errors for ints that the dtype does not hold.
void check_holds(DType dtype, Beyond beyond) {
  if (category(dtype) == Category::kInteger && dtype != DType::kUInt64) fail_beyond_64_bits();
  const bool fits = is_integral(dtype) ? dtype == DType::kBool || beyond < Beyond::kUInt64 : beyond < Beyond::kDouble;
  if (fits) return;
  PyErr_SetString(PyExc_OverflowError,
                  is_integral(dtype) ? "int too big to convert" : "int too large to convert to float");
  throw PythonErrorSet();
}

}  // namespace

std::optional<DType> buffer_dtype(PyObject* o) {
  if (!PyObject_CheckBuffer(o) || PyBytes_Check(o)) return std::nullopt;
  Buffer buffer(o, PyBUF_FULL_RO);
  if (!buffer.valid()) return PyErr_Clear(), std::nullopt;
  return dtype_of_buffer(o, buffer.view());
}

bool is_array(PyObject* o) {
  return PyObject_CheckBuffer(o) && !PyBytes_Check(o) && PyObject_HasAttrString(o, "__array_interface__");
}

client::Tensor tensor_from(PyObject* data, std::optional<DType> dtype, Device device, client::Session& session) {
  if (is_tensor(data)) {
    const Arg args[] = {Arg(static_cast<const TensorMeta*>(handle_of(data).get()))};
    client::Tensor detached = call_op(op_id::kDetach, args, session)[0];
    const Arg clone_args[] = {Arg(static_cast<const TensorMeta*>(detached.get()))};
    return cast(call_op(op_id::kClone, clone_args, session)[0], dtype);
  }
  if (PyObject_CheckBuffer(data) && !PyBytes_Check(data)) return from_buffer(data, dtype, device, session);
  FlattenedData flat;
  flat.sizes = infer_sizes(data);
  flatten(data, 0, &flat);
  const DType plain = flat.plain == Category::kBool       ? DType::kBool
                      : flat.plain == Category::kInteger  ? DType::kInt64
                      : flat.plain == Category::kFloating ? client::default_dtype()
                                                          : to_complex(client::default_dtype());
  const DType natural = !flat.typed     ? (flat.values.empty() ? client::default_dtype() : plain)
                        : flat.is_plain ? promote(*flat.typed, plain)
                                        : *flat.typed;
  DType result = dtype.value_or(natural);
  if (flat.beyond > Beyond::kNothing) check_holds(result, flat.beyond);
  check(ErrorKind::kType, flat.category != Category::kComplex || is_complex(result) || flat.typed,
        "must be real number, not complex");
  return upload(session, pack_as(result, flat.values), result, flat.sizes, device);
}

void read_into(const client::Tensor& tensor, PyObject* buffer) {
  Buffer target(buffer, PyBUF_CONTIG);
  if (!target.valid()) throw PythonErrorSet();
  size_t bytes = static_cast<size_t>(tensor->numel()) * item_size(tensor->dtype);
  check(static_cast<size_t>(target.view().len) == bytes, "[read_into] expected a buffer of ", bytes, " bytes, got ",
        target.view().len);
  if (bytes == 0) return;
  uint32_t site = current_site(*tensor->session);
  ReleaseGil released;
  tensor->session->read_into(tensor, {static_cast<char*>(target.view().buf), bytes}, site);
}

}  // namespace tt::python
