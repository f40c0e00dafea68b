// NcclBackend: collectives between GPUs by NCCL, on the GPUs' memory. NCCL is opened at run time; without it connect()
// returns false. The communicator does not block the host, so that a lost rank or an abort ends every wait.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "distributed/group/device_backend.h"
#include "distributed/nccl/nccl_library.h"
#include "engine/device/stream.h"

namespace tt::distributed {

class NcclBackend final : public DeviceBackend {
 public:
  explicit NcclBackend(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  ~NcclBackend() override;
  NcclBackend(const NcclBackend&) = delete;
  NcclBackend& operator=(const NcclBackend&) = delete;

  // TELETENSOR_GROUP_NCCL=off makes it return false.
  bool connect(Backend& host, int rank, int size, Device device) override;
  bool supports(const Collective& collective) const override;
  void run(const Collective& collective, bool averages, const Event& ready) override;
  void abort() override { aborted_ = true; }

 private:
  using Clock = std::chrono::steady_clock;
  bool create_communicator(const nccl::UniqueId& id);
  void issue(const Collective& c, bool averages);
  void issue_messages(const Collective& c);
  // Waits until a call that has returned `result` is complete. Throws Error if it failed.
  void settle(nccl::Result result);
  // Waits until is_complete() returns true. Throws Error after the deadline, after abort(), and if NCCL reports an error.
  void wait_until(absl::FunctionRef<bool()> is_complete, std::string_view what);
  // Throws Error with NCCL's text unless the result is kSuccess or kInProgress.
  void check_result(nccl::Result result) const;
  void release() noexcept;

  const std::chrono::milliseconds timeout_;
  const nccl::Library* library_ = nullptr;
  nccl::Comm comm_ = nullptr;
  std::unique_ptr<Stream> stream_;
  nccl::Stream handle_ = nullptr;  // of stream_
  int rank_ = 0, size_ = 1;
  bool is_failed_ = false;
  std::atomic<bool> aborted_{false};
};

}  // namespace tt::distributed
