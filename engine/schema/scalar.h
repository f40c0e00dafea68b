// Scalar: a number from the user, before it has a dtype.
#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include "engine/schema/dtype.h"
#include "engine/schema/sym_int.h"

namespace tt {

class Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : category_(Category::kBool), int_(v) {}    // NOLINT: a number
  Scalar(int v) : category_(Category::kInteger), int_(v) {}  // NOLINT
  template <SymIntOrInteger T>
  Scalar(T v) : category_(Category::kInteger), int_(v) {}           // NOLINT
  Scalar(double v) : category_(Category::kFloating), double_(v) {}  // NOLINT
  Scalar(std::complex<double> v)                                    // NOLINT
      : category_(Category::kComplex), double_(v.real()), imaginary_(v.imag()) {}
  // An integer that may exceed int64; then to_int() wraps around.
  static Scalar of_unsigned(uint64_t v) {
    Scalar s(static_cast<int64_t>(v));
    s.beyond_ = static_cast<int64_t>(v) < 0;
    return s;
  }
  Category category() const { return category_; }
  bool is_real() const { return category_ <= Category::kFloating; }
  // Whether it is an integer above int64's maximum.
  bool is_beyond_int() const { return beyond_; }
  // The real part of a complex number.
  double to_double() const {
    if (category_ >= Category::kFloating) return double_;
    return beyond_ ? static_cast<double>(static_cast<uint64_t>(int64_t{int_})) : static_cast<double>(int64_t{int_});
  }
  std::complex<double> to_complex() const { return {to_double(), imaginary_}; }
  // Truncates towards zero; out-of-range doubles saturate, NaN is 0.
  SymInt to_int() const;
  bool to_bool() const { return category_ >= Category::kFloating ? double_ != 0 || imaginary_ != 0 : int_ != 0; }
  // Converts to a dtype as PyTorch does: to an integer if the dtype is integral.
  Scalar converted_to(DType dtype) const { return is_integral(dtype) ? Scalar(to_int()) : *this; }
  // The default dtype: bool, int64, the default float or complex64.
  DType dtype() const;
  std::string to_string() const;

 private:
  Category category_;
  bool beyond_ = false;
  union {
    SymInt int_;
    double double_;
  };
  double imaginary_ = 0;
};

}  // namespace tt
