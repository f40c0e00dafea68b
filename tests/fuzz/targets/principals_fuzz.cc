// Fuzz target: a file of principals with arbitrary contents is read, or refused with a message of one line. No
// principal of an accepted file has an invalid name or is found by a token that the file does not have.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/rpc/principals.h"
#include "tests/fuzz/require.h"

namespace {

// A file in memory, which its owner only can write.
int file() {
  static const int fd = [] {
    const int made = memfd_create("principals", MFD_CLOEXEC);
    tt::fuzz::require(made >= 0 && fchmod(made, 0600) == 0, "a file in memory");
    return made;
  }();
  return fd;
}

void write_file(const uint8_t* data, size_t size) {
  tt::fuzz::require(ftruncate(file(), 0) == 0, "the file can be truncated");
  const ssize_t written = pwrite(file(), data, size, 0);
  tt::fuzz::require(written == static_cast<ssize_t>(size), "the file can be written");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tt::server::Principals;
  write_file(data, size);
  const auto read = Principals::from_file(absl::StrCat("/proc/self/fd/", file()));
  if (!read.ok()) {
    tt::fuzz::require(!read.status().message().empty(), "a refusal has a reason");
    tt::fuzz::require(read.status().message().find('\n') == std::string::npos, "a refusal is one line");
    return 0;
  }
  // The tokens of the kept inputs; each other text belongs to nobody.
  for (const char* token : {"alice's token, of 32 characters!", "", "0"}) {
    const auto found = (*read)->by_token(token);
    if (!found.ok()) continue;
    tt::fuzz::require(tt::server::is_principal_name(found->name), "a principal has a valid name");
    tt::fuzz::require(found->quota != nullptr && found->share != nullptr, "a principal has limits and a share");
  }
  const std::string names[] = {"alice@example.org"};
  if (const auto found = (*read)->by_certificate(names); found.ok()) {
    tt::fuzz::require(tt::server::is_principal_name(found->name), "a principal has a valid name");
  }
  return 0;
}
