// OperatorLibrary: a shared object with operators (teletensor_operator.h), loaded at the daemon's start.
//
// load_library() runs the library's code in this process; who may provide one is decided by the caller
// (server/daemon/operator_folder.h). Libraries stay loaded until the process ends. Not thread-safe: call it before the
// first session begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/dispatch/dispatcher.h"
#include "engine/extension/teletensor_operator.h"

namespace tt::extension {

struct OperatorLibrary {
  std::string path;
  std::string name;                    // as the library says
  std::vector<std::string> operators;  // "mylib::scale"
};

// Opens the library at `path`, checks its version and declarations, and registers its operators. Throws Error that
// names the file and the reason; no operator of the library is then registered.
OperatorLibrary load_library(const std::string& path, uint64_t digest, Dispatcher& dispatcher);

// The second half of load_library(), for a table from elsewhere (tests). `path` is for messages.
OperatorLibrary add_library(const teletensor_library* library, const std::string& path, uint64_t digest,
                            Dispatcher& dispatcher);

// The libraries of this process, in the order in which they were loaded.
const std::vector<OperatorLibrary>& loaded_libraries();

// Registers the operator custom_operators, by which clients learn of the operators of libraries.
void register_query_operator(Dispatcher& dispatcher);

}  // namespace tt::extension
