// SharedTensors: the tensors that sessions of one principal share with each other. ShareService: one session's part.
//
// A session exports a tensor's storage under a capability. The session that imports it gets a tensor over the same
// bytes. Both sessions may write, on threads of their own and without an order between them, as processes that share
// memory do. Each session counts its own writes for autograd. Every session that has a tensor over the bytes is charged
// for all of them, as processes that map the same memory are; an import that exceeds the session's limit is refused.
// Exports that outlive their session have together at most the bytes of that session's limit; bytes that several ended
// sessions exported count once.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "distributed/pull/offer_table.h"
#include "distributed/pull/session_offers.h"
#include "engine/dispatch/dispatcher.h"
#include "engine/memory/account.h"
#include "engine/session/image.h"
#include "engine/session/service.h"
#include "engine/tensor/tensor.h"

namespace tt::server {

// Owned by Sessions and shared by the principal's sessions, so that a session cannot import another principal's tensors
// even if it has their capability. Thread-safe.
class SharedTensors {
 public:
  // Returns the table; creates it and its thread at the first call.
  std::shared_ptr<distributed::OfferTable> table();
  // The exports whose sessions have ended, for another process (server/session/shared_image.cc). The process that reads
  // them charges their bytes to `account`, which is of the principal; null: there is no such principal any more, and
  // the exports end. `max_bytes` is that of ShareService.
  void write_image(ImageBlocks* blocks, ImageOutput* out, std::vector<Ref<Storage>>* contents);
  void read_image(ImageInput* in, ImageBlocks* blocks, const std::shared_ptr<Account>& account, uint64_t max_bytes,
                  std::vector<Ref<Storage>>* contents, uint64_t* left);

 private:
  Mutex mutex_;
  std::shared_ptr<distributed::OfferTable> table_ ABSL_GUARDED_BY(mutex_);
};

// Attached to the session's Context; used on the thread on which the Context is current. Exports that were not imported
// end kAfterSession after its destruction, so that a process may end before another one has received its tensors.
class ShareService final : public SessionService {
 public:
  // `max_bytes` limits the principal's exports without a session; 0: no limit.
  ShareService(std::shared_ptr<SharedTensors> shared, uint64_t max_bytes)
      : max_bytes_(max_bytes), offers_([shared = std::move(shared)] { return shared->table(); }) {}
  ~ShareService() override;

  // Waits for the device. Throws Error if the capability or the timeout is invalid, or the session has too many
  // exports.
  void add(const std::string& capability, const Tensor& tensor, double timeout);
  // Returns a storage over the bytes that were exported under the capability, which is then used up. Throws Error if
  // there are none, or the exported tensor's computation had failed.
  Ref<Storage> take(const std::string& capability);

  // Exports the error of a poisoned tensor.
  void skipped(const Op& op, Args args, const Error& error, uint32_t site) override;
  // The session's exports, in its image for another process.
  void write_image(ImageTensors* tensors, ImageOutput* out) const;
  void read_image(ImageInput* in, const ImageObjects& objects);
  // Whether an image would be for another process.
  void set_passed(bool is_passed) { is_passed_ = is_passed; }
  std::string unsaved() const override {
    return is_passed_ || offers_.empty() ? "" : "it exports a tensor that no other session has imported yet";
  }
  uint64_t host_bytes() const override { return offers_.host_bytes(); }

  // As long as a session may have no connection before it is freed.
  static constexpr distributed::OfferTable::Milliseconds kAfterSession = std::chrono::seconds(60);

 private:
  const uint64_t max_bytes_;
  distributed::SessionOffers offers_;
  bool is_passed_ = false;
};

void register_shared_tensors(Dispatcher& dispatcher);

}  // namespace tt::server
