#include "engine/schema/arg.h"

namespace tt {

Arg::Arg(const Scalar& s) : Arg() {
  switch (s.category()) {
    case Category::kBool: *this = Arg(s.to_bool()); break;
    case Category::kInteger:
      *this = Arg(s.to_int());
      size = s.is_beyond_int();
      break;
    case Category::kFloating: *this = Arg(s.to_double()); break;
    case Category::kComplex: *this = Arg(s.to_complex()); break;
  }
}

Scalar Arg::scalar() const {
  if (kind == Kind::kBool) return Scalar(to_bool());
  if (kind == Kind::kFloat) return Scalar(real);
  if (kind == Kind::kComplex) return Scalar(std::complex<double>(real, imaginary));
  return size == 0 ? Scalar(integer) : Scalar::of_unsigned(static_cast<uint64_t>(integer));
}

}  // namespace tt
