#include "distributed/gloo/mesh.h"

#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "engine/schema/error.h"

namespace tt::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// How often a waiting rank checks whether the formation was cancelled.
constexpr std::chrono::milliseconds kSlice{100};

// Closes all pairs when the formation is cancelled or the deadline has passed: Gloo's connect() waits for five times
// its timeout, and only the end of the pair ends it earlier.
class ConnectWatch {
 public:
  ConnectWatch(gloo::transport::Context& context, const MeshOptions& options, Clock::time_point deadline,
               const std::function<bool()>& is_cancelled)
      : thread_([&context, &options, deadline, &is_cancelled, this] {
          for (;;) {
            {
              MutexLock lock(mutex_);
              if (changed_.wait_for(mutex_, kSlice, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ended_; }))
                return;
              if (!is_cancelled() && Clock::now() < deadline) continue;
              closed_ = true;
            }
            for (int peer = 0; peer < options.size; ++peer) {
              if (peer != options.rank) context.getPair(peer)->close();
            }
            return;
          }
        }) {}
  ~ConnectWatch() { static_cast<void>(end()); }

  // Returns whether the pairs remain open.
  bool end() {
    {
      MutexLock lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    MutexLock lock(mutex_);
    return !closed_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last member, because it uses the others
};

// Gloo's addresses are sockaddr_storage, most of which is zero. Publishes only the first bytes.
constexpr size_t kAddressBytes = 32;

class MeshContext final : public gloo::Context {
 public:
  MeshContext(const MeshOptions& options, const std::function<bool()>& is_cancelled)
      : gloo::Context(options.rank, options.size),
        options_(options),
        is_cancelled_(is_cancelled),
        deadline_(Clock::now() + options.timeout) {}

  void connect(Store& store) {
    setTimeout(options_.timeout);
    device_ = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(options_.host.c_str()));
    transportContext_ = device_->createContext(options_.rank, options_.size);
    transportContext_->setTimeout(options_.timeout);
    std::string addresses;
    size_t full = 0;  // bytes of an address
    for (int peer = 0; peer < options_.size; ++peer) {
      std::vector<char> address(kAddressBytes);
      if (peer != options_.rank) {
        address = transportContext_->createPair(peer)->address().bytes();
        full = address.size();
        check(full >= kAddressBytes, "unexpected address of a pair");
      }
      addresses.append(address.data(), kAddressBytes);
    }
    const std::vector<std::string> all = meet(store, addresses);
    ConnectWatch watch(*transportContext_, options_, deadline_, is_cancelled_);
    for (int peer = 0; peer < options_.size; ++peer) {
      if (peer == options_.rank) continue;
      const std::string& theirs = all[static_cast<size_t>(peer)];
      check(theirs.size() == addresses.size(), "rank ", peer, " published invalid addresses");
      std::vector<char> address(full);
      const size_t begin = static_cast<size_t>(options_.rank) * kAddressBytes;
      std::copy_n(theirs.begin() + static_cast<ptrdiff_t>(begin), kAddressBytes, address.begin());
      try {
        transportContext_->getPair(peer)->connect(address);
      } catch (const std::exception& error) {
        check_continues();
        fail(ErrorKind::kRuntime, "cannot connect to rank ", peer, ": ", error.what());
      }
      check_continues();
      check(Clock::now() < deadline_, "cannot connect to rank ", peer, " within ",
            static_cast<double>(options_.timeout.count()) / 1000, " s");
    }
    if (!watch.end()) fail(ErrorKind::kRuntime, "the formation was cancelled, or took too long");
  }

 private:
  void check_continues() const { check(!is_cancelled_(), "the formation was cancelled"); }

  // Publishes this rank's addresses and returns those of all ranks.
  std::vector<std::string> meet(Store& store, const std::string& mine) {
    std::vector<std::string> keys;
    for (int r = 0; r < options_.size; ++r) keys.push_back(absl::StrCat(options_.prefix, "/gloo/", r));
    const absl::Status status = store.set({&keys[static_cast<size_t>(options_.rank)], 1}, {&mine, 1});
    check(status.ok(), status.message());
    for (;;) {
      auto values = store.get(keys, kSlice);
      if (values.ok()) return *std::move(values);
      check_continues();
      const bool waits = absl::IsDeadlineExceeded(values.status()) && Clock::now() < deadline_;
      check(waits, values.status().message());
    }
  }

  const MeshOptions& options_;
  const std::function<bool()>& is_cancelled_;
  const Clock::time_point deadline_;
};

}  // namespace

std::shared_ptr<gloo::Context> connect_mesh(Store& store, const MeshOptions& options,
                                            const std::function<bool()>& is_cancelled) {
  auto context = std::make_shared<MeshContext>(options, is_cancelled);
  context->connect(store);
  return context;
}

}  // namespace tt::distributed
