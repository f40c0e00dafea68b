// ignoring_errors: calls that a destructor makes, which must not throw.
#pragma once

#include <exception>

namespace tt {

// Calls `end`. Its errors are ignored: what it would have ended has ended, such as a session.
template <typename Function>
void ignoring_errors(const Function& end) noexcept {
  try {
    end();
  } catch (const std::exception&) {
  }
}

}  // namespace tt
