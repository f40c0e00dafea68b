// RemoteStore: a Store that a StoreServer, usually in another process, serves.
//
// All RemoteStores of a process for one address share one connection, which is closed with the last of them and of
// their memberships. Thread-safe; waiting calls and memberships use no threads besides gRPC's. After the server has
// stopped or the connection was lost, calls fail with UNAVAILABLE; a store that was started later at the same address
// is another one, and calls fail with FAILED_PRECONDITION. Not usable in a child process after fork().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "distributed/store/store.h"

namespace teletensor::v1 {
class StoreReply;
class StoreRequest;
}  // namespace teletensor::v1

namespace tt::distributed {

class RemoteStore final : public Store {
 public:
  // Called about every 50 ms by a thread that waits, which holds no locks. If it returns true, the call ends with
  // CANCELLED.
  using Interrupted = std::function<bool()>;

  // Connects to "host:port", whose server may start later. UNAVAILABLE if it cannot be reached within `timeout`,
  // UNAUTHENTICATED if it has another token.
  static absl::StatusOr<std::unique_ptr<RemoteStore>> connect(const std::string& address, const std::string& token,
                                                              Milliseconds timeout, Interrupted interrupted = nullptr);
  // No other call may be running. Memberships may outlive the store.
  ~RemoteStore() override;

  absl::Status set(absl::Span<const std::string> keys, absl::Span<const std::string> values) override;
  absl::StatusOr<std::vector<std::string>> get(absl::Span<const std::string> keys, Milliseconds timeout) override;
  absl::Status wait(absl::Span<const std::string> keys, Milliseconds timeout) override;
  absl::StatusOr<int64_t> add(const std::string& key, int64_t amount) override;
  absl::Status append(const std::string& key, const std::string& value) override;
  absl::StatusOr<std::string> compare_set(const std::string& key, const std::string& expected,
                                          const std::string& desired) override;
  absl::StatusOr<bool> erase(const std::string& key) override;
  absl::StatusOr<bool> check(absl::Span<const std::string> keys) override;
  absl::StatusOr<int64_t> size() override;
  // Waits for the server's answer.
  absl::StatusOr<std::unique_ptr<Membership>> join(const std::string& group, int rank, MemberLeft left) override;

  const std::string& address() const { return address_; }

 private:
  class Connection;
  class JoinStream;
  enum class Wanted { kValues, kExistence };

  RemoteStore(std::string address, const std::string& token, Interrupted interrupted);
  absl::Status connect(Milliseconds timeout);
  absl::Status call(teletensor::v1::StoreRequest& request, teletensor::v1::StoreReply* reply);
  absl::StatusOr<std::vector<std::string>> wait_for(Wanted wanted, absl::Span<const std::string> keys,
                                                    Milliseconds timeout);

  const std::string address_;
  const std::string authorization_;
  const Interrupted interrupted_;
  const std::shared_ptr<Connection> connection_;
  uint64_t store_id_ = 0;  // set by connect()
};

}  // namespace tt::distributed
