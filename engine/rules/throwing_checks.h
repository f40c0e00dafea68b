// Makes Abseil's hardening checks throw std::out_of_range instead of executing a trap instruction.
//
// The compiler includes this first in every source (deploy/cmake/Toolchain.cmake), except in sanitizer builds, where a
// failed check should end the process. An index out of range in a session's work is then an error of that operation,
// or ends that session (Session::execute), and not the daemon. Abseil has no setting for it: its macro is replaced, and
// because Span's accessors are declared noexcept, which would turn an exception into a call of std::terminate, the
// keyword is left out while span.h is read. Everything that span.h includes comes before that.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/algorithm/algorithm.h"
#include "absl/base/attributes.h"
#include "absl/base/internal/throw_delegate.h"
#include "absl/base/macros.h"
#include "absl/base/optimization.h"
#include "absl/base/port.h"
#include "absl/meta/type_traits.h"

namespace tt {
[[noreturn, gnu::cold, gnu::noinline]] inline void check_failed(const char* condition) {
  throw std::out_of_range(condition);
}
}  // namespace tt

#undef ABSL_HARDENING_ASSERT
#define ABSL_HARDENING_ASSERT(condition) ((condition) ? static_cast<void>(0) : ::tt::check_failed(#condition))

#define noexcept
#include "absl/types/span.h"
#undef noexcept
