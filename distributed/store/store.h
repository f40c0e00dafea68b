// Store: key-value pairs that the members of process groups share to find each other.
//
// MemoryStore keeps the pairs in this process, StoreServer serves them, and RemoteStore is its client. Depends on base/
// and proto/ only, so that clients link it too. Thread-safe. Functions fail with UNAVAILABLE if the store cannot be
// reached or has stopped, RESOURCE_EXHAUSTED if it is full, INVALID_ARGUMENT if an argument exceeds a limit (limits.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace tt::distributed {

// Reports that another member has left its group: its engine or session ended, or its connection was lost. `rank` is
// -1 if the store itself was lost. Called at most once per rank, one call at a time, on any thread, and possibly before
// join() has returned. Must not block, and must not call the store or the Membership.
using MemberLeft = std::function<void(int rank, const std::string& reason)>;

// A rank's membership in a group, until it is destroyed. After the destructor has returned, MemberLeft is not called;
// do not destroy it while holding a lock that MemberLeft acquires.
class Membership {
 public:
  virtual ~Membership() = default;
  // Leaves the group; the other members receive this reason (its first 256 bytes). Does not wait for them. Idempotent;
  // the destructor leaves too. MemberLeft is not called for members that leave later.
  virtual void leave(const std::string& reason) = 0;
};

class Store {
 public:
  using Milliseconds = std::chrono::milliseconds;

  virtual ~Store() = default;
  virtual absl::Status set(absl::Span<const std::string> keys, absl::Span<const std::string> values) = 0;
  // Return when all keys exist. DEADLINE_EXCEEDED, with the missing keys in the message, after `timeout`.
  virtual absl::StatusOr<std::vector<std::string>> get(absl::Span<const std::string> keys, Milliseconds timeout) = 0;
  virtual absl::Status wait(absl::Span<const std::string> keys, Milliseconds timeout) = 0;
  // Adds to an integer, which is 0 if the key does not exist, and returns the sum. INVALID_ARGUMENT if the value is not
  // a decimal integer or the sum overflows.
  virtual absl::StatusOr<int64_t> add(const std::string& key, int64_t amount) = 0;
  // Appends to a value, which is empty if the key does not exist.
  virtual absl::Status append(const std::string& key, const std::string& value) = 0;
  // Sets the key to `desired` if its value is `expected`, or if it does not exist and `expected` is empty. Returns the
  // value after the call; `expected` if the key does not exist.
  virtual absl::StatusOr<std::string> compare_set(const std::string& key, const std::string& expected,
                                                  const std::string& desired) = 0;
  // Whether the key existed.
  virtual absl::StatusOr<bool> erase(const std::string& key) = 0;
  // Whether all keys exist. Does not wait.
  virtual absl::StatusOr<bool> check(absl::Span<const std::string> keys) = 0;
  // Number of keys.
  virtual absl::StatusOr<int64_t> size() = 0;
  // Announces this process as member `rank` of `group`. `left` is also called for members that left before. Fails with
  // ALREADY_EXISTS if the group has or had this rank: a group that is formed again needs a new name.
  virtual absl::StatusOr<std::unique_ptr<Membership>> join(const std::string& group, int rank, MemberLeft left) = 0;
};

}  // namespace tt::distributed
