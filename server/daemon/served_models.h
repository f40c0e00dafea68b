// The models that a process serves when another one replaces it (upgrade.h): the new one takes over when it serves them
// too, so that no request is refused meanwhile.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/serving/repository.h"

namespace tt::server {

// Names and versions of the models that serve.
std::string served_models(const ModelRepository& repository);
// Waits until the repository is loaded. FAILED_PRECONDITION with the reason unless it then serves what `served` names.
absl::Status await_served_models(const ModelRepository& repository, std::string_view served,
                                 std::chrono::milliseconds timeout);

}  // namespace tt::server
