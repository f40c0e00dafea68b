// teletensord: the daemon's wiring.
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/failed_check.h"
#include "server/address.h"
#include "server/auth.h"
#include "server/backends.h"
#include "server/environment.h"
#include "server/flags.h"
#include "server/lifetime.h"
#include "server/listener.h"
#include "server/log.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

int complain(const absl::Status& status) {
  std::cerr << "teletensord: " << status.message() << std::endl;
  return 1;
}

// A folder of its own for a private engine's socket; removed with it.
class PrivateFolder {
 public:
  PrivateFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "teletensor-XXXXXX").native();
    if (mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  std::string address() const { return absl::StrCat("unix:", path_, "/engine.sock"); }

 private:
  std::string path_;
};

absl::StatusOr<std::vector<Address>> parse_addresses(const std::vector<std::string>& texts) {
  std::vector<Address> addresses;
  for (const std::string& text : texts) {
    absl::StatusOr<Address> address = parse_address(text);
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  return addresses;
}

absl::StatusOr<Auth> make_auth(const Flags& flags) {
  // A private engine's socket lies in a folder that only its owner enters.
  return flags.no_auth || flags.private_engine ? Auth::nobody() : Auth::from_file(flags.token_file);
}

void announce(const Flags& flags, const Listener& listener) {
  std::vector<std::string> names;
  for (const Address& address : listener.addresses()) {
    names.push_back(address.to_string());
    if (!address.is_local()) {
      spdlog::warn("{} is open to the network; tokens and tensors cross it in the clear", names.back());
    }
  }
  if (flags.private_engine) {
    std::cout << "READY " << names[0] << std::endl;
  } else {
    spdlog::info(
        "teletensord {} listens on {}{}", kVersion, absl::StrJoin(names, " and "),
        flags.no_auth ? ", without authentication" : absl::StrCat("; the token is in ", flags.token_file.native()));
  }
}

int serve(const Flags& flags, const std::vector<std::string>& listen) {
  absl::StatusOr<std::vector<Address>> addresses = parse_addresses(listen);
  if (!addresses.ok()) return complain(addresses.status());
  absl::StatusOr<Auth> auth = make_auth(flags);
  if (!auth.ok()) return complain(auth.status());
  recover_from_failed_checks();
  Lifetime lifetime;
  register_backends(flags.threads, flags.memory_limit);
  Sessions::Options options;
  options.session_memory_limit = flags.session_memory_limit;
  options.lease = std::chrono::milliseconds(static_cast<int64_t>(flags.lease_seconds * 1000));
  Sessions sessions(options);
  auto listener = Listener::start(*addresses, *auth, sessions, [&lifetime] { lifetime.end(); });
  if (!listener.ok()) return complain(listener.status());
  announce(flags, **listener);
  const char* reason = lifetime.wait(flags.private_engine);
  spdlog::info("shutting down: {}", reason);
  (*listener)->shut_down();
  return 0;
}

int run(int argc, char** argv) {
  Flags flags;
  if (std::optional<int> code = parse_flags(argc, argv, &flags)) return *code;
  start_log(flags.private_engine && flags.log_level == "info" ? "warn" : flags.log_level);
  umask(0077);
  // Transfers' buffers come and go: keep them instead of faulting their pages in again.
  mallopt(M_MMAP_THRESHOLD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 64 << 20);
  std::optional<PrivateFolder> folder;
  std::vector<std::string> listen = flags.listen;
  if (listen.empty() && flags.private_engine) listen = {folder.emplace().address()};
  if (listen.empty()) listen = default_addresses();
  return serve(flags, listen);
}

}  // namespace
}  // namespace tt::server

int main(int argc, char** argv) {
  tt::server::settle_environment(argv);
  try {
    return tt::server::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "teletensord: " << error.what() << std::endl;
    return 1;
  }
}
