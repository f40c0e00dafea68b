// Principals: the people and programs that may use an engine, from a file.
//
// The file is JSON, written by `teletensor user` (docs/running.md has its fields), without any secret: it has the
// SHA-256 of each token. It is read again when it changes, so that principals are added and revoked without a restart;
// a file that cannot be read or parsed leaves the principals as they were, and is reported once and tried again.
// Thread-safe; runs one thread.
#pragma once

#include <chrono>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/mutex.h"
#include "server/session/principal.h"

namespace tt::server {

// Whether a text can be the name of a principal: 1 to 64 letters, digits and .-_@, not beginning with . or -. Names are
// also folders of checkpoints.
bool is_principal_name(absl::string_view text);

class Principals {
 public:
  // Called with the name of a principal that was removed from the file, whose token or certificates were changed, or
  // that has expired: its sessions have to end.
  using Revoked = std::function<void(const std::string& name)>;

  // Maximum number of sessions of a principal without the field `sessions`.
  static constexpr size_t kDefaultSessions = 64;

  // Reads `file`. The message of an error is one line with the file and the entry.
  static absl::StatusOr<std::unique_ptr<Principals>> from_file(std::filesystem::path file);
  ~Principals();

  // Starts checking the file every `interval`.
  void watch(std::chrono::milliseconds interval, Revoked revoked);
  // Stops checking; `revoked` is not called any more. Idempotent.
  void stop();

  // Return the principal with this token, with this name, or with a certificate of one of these names; NOT_FOUND if
  // there is none, UNAUTHENTICATED if it has expired.
  absl::StatusOr<Principal> by_token(absl::string_view token) const;
  absl::StatusOr<Principal> by_name(absl::string_view name) const;
  absl::StatusOr<Principal> by_certificate(absl::Span<const std::string> names) const;

 private:
  struct Entry {
    Principal principal;
    std::string token_digest;  // 64 hexadecimal digits; empty: no token
    std::vector<std::string> certificates;
    std::time_t expires = 0;  // 0: never
    bool has_expired(std::time_t now) const { return expires != 0 && now >= expires; }
  };
  struct Table {
    std::vector<Entry> entries;
    absl::flat_hash_map<std::string, size_t> by_token, by_certificate;  // indices of entries
  };
  // The state of the file when it was read. A difference shows that the file was replaced or written since.
  struct Version {
    uint64_t inode = 0;
    int64_t seconds = 0, nanoseconds = 0;  // of the last change, also of its mode
    int64_t size = 0;
    friend bool operator==(const Version&, const Version&) = default;
  };

  explicit Principals(std::filesystem::path file) : file_(std::move(file)) {}
  static absl::StatusOr<Table> parse(const std::string& text);
  static absl::StatusOr<Table> read(const std::filesystem::path& file);
  static Version version_of(const std::filesystem::path& file);
  static absl::StatusOr<Principal> valid(const Entry& entry);
  void run(std::chrono::milliseconds interval);
  void reload();
  std::vector<std::string> expire();

  const std::filesystem::path file_;
  Revoked revoked_;
  mutable Mutex mutex_;
  CondVar stopped_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Table table_ ABSL_GUARDED_BY(mutex_);
  Version version_ ABSL_GUARDED_BY(mutex_);          // that was read
  std::string failure_;                              // to read the present one; used by the thread
  std::time_t checked_ ABSL_GUARDED_BY(mutex_) = 0;  // expiry
  std::thread thread_;
};

}  // namespace tt::server
