// Publications: the tensors that principals publish under names, so that sessions use them without a copy.
//
// A publication belongs to the principal that published it. It ends when it is unpublished, when its principal's access
// is revoked, and, unless it persists, with the session that published it. Sessions that have opened it keep what they
// opened. Its bytes are charged to an account of the principal's publications, and to every session that holds them; a
// quota pays for them once. Functions throw Error. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/mutex.h"
#include "engine/memory/account.h"
#include "engine/schema/meta.h"
#include "engine/session/image.h"
#include "engine/tensor/storage.h"
#include "server/audit.h"
#include "server/session/principal.h"

namespace tt::server {

struct PublishedTensor {
  std::string key;     // in a dict
  size_t storage = 0;  // index in Publication::storages
  TensorMeta meta;
};

struct Publication {
  std::string name;
  bool is_dict = false;
  bool is_read_only = true;
  bool persists = false;          // does not end with its session
  bool is_for_all = false;        // every principal may open it
  std::vector<std::string> to{};  // principals that may open it, besides its own
  std::vector<Ref<Storage>> storages{};
  std::vector<PublishedTensor> tensors{};

  uint64_t bytes() const;
  // The number of bytes of its texts.
  uint64_t text_bytes() const;
};

class Publications {
 public:
  // Per principal.
  static constexpr size_t kMaxPublications = 256;
  static constexpr size_t kMaxTensors = 65'536;
  static constexpr size_t kMaxTextBytes = size_t{4} << 20;
  // Per publication.
  static constexpr size_t kMaxNameBytes = 128;
  static constexpr size_t kMaxKeyBytes = 512;
  static constexpr size_t kMaxPrincipals = 256;

  // A principal's publications. Its sessions share it; it ends with the principal's access.
  class Owner;

  // `memory_limit` limits the bytes of each principal's publications together; 0: no limit but its quota. `tenant` is
  // the tenant of all accounts; 0: one for each principal. `audit` may be null. `is_isolated`: other principals are
  // served by other processes, so tensors are neither published to them nor opened from them.
  explicit Publications(uint64_t memory_limit = 0, uint64_t tenant = 0, AuditLog* audit = nullptr,
                        bool is_isolated = false)
      : memory_limit_(memory_limit), tenant_(tenant), audit_(audit), is_isolated_(is_isolated) {}
  Publications(const Publications&) = delete;
  Publications& operator=(const Publications&) = delete;

  std::shared_ptr<Owner> owner(const Principal& principal);
  // Ends the publications of a principal whose access was revoked. Its Owner publishes and opens nothing any more.
  void revoke(absl::string_view principal);

  // A session that calls.
  struct Caller {
    std::shared_ptr<Owner> owner;
    uint64_t session = 0;
  };
  // Adds a publication. Throws if the name, a key or a principal is invalid, if the name is in use, or if a limit is
  // exceeded. `commit` is called before other sessions can open the publication, if it will be added; it must not call
  // this object or wait.
  void publish(const Caller& caller, Publication publication, absl::FunctionRef<void()> commit);
  // Returns a publication that the caller may open. `principal`: its owner; empty: the caller's own. The error does not
  // reveal whether a publication exists that the caller may not open.
  std::shared_ptr<const Publication> find(const Caller& caller, absl::string_view name, absl::string_view principal);
  // Ends a publication of the caller; an operator may end any. Throws as find() does.
  void unpublish(const Caller& caller, absl::string_view name, absl::string_view principal);
  // Ends what a session has published, except what persists.
  void end_session(const Caller& caller);
  // Whether a publication of the session exists.
  bool publishes(const Caller& caller) const;
  // The publications that the caller may open, as a JSON list; an operator sees all. Only the owner and operators see
  // to whom one is published.
  std::string list(const Caller& caller) const;
  // The number of all publications.
  size_t size() const;

  // Images of all publications, for another process (publications_image.cc). Those of sessions for which `is_passed` is
  // false are left out, unless they persist.
  void write_image(absl::FunctionRef<bool(uint64_t session)> is_passed, ImageBlocks* blocks, ImageOutput* out,
                   std::vector<Ref<Storage>>* contents) const;
  // Adds publications to an object without any. The bytes are charged to their owners; at most `*left`
  // follow, of which those that do are subtracted.
  using FindPrincipal = absl::FunctionRef<absl::StatusOr<Principal>(absl::string_view name)>;
  void read_image(ImageInput* in, ImageBlocks* blocks, FindPrincipal find, uint64_t* left,
                  std::vector<Ref<Storage>>* contents);

  // Throws unless the name consists of 1 to kMaxNameBytes letters, digits and "._-", and begins with none of these.
  static void check_name(absl::string_view name);

 private:
  struct Entry {
    std::shared_ptr<const Publication> publication;
    uint64_t session;
    HostCharge charge;
  };
  using Entries = absl::flat_hash_map<std::string, Entry>;  // by name

  // Throws if this process cannot have publications of, or for, a principal.
  void check_same_process(const Owner& caller, absl::string_view principal) const;
  bool may_open(const Owner& caller, const Owner& owner, const Publication& publication) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What a caller does with a publication.
  struct Use {
    absl::string_view event;    // in the audit log
    absl::string_view refusal;  // why take() has returned false, for the audit log
    // Called under the lock; returns false if the caller may not do it.
    absl::FunctionRef<bool(Owner* owner, Entries::iterator at)> take;
  };
  // Finds the publication and takes it, and records it. Throws as find() does.
  void use(const Caller& caller, absl::string_view name, absl::string_view principal, const Use& use)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Entry remove(Owner& owner, Entries::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds what the caller's session has published, or had published in another process.
  void add(const Caller& caller, Publication publication, absl::FunctionRef<void()> commit);
  // Records what a session did, at most kRecordsPerSecond times per second and principal.
  void record(const Caller& caller, absl::string_view event, absl::string_view what, const absl::Status& outcome)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const uint64_t memory_limit_;
  const uint64_t tenant_;
  AuditLog* const audit_;
  const bool is_isolated_;
  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Owner>> owners_ ABSL_GUARDED_BY(mutex_);
};

class Publications::Owner {
 public:
  Owner(const Principal& principal, uint64_t memory_limit, uint64_t tenant);
  const std::string& name() const { return name_; }
  // For the storages of publications.
  const std::shared_ptr<Account>& account() const { return account_; }

 private:
  friend class Publications;
  using Clock = std::chrono::steady_clock;

  const std::string name_;
  const bool is_operator_;
  const std::shared_ptr<Account> account_;
  // The rest is guarded by Publications::mutex_.
  Entries entries_;
  size_t tensors_ = 0, text_bytes_ = 0;
  bool is_revoked_ = false;
  Clock::time_point second_{};  // of the records in the audit log that follow
  int records_ = 0;
  int64_t left_out_ = 0;
};

}  // namespace tt::server
