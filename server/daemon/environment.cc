#include "server/daemon/environment.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace tt::server {
namespace {

// Number of iterations that an idle OpenMP thread spins, which take about 45 microseconds, twice the time to wake a
// core. This is long enough to stay awake until the next loop of the same operation, and short enough not to delay
// another process on the core.
constexpr char kSpinCount[] = "2000";

std::vector<std::string> variables_to_remove() {
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
  for (const std::string& name : variables_to_remove()) changed = unsetenv(name.c_str()) == 0 || changed;
  if (std::getenv("OMP_WAIT_POLICY") == nullptr && std::getenv("GOMP_SPINCOUNT") == nullptr) {
    changed = setenv("GOMP_SPINCOUNT", kSpinCount, 1) == 0 || changed;
  }
  std::error_code error;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (changed && !error) execv(self.c_str(), argv);  // if this fails, continue with the environment as it is
}

void forbid_core_files() {
  // With 0, Linux still runs the program that /proc/sys/kernel/core_pattern names; with 1, it does not (core(5)).
  rlimit limit{};
  if (getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max == 0 ? 0 : 1;
  setrlimit(RLIMIT_CORE, &limit);
}

}  // namespace tt::server
