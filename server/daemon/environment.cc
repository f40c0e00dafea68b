#include "server/daemon/environment.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace tt::server {
namespace {

// About 45 microseconds, twice what it takes to wake a core: enough to catch the next loop of the same operation,
// little enough to get out of a neighbour's way.
constexpr char kSpinCount[] = "2000";

std::vector<std::string> unwanted() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    if (text.rfind("OPENBLAS_", 0) == 0) names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace

void reexec_with_clean_env(char** argv) {
  bool changed = false;
  for (const std::string& name : unwanted()) changed = unsetenv(name.c_str()) == 0 || changed;
  if (std::getenv("OMP_WAIT_POLICY") == nullptr && std::getenv("GOMP_SPINCOUNT") == nullptr) {
    changed = setenv("GOMP_SPINCOUNT", kSpinCount, 1) == 0 || changed;
  }
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (changed && !error) execv(self.c_str(), argv);  // where that fails we go on as we are
}

}  // namespace tt::server
