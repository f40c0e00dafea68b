#include "distributed/gloo/mesh.h"

#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "engine/schema/error.h"

namespace tt::distributed {
namespace {

using Clock = std::chrono::steady_clock;

// How often a waiting rank checks whether forming the group was cancelled.
constexpr std::chrono::milliseconds kSlice{100};

// Closes all pairs when forming the group is cancelled or the deadline has passed: Gloo's connect() waits for five
// times its timeout, and only the end of the pair ends it earlier.
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

// Gloo's transport with buffers whose waits abort() ends: a pair that fails wakes neither the sender nor the receiver
// of a message that is partly transferred.
class AbortableTransport final : public gloo::transport::Context {
 public:
  explicit AbortableTransport(std::shared_ptr<gloo::transport::Context> transport)
      : gloo::transport::Context(transport->rank, transport->size), transport_(std::move(transport)) {
    setTimeout(transport_->getTimeout());
  }

  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override { return transport_->getPair(rank); }
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override { return transport_->createPair(rank); }
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* bytes, size_t size) override {
    return std::make_unique<Buffer>(*this, transport_->createUnboundBuffer(bytes, size));
  }

  void abort() {
    MutexLock lock(mutex_);
    aborted_ = true;
    for (Buffer* buffer : buffers_) {
      buffer->abortWaitRecv();
      buffer->abortWaitSend();
    }
  }

 private:
  class Buffer final : public gloo::transport::UnboundBuffer {
   public:
    Buffer(AbortableTransport& transport, std::unique_ptr<gloo::transport::UnboundBuffer> buffer)
        : UnboundBuffer(buffer->ptr, buffer->size), transport_(transport), buffer_(std::move(buffer)) {
      MutexLock lock(transport_.mutex_);
      transport_.buffers_.insert(this);
    }
    ~Buffer() override {
      MutexLock lock(transport_.mutex_);
      transport_.buffers_.erase(this);
    }

    bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
      check_continues(true);
      const bool is_complete = buffer_->waitRecv(rank, timeout);
      check_continues(true);
      return is_complete;  // false: only this buffer's wait was interrupted
    }
    bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
      check_continues(true);
      check_continues(buffer_->waitSend(rank, timeout));
      return true;
    }
    void abortWaitRecv() override { buffer_->abortWaitRecv(); }
    void abortWaitSend() override { buffer_->abortWaitSend(); }
    void send(int peer, uint64_t slot, size_t offset, size_t bytes) override {
      buffer_->send(peer, slot, offset, bytes);
    }
    void recv(int peer, uint64_t slot, size_t offset, size_t bytes) override {
      buffer_->recv(peer, slot, offset, bytes);
    }
    void recv(std::vector<int> peers, uint64_t slot, size_t offset, size_t bytes) override {
      buffer_->recv(std::move(peers), slot, offset, bytes);
    }

   private:
    void check_continues(bool is_complete) const {
      MutexLock lock(transport_.mutex_);
      check(is_complete && !transport_.aborted_, "the operation was aborted");
    }

    AbortableTransport& transport_;
    const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
  };

  const std::shared_ptr<gloo::transport::Context> transport_;
  Mutex mutex_;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Buffer*> buffers_ ABSL_GUARDED_BY(mutex_);
};

class MeshContext final : public Mesh {
 public:
  MeshContext(const MeshOptions& options, const std::function<bool()>& is_cancelled)
      : Mesh(options.rank, options.size),
        options_(options),
        is_cancelled_(is_cancelled),
        deadline_(Clock::now() + options.timeout) {}

  void abort() override { transport_->abort(); }

  void connect(Store& store) {
    setTimeout(options_.timeout);
    device_ = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr(options_.host.c_str()));
    std::shared_ptr<gloo::transport::Context> transport = device_->createContext(options_.rank, options_.size);
    transport->setTimeout(options_.timeout);
    transport_ = std::make_shared<AbortableTransport>(std::move(transport));
    transportContext_ = transport_;
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
    const std::vector<std::string> all = exchange_addresses(store, addresses);
    ConnectWatch watch(*transportContext_, options_, deadline_, is_cancelled_);
    for (int peer = 0; peer < options_.size; ++peer) {
      if (peer == options_.rank) continue;
      const std::string& theirs = all[static_cast<size_t>(peer)];
      check(theirs.size() == addresses.size(), "rank ", peer, " published invalid addresses");
      std::vector<char> address(full);
      const size_t begin = static_cast<size_t>(options_.rank) * kAddressBytes;
      std::copy_n(theirs.begin() + static_cast<ptrdiff_t>(begin), kAddressBytes, address.begin());
      check_allowed(peer, theirs.substr(begin, kAddressBytes));
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
    if (!watch.end()) fail(ErrorKind::kRuntime, "connecting the ranks was cancelled, or took too long");
  }

 private:
  // Gloo connects to any address of any family.
  void check_allowed(int peer, const std::string& published) const {
    sockaddr_storage address{};
    std::memcpy(&address, published.data(), published.size());
    check(options_.peers.allows(address), "rank ", peer,
          " published an address that the engine's options --peer-networks and --peer-ports do not allow");
  }

  void check_continues() const { check(!is_cancelled_(), "connecting the ranks was cancelled"); }

  // Publishes this rank's addresses and returns those of all ranks.
  std::vector<std::string> exchange_addresses(Store& store, const std::string& mine) {
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

  // Used by connect() only.
  const MeshOptions& options_;
  const std::function<bool()>& is_cancelled_;
  const Clock::time_point deadline_;
  std::shared_ptr<AbortableTransport> transport_;
};

}  // namespace

std::shared_ptr<Mesh> connect_mesh(Store& store, const MeshOptions& options,
                                   const std::function<bool()>& is_cancelled) {
  auto context = std::make_shared<MeshContext>(options, is_cancelled);
  context->connect(store);
  return context;
}

}  // namespace tt::distributed
