// The default dtype, torch.get_default_dtype(): the dtype of floating-point results that no argument determines, and of
// the results that operators compute from integers in floating point.
//
// It is an input of infer() that belongs to the thread instead of being a parameter, because the rules that read it are
// several calls below infer(). float32, except inside a DefaultFloat: the executor has one per run and sets it from
// each instruction, a client has one per call with another default. An instruction contains the default with which its
// client inferred the results, so both sides infer the same dtypes.
#pragma once

#include "engine/schema/dtype.h"

namespace tt {

// Of the calling thread.
DType default_float();
// The complex dtype with parts of the default dtype; complex64 for 16-bit dtypes.
DType default_complex();

// Whether `t` can be the default: a floating dtype of at least 16 bits.
bool is_default_float(DType t);

// Sets the thread's default, which the destructor restores.
class DefaultFloat {
 public:
  explicit DefaultFloat(DType t = kDefaultFloat);
  ~DefaultFloat();
  DefaultFloat(const DefaultFloat&) = delete;
  DefaultFloat& operator=(const DefaultFloat&) = delete;
  // Requires is_default_float(t).
  static void set(DType t);

 private:
  const DType before_;
};

}  // namespace tt
