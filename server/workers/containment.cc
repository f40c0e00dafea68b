#include "server/workers/containment.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

constexpr uint64_t kReserve = uint64_t{1} << 30;  // a thread's stack takes 8 MiB of address space
constexpr int kBatchNice = 10;

absl::Status failed(const char* what) {
  return absl::FailedPreconditionError(absl::StrCat("cannot ", what, ": ", std::strerror(errno)));
}

// What RLIMIT_DATA counts; 0 if it is unknown.
uint64_t private_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    uint64_t kilobytes = 0;
    if (word == "VmData:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

}  // namespace

absl::Status begin_containment() {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failed("end with the engine");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("give up new privileges");
  if (prctl(PR_SET_DUMPABLE, 0) != 0) return failed("keep other processes out");
  return absl::OkStatus();
}

absl::Status limit_memory(uint64_t bytes) {
  const uint64_t limit = private_bytes() + bytes + kReserve;
  const rlimit limits{limit, limit};
  return setrlimit(RLIMIT_DATA, &limits) == 0 ? absl::OkStatus() : failed("limit the memory");
}

void lower_priority() { setpriority(PRIO_PROCESS, 0, kBatchNice); }

}  // namespace tt::server
