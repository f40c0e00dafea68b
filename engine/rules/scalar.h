// Scalar: one number of the user's, before it has a dtype.
#pragma once

#include <cstdint>
#include <string>

#include "engine/rules/dtype.h"

namespace tt {

class Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  Scalar(bool v) : category_(Category::kBool), int_(v) {}                 // NOLINT: a number
  Scalar(int v) : category_(Category::kInteger), int_(v) {}               // NOLINT
  Scalar(int64_t v) : category_(Category::kInteger), int_(v) {}           // NOLINT
  Scalar(double v) : category_(Category::kFloating), double_(v) {}        // NOLINT
  Category category() const { return category_; }
  double to_double() const {
    return category_ == Category::kFloating ? double_ : static_cast<double>(int_);
  }
  // Truncates towards zero; out-of-range doubles saturate, NaN is 0.
  int64_t to_int() const;
  bool to_bool() const { return category_ == Category::kFloating ? double_ != 0 : int_ != 0; }
  // As PyTorch makes it one of a dtype: an integer where that is integral.
  Scalar in_dtype(DType dtype) const { return is_integral(dtype) ? Scalar(to_int()) : *this; }
  // The dtype it takes where nothing else decides: bool, int64 or the default float.
  DType dtype() const;
  std::string to_string() const;

 private:
  Category category_;
  union {
    int64_t int_;
    double double_;
  };
};

}  // namespace tt
