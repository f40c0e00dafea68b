// GlooBackend: collectives over TCP by Gloo, for ranks on any hosts.
#pragma once

#include <gloo/context.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "distributed/gloo/mesh.h"
#include "distributed/group/collective.h"
#include "distributed/store/store.h"

namespace tt::distributed {

class GlooBackend final : public Backend {
 public:
  using Options = MeshOptions;
  // Connects all pairs of ranks, as connect_mesh(). Blocks; throws Error (RuntimeError). Makes the process ignore
  // SIGPIPE.
  static std::unique_ptr<GlooBackend> connect(Store& store, const Options& options,
                                              const std::function<bool()>& is_cancelled);
  ~GlooBackend() override;

  std::string_view name() const override { return "gloo"; }
  void exchange(absl::Span<const char> mine, absl::Span<char> all) override;
  void run(const Collective& collective) override;
  void send(int peer, uint32_t tag, absl::Span<const char> bytes) override;
  void receive(int peer, uint32_t tag, absl::Span<char> bytes) override;
  bool await_message(int peer, uint32_t tag, size_t size, const std::atomic<bool>& stop) override;
  void wake(int peer) override;
  void abort(std::string_view reason) override;

 private:
  GlooBackend(const Options& options, std::shared_ptr<Mesh> context);
  using Clock = std::chrono::steady_clock;
  void exchange_with_peers(size_t bytes);
  int await_receive(gloo::transport::UnboundBuffer& buffer, Clock::time_point deadline);  // returns the sender
  void await_send(gloo::transport::UnboundBuffer& buffer, Clock::time_point deadline);
  template <typename CollectiveOptions>
  void configure(CollectiveOptions& options) const;  // sets the options that all of Gloo's collectives share
  void all_reduce(const Collective& c);
  void all_reduce_pair(const Collective& c);
  void reduce_to_root(const Collective& c);
  void broadcast(const Collective& c);
  void all_gather(const Collective& c);
  void gather(const Collective& c);
  void scatter(const Collective& c);
  void reduce_scatter(const Collective& c);
  void all_to_all(const Collective& c);
  // Runs a function that calls Gloo, and converts its exceptions.
  void call(absl::FunctionRef<void()> run);
  [[noreturn]] void rethrow(std::string_view message) const;

  const Options options_;
  const std::shared_ptr<Mesh> context_;
  uint32_t next_tag_ = 0;  // of the next collective
  // The buffers of exchange(): this rank's bytes and the bytes of all ranks.
  std::vector<char> sent_, received_;
  std::vector<char> pair_scratch_;
  std::unique_ptr<gloo::transport::UnboundBuffer> send_buffer_, receive_buffer_;
  mutable Mutex mutex_;
  std::optional<std::string> aborted_ ABSL_GUARDED_BY(mutex_);

  // A receive that await_message() started. It cannot be withdrawn, so the next receive() completes it.
  struct PostedReceive {
    explicit PostedReceive(size_t size) : bytes(size) {}
    std::vector<char> bytes;
    std::unique_ptr<gloo::transport::UnboundBuffer> buffer;
    bool is_complete = false;  // used by the thread that receives from the peer
  };
  std::shared_ptr<PostedReceive> post(int peer, uint32_t tag, size_t size);
  std::shared_ptr<PostedReceive> take_posted(int peer, uint32_t tag);  // null if there is none
  std::map<std::pair<int, uint32_t>, std::shared_ptr<PostedReceive>> posted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tt::distributed
