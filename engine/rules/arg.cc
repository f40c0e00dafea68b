#include "engine/rules/arg.h"

namespace tt {

Arg::Arg(const Scalar& s) : Arg() {
  switch (s.category()) {
    case Category::kBool: *this = Arg(s.to_bool()); break;
    case Category::kInteger: *this = Arg(s.to_int()); break;
    default: *this = Arg(s.to_double()); break;
  }
}

Scalar Arg::scalar() const {
  if (kind == Kind::kBool) return Scalar(to_bool());
  return kind == Kind::kFloat ? Scalar(real) : Scalar(integer);
}

}  // namespace tt
