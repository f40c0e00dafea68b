// The folder of --operators: shared objects with operators, which run inside this process.
//
// Whoever can write one of them can do what the daemon can, so files and folders that another user may change are
// refused. A library that cannot be loaded ends the start: an engine without an operator would fail its clients later.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "engine/dispatch/dispatcher.h"

namespace tt::server {

// Loads the files *.so of the folder in the order of their names, and logs one line for each. FAILED_PRECONDITION with
// the file and the reason if one is refused. Call once, before sessions begin.
absl::Status load_operators(const std::filesystem::path& folder, Dispatcher& dispatcher);

// The loaded operators, for the process that replaces this one (server/daemon/upgrade.h), which must have them too:
// sessions name them by number.
std::string loaded_operators();
// An error unless this process has the operators of such a text.
absl::Status check_loaded_operators(std::string_view operators);

}  // namespace tt::server
