#include "server/daemon/served_models.h"

#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tt::server {
namespace {

// Below the size of a variable of the environment. What does not fit is not compared.
constexpr size_t kMaxBytes = size_t{64} << 10;
constexpr std::chrono::milliseconds kPoll{20};

}  // namespace

std::string served_models(const ModelRepository& repository) {
  std::string served;
  for (const std::shared_ptr<ModelVersion>& each : repository.all()) {
    const std::string entry = absl::StrCat(each->name(), "/", each->number(), "\n");
    if (served.size() + entry.size() > kMaxBytes) break;
    served += entry;
  }
  return served;
}

absl::Status await_served_models(const ModelRepository& repository, std::string_view served,
                                 std::chrono::milliseconds timeout) {
  for (const auto deadline = std::chrono::steady_clock::now() + timeout; !repository.ready();) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return absl::FailedPreconditionError(
          absl::StrCat("the models were not loaded within ", timeout.count() / 1000, " s"));
    }
    std::this_thread::sleep_for(kPoll);
  }
  for (const std::string& each : std::vector<std::string>(
           absl::StrSplit(absl::string_view(served.data(), served.size()), '\n', absl::SkipEmpty()))) {
    const size_t slash = each.rfind('/');
    if (slash == std::string::npos) continue;
    const auto found = repository.find(each.substr(0, slash), each.substr(slash + 1));
    if (!found.ok()) return absl::FailedPreconditionError(found.status().message());
  }
  return absl::OkStatus();
}

}  // namespace tt::server
