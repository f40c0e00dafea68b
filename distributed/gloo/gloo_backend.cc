#include "distributed/gloo/gloo_backend.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoallv.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/unbound_buffer.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "distributed/group/reduce.h"
#include "engine/schema/error.h"

namespace tt::distributed {
namespace {

// Slots of our own messages. The prefixes of Gloo's collectives are below (gloo/types.h).
constexpr uint64_t kExchangeSlot = uint64_t{0x40} << 40;
constexpr uint64_t kMessageSlots = uint64_t{0x41} << 40;
constexpr uint64_t kPairSlot = uint64_t{0x42} << 40;

// all_reduce between two ranks: bytes of a message, and number of messages that are received before they are reduced.
constexpr size_t kPairChunk = 256 << 10;
constexpr size_t kPairWindow = 8;

uint64_t message_slot(uint32_t tag) { return kMessageSlots | (uint64_t{tag} << 8); }

// A type with the item's size, because Gloo's options are templates over the type.
template <size_t kBytes>
struct Item {
  char bytes[kBytes];
};

// Calls apply(Item*) for the item size of a dtype.
template <typename Apply>
void with_item(DType dtype, Apply apply) {
  switch (item_size(dtype)) {
    case 1: return apply(static_cast<Item<1>*>(nullptr));
    case 2: return apply(static_cast<Item<2>*>(nullptr));
    case 4: return apply(static_cast<Item<4>*>(nullptr));
    case 8: return apply(static_cast<Item<8>*>(nullptr));
    default: return apply(static_cast<Item<16>*>(nullptr));
  }
}

// Shuts down a pair's socket, so that Gloo reports an error to this side's waiting threads and to the peer. Gloo's
// own close() leaves the threads of this side waiting.
struct PairAccess : gloo::transport::tcp::Pair {
  static void shut_down(gloo::transport::Pair& transport) {
    auto* pair = dynamic_cast<gloo::transport::tcp::Pair*>(&transport);
    if (pair == nullptr) return;
    auto& mutex = pair->*(&PairAccess::m_);  // the thread-safety analysis does not know Gloo's lock
    mutex.lock();
    if (const int fd = pair->*(&PairAccess::fd_); fd >= 0) ::shutdown(fd, SHUT_RDWR);
    mutex.unlock();
  }
};

// Gloo writes to sockets that a peer may have closed, and expects an error. The default action would end the process.
void ignore_sigpipe() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, nullptr);
  }
}

}  // namespace

std::unique_ptr<GlooBackend> GlooBackend::connect(Store& store, const Options& options,
                                                  const std::function<bool()>& is_cancelled) {
  ignore_sigpipe();
  try {
    return std::unique_ptr<GlooBackend>(new GlooBackend(options, connect_mesh(store, options, is_cancelled)));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(ErrorKind::kRuntime, "cannot connect the ranks of group \"", options.prefix, "\" from ", options.host, ": ",
         error.what());
  }
}

GlooBackend::GlooBackend(const Options& options, std::shared_ptr<Mesh> context)
    : options_(options),
      context_(std::move(context)),
      sent_(kMaxExchange),
      received_(kMaxExchange * static_cast<size_t>(options.size)),
      send_buffer_(context_->createUnboundBuffer(sent_.data(), sent_.size())),
      receive_buffer_(context_->createUnboundBuffer(received_.data(), received_.size())) {}

GlooBackend::~GlooBackend() = default;

void GlooBackend::rethrow(std::string_view message) const {
  MutexLock lock(mutex_);
  fail(ErrorKind::kRuntime, aborted_ ? std::string_view(*aborted_) : message);
}

void GlooBackend::call(absl::FunctionRef<void()> run) {
  {
    MutexLock lock(mutex_);
    if (aborted_) fail(ErrorKind::kRuntime, *aborted_);
  }
  try {
    run();
  } catch (const Error& error) {
    rethrow(error.message());
  } catch (const std::exception& error) {
    rethrow(error.what());
  }
}

void GlooBackend::abort(std::string_view reason) {
  {
    MutexLock lock(mutex_);
    if (aborted_) return;
    aborted_ = std::string(reason);
  }
  context_->abort();
  for (int peer = 0; peer < options_.size; ++peer) {
    if (peer != options_.rank) PairAccess::shut_down(*context_->getPair(peer));
  }
}

void GlooBackend::exchange(absl::Span<const char> mine, absl::Span<char> all) {
  std::memcpy(sent_.data(), mine.data(), mine.size());
  call([&] { exchange_with_peers(mine.size()); });
  std::memcpy(received_.data() + static_cast<size_t>(options_.rank) * mine.size(), mine.data(), mine.size());
  std::memcpy(all.data(), received_.data(), all.size());
}

// Exchanges one message with each rank. In a group of two this takes half the latency of Gloo's ring.
void GlooBackend::exchange_with_peers(size_t bytes) {
  std::vector<bool> arrived(static_cast<size_t>(options_.size));
  arrived[static_cast<size_t>(options_.rank)] = true;
  for (int peer = 0; peer < options_.size; ++peer) {
    if (peer != options_.rank) receive_buffer_->recv(peer, kExchangeSlot, static_cast<size_t>(peer) * bytes, bytes);
  }
  for (int peer = 0; peer < options_.size; ++peer) {
    if (peer != options_.rank) send_buffer_->send(peer, kExchangeSlot, 0, bytes);
  }
  const auto deadline = Clock::now() + options_.timeout;
  try {
    for (int left = options_.size - 1; left > 0; --left) {
      const int rank = await_receive(*receive_buffer_, deadline);
      if (rank >= 0) arrived[static_cast<size_t>(rank)] = true;
    }
    for (int left = options_.size - 1; left > 0; --left) await_send(*send_buffer_, deadline);
  } catch (const std::exception&) {
    if (Clock::now() < deadline) throw;
    std::vector<int> missing;
    for (int r = 0; r < options_.size; ++r) {
      if (!arrived[static_cast<size_t>(r)]) missing.push_back(r);
    }
    fail(ErrorKind::kRuntime, "timed out after ", static_cast<double>(options_.timeout.count()) / 1000,
         " s waiting for rank ", absl::StrJoin(missing, ", "));
  }
}

namespace {

// Gloo closes all connections when a wait times out, so a wait has the whole time until the deadline.
std::chrono::milliseconds until(std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, std::chrono::milliseconds(1));
}

}  // namespace

int GlooBackend::await_receive(gloo::transport::UnboundBuffer& buffer, Clock::time_point deadline) {
  int rank = -1;
  buffer.waitRecv(&rank, until(deadline));
  return rank;
}

void GlooBackend::await_send(gloo::transport::UnboundBuffer& buffer, Clock::time_point deadline) {
  buffer.waitSend(until(deadline));
}

void GlooBackend::run(const Collective& c) {
  call([&] {
    switch (c.kind) {
      case CollectiveKind::kAllReduce: return all_reduce(c);
      case CollectiveKind::kReduce: return reduce_to_root(c);
      case CollectiveKind::kBroadcast: return broadcast(c);
      case CollectiveKind::kAllGather: return all_gather(c);
      case CollectiveKind::kGather: return gather(c);
      case CollectiveKind::kScatter: return scatter(c);
      case CollectiveKind::kReduceScatter: return reduce_scatter(c);
      case CollectiveKind::kAllToAll: return all_to_all(c);
      case CollectiveKind::kBarrier: return exchange_with_peers(1);
    }
  });
  ++next_tag_;
}

template <typename CollectiveOptions>
void GlooBackend::configure(CollectiveOptions& options) const {
  options.setTag(next_tag_);
  options.setTimeout(options_.timeout);
}

// Each rank sends its input and reduces the other's in the order of ranks. Moves as many bytes as a ring, with half the
// latency.
void GlooBackend::all_reduce_pair(const Collective& c) {
  const size_t item = item_size(c.dtype), bytes = c.count * item;
  const size_t chunks = (bytes + kPairChunk - 1) / kPairChunk, window = std::min(chunks, kPairWindow);
  if (chunks == 0) return;
  const auto size = [&](size_t i) { return std::min(kPairChunk, bytes - i * kPairChunk); };
  const size_t room = chunks == 1 ? bytes : window * kPairChunk;
  if (pair_scratch_.size() < room) pair_scratch_.resize(room);
  const int peer = 1 - options_.rank;
  const auto incoming = context_->createUnboundBuffer(pair_scratch_.data(), room);
  const auto outgoing = context_->createUnboundBuffer(const_cast<char*>(c.input), bytes);
  const auto post = [&](size_t i) { incoming->recv(peer, kPairSlot, i % window * kPairChunk, size(i)); };
  for (size_t i = 0; i < window; ++i) post(i);
  for (size_t i = 0; i < chunks; ++i) outgoing->send(peer, kPairSlot, i * kPairChunk, size(i));
  const auto deadline = Clock::now() + options_.timeout;
  for (size_t i = 0; i < chunks; ++i) {
    await_receive(*incoming, deadline);
    await_send(*outgoing, deadline);  // the output may be the input's memory
    const char* inputs[] = {c.input + i * kPairChunk, pair_scratch_.data() + i % window * kPairChunk};
    if (options_.rank == 1) std::swap(inputs[0], inputs[1]);
    reduce(c.op, c.dtype, c.output + i * kPairChunk, inputs, size(i) / item);
    if (i + window < chunks) post(i + window);
  }
}

void GlooBackend::all_reduce(const Collective& c) {
  if (options_.size == 2) return all_reduce_pair(c);
  with_item(c.dtype, [&]<typename T>(T*) {
    gloo::AllreduceOptions options(context_);
    if (c.input != c.output) options.setInput<T>(reinterpret_cast<T*>(const_cast<char*>(c.input)), c.count);
    options.setOutput<T>(reinterpret_cast<T*>(c.output), c.count);
    options.setReduceFunction([&](void* out, const void* a, const void* b, size_t count) {
      const char* const inputs[] = {static_cast<const char*>(a), static_cast<const char*>(b)};
      reduce(c.op, c.dtype, static_cast<char*>(out), inputs, count);
    });
    configure(options);
    gloo::allreduce(options);
  });
}

void GlooBackend::reduce_to_root(const Collective& c) {
  const size_t bytes = c.count * item_size(c.dtype);
  std::vector<char> scratch;  // Gloo reduces in the output of every rank
  char* output = c.output;
  if (options_.rank != c.root) {
    scratch.resize(bytes);
    output = scratch.data();
  }
  with_item(c.dtype, [&]<typename T>(T*) {
    gloo::ReduceOptions options(context_);
    if (c.input != output) options.setInput<T>(reinterpret_cast<T*>(const_cast<char*>(c.input)), c.count);
    options.setOutput<T>(reinterpret_cast<T*>(output), c.count);
    options.setReduceFunction([&](void* out, const void* a, const void* b, size_t count) {
      const char* const inputs[] = {static_cast<const char*>(a), static_cast<const char*>(b)};
      reduce(c.op, c.dtype, static_cast<char*>(out), inputs, count);
    });
    options.setRoot(c.root);
    configure(options);
    gloo::reduce(options);
  });
}

void GlooBackend::broadcast(const Collective& c) {
  const size_t bytes = c.count * item_size(c.dtype);
  gloo::BroadcastOptions options(context_);
  if (options_.rank == c.root && c.input != c.output) options.setInput<char>(const_cast<char*>(c.input), bytes);
  options.setOutput<char>(c.output, bytes);
  options.setRoot(c.root);
  configure(options);
  gloo::broadcast(options);
}

void GlooBackend::all_gather(const Collective& c) {
  const size_t bytes = c.count * item_size(c.dtype);
  gloo::AllgatherOptions options(context_);
  options.setInput<char>(const_cast<char*>(c.input), bytes);
  options.setOutput<char>(c.output, bytes * static_cast<size_t>(options_.size));
  configure(options);
  gloo::allgather(options);
}

void GlooBackend::gather(const Collective& c) {
  const size_t bytes = c.count * item_size(c.dtype);
  gloo::GatherOptions options(context_);
  options.setInput<char>(const_cast<char*>(c.input), bytes);
  if (options_.rank == c.root) options.setOutput<char>(c.output, bytes * static_cast<size_t>(options_.size));
  options.setRoot(c.root);
  configure(options);
  gloo::gather(options);
}

void GlooBackend::scatter(const Collective& c) {
  const size_t bytes = c.count * item_size(c.dtype);
  gloo::ScatterOptions options(context_);
  if (options_.rank == c.root) {
    std::vector<char*> inputs;
    for (int r = 0; r < options_.size; ++r) {
      inputs.push_back(const_cast<char*>(c.input) + static_cast<size_t>(r) * bytes);
    }
    options.setInputs<char>(inputs, bytes);
  }
  options.setOutput<char>(c.output, bytes);
  options.setRoot(c.root);
  configure(options);
  gloo::scatter(options);
}

// Each rank receives its piece of every input, and reduces them in the order of ranks. Moves as many bytes as a ring.
void GlooBackend::reduce_scatter(const Collective& c) {
  const size_t bytes = c.count * item_size(c.dtype);
  const auto ranks = static_cast<size_t>(options_.size);
  const std::unique_ptr<char[]> pieces = std::make_unique_for_overwrite<char[]>(bytes * ranks);
  Collective exchange = c;
  exchange.kind = CollectiveKind::kAllToAll;
  exchange.send_counts.assign(ranks, c.count);
  exchange.receive_counts.assign(ranks, c.count);
  exchange.output = pieces.get();
  all_to_all(exchange);
  std::vector<const char*> inputs;
  for (size_t r = 0; r < ranks; ++r) inputs.push_back(pieces.get() + r * bytes);
  reduce(c.op, c.dtype, c.output, inputs, c.count);
}

void GlooBackend::all_to_all(const Collective& c) {
  const auto item = static_cast<int64_t>(item_size(c.dtype));
  auto bytes = [item](const std::vector<size_t>& counts) {
    std::vector<int64_t> result;
    for (size_t count : counts) result.push_back(static_cast<int64_t>(count) * item);
    return result;
  };
  gloo::AlltoallvOptions options(context_);
  options.setInput<char>(const_cast<char*>(c.input), bytes(c.send_counts));
  options.setOutput<char>(c.output, bytes(c.receive_counts));
  configure(options);
  gloo::alltoallv(options);
}

void GlooBackend::send(int peer, uint32_t tag, absl::Span<const char> bytes) {
  call([&] {
    auto buffer = context_->createUnboundBuffer(const_cast<char*>(bytes.data()), bytes.size());
    buffer->send(peer, message_slot(tag));
    await_send(*buffer, Clock::now() + options_.timeout);
  });
}

void GlooBackend::receive(int peer, uint32_t tag, absl::Span<char> bytes) {
  if (const std::shared_ptr<PostedReceive> posted = take_posted(peer, tag)) {
    check(posted->bytes.size() == bytes.size(), "receive from rank ", peer, ": expected ", posted->bytes.size(),
          " bytes, as in await_message(), got ", bytes.size());
    const auto deadline = Clock::now() + options_.timeout;
    call([&] {
      // wake() may have interrupted a wait that has ended.
      while (!posted->is_complete) posted->is_complete = posted->buffer->waitRecv(nullptr, until(deadline));
    });
    std::copy(posted->bytes.begin(), posted->bytes.end(), bytes.data());
    return;
  }
  call([&] {
    auto buffer = context_->createUnboundBuffer(bytes.data(), bytes.size());
    buffer->recv(peer, message_slot(tag));
    await_receive(*buffer, Clock::now() + options_.timeout);
  });
}

std::shared_ptr<GlooBackend::PostedReceive> GlooBackend::post(int peer, uint32_t tag, size_t size) {
  MutexLock lock(mutex_);
  std::shared_ptr<PostedReceive>& posted = posted_[{peer, tag}];
  if (!posted) {
    posted = std::make_shared<PostedReceive>(size);
    posted->buffer = context_->createUnboundBuffer(posted->bytes.data(), size);
    posted->buffer->recv(peer, message_slot(tag));
  }
  return posted;
}

std::shared_ptr<GlooBackend::PostedReceive> GlooBackend::take_posted(int peer, uint32_t tag) {
  MutexLock lock(mutex_);
  const auto found = posted_.find({peer, tag});
  if (found == posted_.end()) return nullptr;
  std::shared_ptr<PostedReceive> posted = std::move(found->second);
  posted_.erase(found);
  return posted;
}

bool GlooBackend::await_message(int peer, uint32_t tag, size_t size, const std::atomic<bool>& stop) {
  const auto deadline = Clock::now() + options_.timeout;
  bool arrived = false;
  call([&] {
    const std::shared_ptr<PostedReceive> posted = post(peer, tag, size);
    while (!posted->is_complete && !stop.load()) {
      posted->is_complete = posted->buffer->waitRecv(nullptr, until(deadline));
    }
    arrived = posted->is_complete;
  });
  return arrived;
}

void GlooBackend::wake(int peer) {
  MutexLock lock(mutex_);
  for (const auto& [key, posted] : posted_) {
    if (key.first == peer) posted->buffer->abortWaitRecv();
  }
}

}  // namespace tt::distributed
