// PublishService: what one session publishes and opens (server/session/publications.h).
//
// Publishing read-only freezes the tensors' bytes: no session writes to them any more, that of the publisher included.
// Otherwise they are shared, as by server/session/shared_tensors.h, and only with sessions of the same principal.
// Opening charges the session at once, and returns a description; the client then takes the storages one by one.
//
// Attached to the session's Context; used on the thread on which the Context is current. Its destruction ends what the
// session has published and does not persist. Functions throw Error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/session/service.h"
#include "engine/tensor/tensor.h"
#include "server/session/publications.h"

namespace tt::server {

class PublishService final : public SessionService {
 public:
  PublishService(std::shared_ptr<Publications> publications, const Principal& principal, uint64_t session)
      : publications_(std::move(publications)), caller_{publications_->owner(principal), session} {}
  ~PublishService() override { publications_->end_session(caller_); }

  // Adds the tensors to `publication`, whose keys are in their order if it is a dict, and publishes it. Waits for the
  // devices. Returns the number of bytes. The tensors' bytes change their state only if that succeeds.
  uint64_t publish(Publication publication, const std::vector<std::string>& keys, const Tensors& tensors);

  struct Opened {
    int64_t number;  // for take()
    std::shared_ptr<const Publication> publication;
  };
  // Charges the session for the bytes.
  Opened open(absl::string_view name, absl::string_view principal);
  // Releases what was opened and not taken.
  void cancel(int64_t number);
  // Returns a storage that was opened and not taken yet.
  Ref<Storage> take(int64_t number, int64_t index);

  void unpublish(absl::string_view name, absl::string_view principal) {
    publications_->unpublish(caller_, name, principal);
  }
  std::string list() const { return publications_->list(caller_); }
  std::string unsaved() const override;
  // Whether an image would be for another process, with those of all sessions.
  void set_passed(bool is_passed) { is_passed_ = is_passed; }
  uint64_t host_bytes() const override { return opened_storages_ * kOpenedBytes; }

 private:
  static constexpr size_t kMaxOpened = 64;  // publications that are not completely taken
  static constexpr uint64_t kOpenedBytes = 160;

  struct Pending {
    std::vector<Ref<Storage>> storages;  // null: taken
    size_t left;
  };

  const std::shared_ptr<Publications> publications_;
  const Publications::Caller caller_;
  int64_t last_opened_ = 0;
  absl::flat_hash_map<int64_t, Pending> opened_;
  size_t opened_storages_ = 0;
  bool is_passed_ = false;
};

void register_publish_operators(Dispatcher& dispatcher);

}  // namespace tt::server
