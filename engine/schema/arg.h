// Arg: one argument of an operator call, in 24 bytes, without ownership.
//
// Tensors, lists and strings must outlive the call they are passed to. In a Program, a tensor argument is a slot
// (kSlot, kSlots); the executor replaces it by the tensor.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "engine/schema/device.h"
#include "engine/schema/meta.h"
#include "engine/schema/scalar.h"

namespace tt {

struct Arg {
  enum class Kind : uint8_t {
    // Each comment names the members that hold the argument.
    kNone,     // an omitted optional
    kTensor,   // tensor
    kTensors,  // tensors, size (entries may be null in a list of optionals)
    kBool,     // integer; also for a number passed for a tensor
    kInt,      // integer; also for a dtype, a device, or a number passed for a tensor; size 1: unsigned
    kFloat,    // real; also for a number passed for a tensor
    kComplex,  // real, imaginary; also for a number passed for a tensor
    kInts,     // integers, size
    kFloats,   // reals, size
    kString,   // characters, size
    kSlot,     // slot: only in a Program
    kSlots,    // slots, size: only in a Program; 0 is an absent optional
  };

  Kind kind = Kind::kNone;
  uint32_t size = 0;
  union {
    const TensorMeta* tensor;
    const TensorMeta* const* tensors;
    SymInt integer;
    double real;
    const SymInt* integers;
    const double* reals;
    const char* characters;
    uint64_t slot;
    const uint64_t* slots;
  };
  double imaginary = 0;

  constexpr Arg() : integer(0) {}
  constexpr Arg(const TensorMeta* t) : kind(t ? Kind::kTensor : Kind::kNone), tensor(t) {}  // NOLINT
  constexpr Arg(absl::Span<const TensorMeta* const> list)                                   // NOLINT
      : kind(Kind::kTensors), size(static_cast<uint32_t>(list.size())), tensors(list.data()) {}
  constexpr Arg(bool v) : kind(Kind::kBool), integer(v) {}  // NOLINT
  constexpr Arg(int v) : kind(Kind::kInt), integer(v) {}    // NOLINT
  template <SymIntOrInteger T>
  constexpr Arg(T v) : kind(Kind::kInt), integer(v) {}                                        // NOLINT
  constexpr Arg(double v) : kind(Kind::kFloat), real(v) {}                                    // NOLINT
  Arg(std::complex<double> v) : kind(Kind::kComplex), real(v.real()), imaginary(v.imag()) {}  // NOLINT
  constexpr Arg(DType v) : kind(Kind::kInt), integer(static_cast<int64_t>(v)) {}              // NOLINT
  Arg(Device v) : kind(Kind::kInt), integer(v.encode()) {}                                    // NOLINT
  Arg(const Scalar& s);                                                                       // NOLINT
  constexpr Arg(SizesView list)                                                               // NOLINT
      : kind(Kind::kInts), size(static_cast<uint32_t>(list.size())), integers(list.data()) {}
  constexpr Arg(absl::Span<const double> list)  // NOLINT
      : kind(Kind::kFloats), size(static_cast<uint32_t>(list.size())), reals(list.data()) {}
  constexpr Arg(std::string_view s)  // NOLINT
      : kind(Kind::kString), size(static_cast<uint32_t>(s.size())), characters(s.data()) {}
  template <typename T>
  Arg(const std::optional<T>& v) : Arg() {  // NOLINT
    if (v) *this = Arg(*v);
  }

  bool is_none() const { return kind == Kind::kNone; }
  bool is_number() const {
    return kind == Kind::kBool || kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kComplex;
  }
  bool is_real_number() const { return is_number() && kind != Kind::kComplex; }
  // The accessors require the right kind, which Op::check_args has checked.
  Scalar scalar() const;
  double to_double() const {
    if (kind == Kind::kFloat || kind == Kind::kComplex) return real;
    return size == 0 ? static_cast<double>(int64_t{integer})
                     : static_cast<double>(static_cast<uint64_t>(int64_t{integer}));
  }
  bool to_bool() const { return integer != 0; }
  DType dtype() const { return static_cast<DType>(int64_t{integer}); }
  std::string_view string() const { return {characters, size}; }
  SizesView ints() const { return {integers, size}; }
  absl::Span<const double> floats() const { return {reals, size}; }
  absl::Span<const TensorMeta* const> list() const { return {tensors, size}; }
};

using Args = absl::Span<const Arg>;

}  // namespace tt
