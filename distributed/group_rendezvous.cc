#include "distributed/group_rendezvous.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_descriptor.h"
#include "distributed/gloo/gloo_backend.h"
#include "distributed/shm/shm_backend.h"

namespace tt::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// How often a waiting rank checks whether its session has ended or another rank is lost.
constexpr std::chrono::milliseconds kSlice{200};

// The values that the ranks of a group publish under one name in the store.
class MemberValues {
 public:
  MemberValues(Store& store, const ProcessGroup::Options& options, const std::function<bool()>& is_cancelled)
      : store_(store), options_(options), is_cancelled_(is_cancelled), deadline_(Clock::now() + options.timeout) {}

  // Called when this rank is connected. The first rank, whose engine serves the default group's store, waits for the
  // others: its program may end at once, and the store with it, while they still read from the store.
  void finish() {
    if (options_.rank == 0) {
      exchange("connected", "");
    } else {
      publish("connected", "");
    }
  }

  // Publishes this rank's value and returns the values of all ranks.
  std::vector<std::string> exchange(absl::string_view name, const std::string& mine) {
    std::vector<std::string> keys;
    for (int r = 0; r < options_.size; ++r) keys.push_back(key_of(name, r));
    publish(name, mine);
    for (;;) {
      check(!is_cancelled_(), "forming group \"", options_.name, "\" was cancelled");
      auto values = store_.get(keys, kSlice);
      if (values.ok()) return *std::move(values);
      if (!absl::IsDeadlineExceeded(values.status())) check_store(options_.name, values.status());
      if (Clock::now() >= deadline_) check_complete(keys);
    }
  }

 private:
  std::string key_of(absl::string_view name, int rank) const {
    return absl::StrCat(options_.name_in_store(), "/", name, "/", rank);
  }

  void publish(absl::string_view name, const std::string& mine) {
    const std::string key = key_of(name, options_.rank);
    check_store(options_.name, store_.set({&key, 1}, {&mine, 1}));
  }

  // Throws Error if a rank has not published its value.
  void check_complete(const std::vector<std::string>& keys) {
    std::vector<int> missing;
    for (int r = 0; r < options_.size; ++r) {
      absl::StatusOr<bool> exists = store_.check({&keys[static_cast<size_t>(r)], 1});
      check_store(options_.name, exists.status());
      if (!*exists) missing.push_back(r);
    }
    check(missing.empty(), "timed out after ", static_cast<double>(options_.timeout.count()) / 1000, " s: expected ",
          options_.size, " ranks in group \"", options_.name, "\", missing: rank ", absl::StrJoin(missing, ", "));
  }

  Store& store_;
  const ProcessGroup::Options& options_;
  const std::function<bool()>& is_cancelled_;
  const Clock::time_point deadline_;
};

// Identifies the host and its shared memory: equal for two engines that can share segments. Containers on one host
// have the same boot id but different file systems.
std::string shared_memory_domain() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  struct stat status {};
  if (boot.empty() || stat("/dev/shm", &status) != 0) return "";
  return absl::StrCat(boot, "/", status.st_dev, "/", status.st_ino, "/", geteuid());
}

std::unique_ptr<Backend> connect_shared_memory(MemberValues& member_values, const ProcessGroup::Options& options) {
  std::unique_ptr<ShmBackend> backend;
  std::string segment;
  std::string error;
  if (options.rank == 0) {
    auto created = ShmBackend::create(options.size, options.timeout);
    if (created.ok()) {
      backend = std::move(created->backend);
      segment = created->name;
    } else {
      error = std::string(created.status().message());
    }
  }
  segment = member_values.exchange("segment", segment)[0];
  if (options.rank != 0 && !segment.empty()) {
    auto opened = ShmBackend::open(segment, options.rank, options.size, options.timeout);
    if (opened.ok()) {
      backend = *std::move(opened);
    } else {
      error = std::string(opened.status().message());
    }
  }
  // All ranks use the segment, or none.
  const std::vector<std::string> errors =
      member_values.exchange("segment_error", backend ? "" : absl::StrCat("no: ", error));
  for (const std::string& e : errors) {
    if (!e.empty()) return nullptr;
  }
  return backend;
}

}  // namespace

std::unique_ptr<Backend> connect_backend(Store& store, const ProcessGroup::Options& options, const std::string& backend,
                                         const std::string& host, const PeerPolicy& peers,
                                         const std::function<bool()>& is_cancelled) {
  MemberValues member_values(store, options, is_cancelled);
  const std::string domain = backend == "gloo" ? "" : shared_memory_domain();
  const std::vector<std::string> ranks = member_values.exchange("rank", absl::StrCat(backend, "\n", domain));
  bool shared = !domain.empty();
  for (size_t r = 0; r < ranks.size(); ++r) {
    check(absl::StartsWith(ranks[r], absl::StrCat(backend, "\n")), "rank ", options.rank, " uses backend \"", backend,
          "\", but rank ", r, " uses \"", ranks[r].substr(0, ranks[r].find('\n')), "\"");
    shared = shared && ranks[r] == ranks[0];
  }
  if (shared) {
    if (std::unique_ptr<Backend> connected = connect_shared_memory(member_values, options)) {
      member_values.finish();
      return connected;
    }
  }
  check(backend != "shm", "backend \"shm\" requires that all ranks are on one host and can open one segment");
  GlooBackend::Options gloo;
  gloo.prefix = options.name_in_store();
  gloo.rank = options.rank;
  gloo.size = options.size;
  gloo.timeout = options.timeout;
  gloo.host = host;
  gloo.peers = peers;
  std::unique_ptr<Backend> connected = GlooBackend::connect(store, gloo, is_cancelled);
  member_values.finish();
  return connected;
}

std::string local_address_towards(const std::string& address) {
  if (const char* host = std::getenv("TELETENSOR_GROUP_HOST"); host != nullptr && *host != '\0') return host;
  const size_t colon = address.rfind(':');
  check(ErrorKind::kValue, colon != std::string::npos, "expected an address \"host:port\", got \"", address, "\"");
  std::string host = address.substr(0, colon);
  if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found);
  check(error == 0, "cannot resolve ", address, ": ", gai_strerror(error));
  const absl::Cleanup release = [found] { freeaddrinfo(found); };
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    // Connecting a datagram socket sends nothing; it selects the route and thereby the local address.
    const FileDescriptor socket(::socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket || ::connect(socket.get(), a->ai_addr, a->ai_addrlen) != 0) continue;
    sockaddr_storage local{};
    socklen_t size = sizeof(local);
    char text[NI_MAXHOST];
    if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&local), &size) == 0 &&
        getnameinfo(reinterpret_cast<sockaddr*>(&local), size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0) {
      return text;
    }
  }
  fail(ErrorKind::kRuntime, "no route to ", address);
}

}  // namespace tt::distributed
