#include "distributed/group/process_group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "distributed/group/reduce.h"
#include "distributed/group/scale.h"
#include "engine/memory/session_charge.h"

namespace tt::distributed {
namespace {

std::string lost_store(const std::string& group, absl::string_view reason) {
  return absl::StrCat("the group \"", group, "\" lost its store, which rank 0 serves: ", reason);
}

// Begins the reason of a member that leaves after its last collective, whose sequence follows.
constexpr absl::string_view kDeparture = "departed ";
// Begins the reason of another member that leaves after it has formed the group.
constexpr absl::string_view kFormed = "formed ";

// Precedes the bytes of a message between two ranks.
struct MessageHeader {
  uint64_t bytes;
  uint64_t dtype;
  uint64_t failed;  // 1: an error's text follows instead of a tensor
};
constexpr size_t kMaxFailureBytes = 4096;

// Whether the inputs of all ranks fit into the fingerprints.
bool fits_inline(const Collective& c) {
  const bool kind = c.kind == CollectiveKind::kAllReduce || c.kind == CollectiveKind::kReduce ||
                    c.kind == CollectiveKind::kBroadcast || c.kind == CollectiveKind::kAllGather ||
                    c.kind == CollectiveKind::kGather;
  return kind && c.count * item_size(c.dtype) <= CollectiveFingerprint::kMaxInlineBytes;
}

CollectiveFingerprint fingerprint(const ProcessGroup::Request& request, uint64_t sequence, int rank, uint8_t memory) {
  const Collective& c = request.collective;
  CollectiveFingerprint a;
  a.sequence = sequence;
  a.kind = c.kind;
  a.op = c.op;
  a.dtype = c.dtype;
  a.root = c.root;
  a.count = c.count;
  a.memory = memory;
  a.failed = request.failure.empty() ? 0 : 1;
  a.set_text(request.site, request.failure);
  const bool has_input = c.input != nullptr && (c.kind != CollectiveKind::kBroadcast || c.root == rank);
  if (a.failed == 0 && has_input && memory == CollectiveFingerprint::kHostMemory && fits_inline(c)) {
    std::memcpy(a.input, c.input, c.count * item_size(c.dtype));
  }
  return a;
}

// Computes a small collective from the inputs that the fingerprints contain.
void run_inline(const Collective& c, int rank, absl::Span<const CollectiveFingerprint> all) {
  const size_t bytes = c.count * item_size(c.dtype);
  if (bytes == 0) return;
  std::vector<const char*> inputs;
  for (const CollectiveFingerprint& a : all) inputs.push_back(a.input);
  switch (c.kind) {
    case CollectiveKind::kReduce:
      if (rank != c.root) return;
      [[fallthrough]];
    case CollectiveKind::kAllReduce: return reduce(c.op, c.dtype, c.output, inputs, c.count);
    case CollectiveKind::kBroadcast:
      if (rank != c.root || c.output != c.input) std::memmove(c.output, inputs[static_cast<size_t>(c.root)], bytes);
      return;
    case CollectiveKind::kGather:
      if (rank != c.root) return;
      [[fallthrough]];
    default:
      for (size_t r = 0; r < inputs.size(); ++r) std::memcpy(c.output + r * bytes, inputs[r], bytes);
  }
}

}  // namespace

void check_store(const std::string& group, const absl::Status& status) {
  check(!absl::IsUnavailable(status), lost_store(group, status.message()));
  check(status.ok(), status.message());
}

ProcessGroup::~ProcessGroup() {
  std::shared_ptr<Membership> membership;
  std::string reason = "its session ended during a collective";
  {
    MutexLock lock(mutex_);
    membership = std::move(membership_);
    if (!reported_failure_.empty())
      reason = absl::StrCat("it called a collective with a failed tensor: ", reported_failure_);
    leaves_properly_ = backend_ && !failure_ && started_ == complete_;
    if (!backend_) reason = "its session ended while the group was being formed";
    reason = leaves_properly_ ? absl::StrCat(kDeparture, complete_) : reason_to_leave(reason);
  }
  if (membership) membership->leave(reason);
  membership = nullptr;  // no callback after this
  fail("the session left the group");
  decltype(lanes_) lanes;
  {
    MutexLock lock(mutex_);
    lanes.swap(lanes_);
  }
  lanes.clear();
  queue_ = nullptr;
}

// Runs a function on a queue's thread; the work gets its error.
std::shared_ptr<Work> ProcessGroup::add(TaskQueue& queue, std::function<void()> run) {
  auto work = std::make_shared<Work>(notifier_);
  queue.add([work, run = std::move(run)]() mutable {
    std::optional<Error> error;
    try {
      run();
    } catch (const Error& e) {
      error = e;
    } catch (const std::exception& e) {
      error = Error(ErrorKind::kRuntime, e.what());
    }
    run = nullptr;
    work->finish(std::move(error));
  });
  return work;
}

std::shared_ptr<Work> ProcessGroup::form(OpenStore open_store, Connect connect) {
  return add(*queue_, [this, open_store = std::move(open_store), connect = std::move(connect)] {
    try {
      this->connect(open_store, connect);
    } catch (const std::exception& error) {
      // The first failure is the root cause: for example a lost member, because of which forming the group was
      // cancelled.
      if (has_joined()) await_failure();
      // A member that had formed the group was connected with this one: its end is an error of the next collective.
      const std::string departure = departure_while_forming();
      fail(departure.empty() ? error.what() : departure);
      if (departure.empty() && !has_failed_after_forming()) throw_if_failed(0);
    }
  });
}

void ProcessGroup::connect(const OpenStore& open_store, const Connect& connect) {
  const std::function<bool()> is_cancelled = [this] {
    MutexLock lock(mutex_);
    return failure_.has_value() && !failed_after_forming_;
  };
  std::shared_ptr<Store> store = open_store(is_cancelled);
  throw_if_failed(0);
  auto membership = store->join(options_.name_in_store(), options_.rank,
                                [this](int rank, const std::string& reason) { on_member_left(rank, reason); });
  check_store(options_.name, membership.status());
  {
    MutexLock lock(mutex_);
    store_ = store;
    membership_ = *std::move(membership);
  }
  std::unique_ptr<Backend> backend = connect(*store, options_, is_cancelled);
  MutexLock lock(mutex_);
  backend_ = std::move(backend);
  // The group is formed. If another rank, which had formed it earlier, has ended since, the next call fails.
  if (failure_) backend_->abort(*failure_);
  changed_.notify_all();
}

Backend& ProcessGroup::await_backend() {
  MutexLock lock(mutex_);
  while (!backend_ && !failure_) changed_.wait(mutex_);
  check(!failure_, failure_ ? *failure_ : "");
  return *backend_;
}

std::shared_ptr<Work> ProcessGroup::start(Request request) {
  uint64_t sequence;
  {
    MutexLock lock(mutex_);
    sequence = ++started_;
    if (!request.failure.empty()) reported_failure_ = request.failure;
  }
  const Collective& c = request.collective;
  const uint64_t record = recorder_.add(name(c.kind), c.dtype, c.count, request.site);
  return add(*queue_, [this, request = std::move(request), sequence, record] {
    const absl::Cleanup finish = [&] {
      MutexLock lock(mutex_);
      running_ = 0;
      complete_ = sequence;
    };
    run_recorded(record, [&] { run(request, sequence); });
  });
}

std::string ProcessGroup::Options::name_in_store() const {
  return generation == 0 ? name : absl::StrCat(name, "~", generation);
}

GroupMember ProcessGroup::member() const {
  GroupMember member;
  member.group = options_.name;
  member.rank = options_.rank;
  member.size = options_.size;
  MutexLock lock(mutex_);
  member.collectives = started_;
  member.is_whole = !failure_ && departed_.empty();
  member.sent = sent_;
  member.received = received_;
  return member;
}

void ProcessGroup::run_recorded(uint64_t record, absl::FunctionRef<void()> run) {
  recorder_.begin(record);
  try {
    run();
  } catch (const std::exception& error) {
    recorder_.end(record, error.what());
    if (is_failed()) publish_records();
    throw;
  }
  recorder_.end(record, "");
}

void ProcessGroup::throw_if_failed(uint64_t sequence) const {
  MutexLock lock(mutex_);
  if (failure_) tt::fail(ErrorKind::kRuntime, *failure_);
  for (const auto& [rank, last] : departed_) {
    if (sequence > last) tt::fail(ErrorKind::kRuntime, has_left(rank));
  }
}

void ProcessGroup::run(const Request& request, uint64_t sequence) {
  {
    MutexLock lock(mutex_);
    running_ = sequence;
  }
  throw_if_failed(sequence);
  Backend& backend = await_backend();
  const CollectiveFingerprint mine = fingerprint(request, sequence, rank(), memory_of(request));
  std::vector<CollectiveFingerprint> all(static_cast<size_t>(size()));
  on_backend([&] {
    backend.exchange({reinterpret_cast<const char*>(&mine), sizeof(mine)},
                     {reinterpret_cast<char*>(all.data()), all.size() * sizeof(CollectiveFingerprint)});
  });
  if (std::optional<Error> error = disagreement(all)) throw *error;
  const Collective& c = request.collective;
  if (c.kind == CollectiveKind::kBarrier) return;
  const bool are_on_host =
      std::all_of(all.begin(), all.end(), [](const auto& a) { return a.memory == CollectiveFingerprint::kHostMemory; });
  if (!are_on_host && fits_inline(c) && c.count == 0) return;
  if (!are_on_host && run_on_devices(request, all)) return;
  if (request.ready) return run_through_host(request);
  if (are_on_host && fits_inline(c)) {
    run_inline(c, rank(), all);
  } else {
    on_backend([&] { run_on_backend(c); });
  }
  if (request.divisor != 1 && c.output != nullptr) divide(c.dtype, c.output, c.count, request.divisor);
}

// Calls a function of the backend. If it throws, the group fails: the ranks no longer agree on the next message.
void ProcessGroup::on_backend(absl::FunctionRef<void()> call) {
  const Clock::time_point began = Clock::now();
  try {
    call();
  } catch (const Error& error) {
    const bool timed_out = Clock::now() - began >= options_.timeout;
    if (timed_out) publish_timeout();
    await_failure();
    throw_if_failed(running_sequence());
    fail(timed_out ? absl::StrCat(error.message(), ranks_without_timeout()) : error.message());
    throw_if_failed(0);
  }
}

// Calls a function of the backend for a message to or from a rank.
void ProcessGroup::on_backend(int peer, absl::FunctionRef<void()> call) {
  try {
    call();
  } catch (const Error& error) {
    await_failure();
    throw_if_failed(0);
    tt::fail(ErrorKind::kRuntime, "cannot exchange messages with rank ", peer, ": ", error.message());
  }
}

std::string ProcessGroup::timeout_key(int rank) const {
  return absl::StrCat(options_.name_in_store(), "/timeout/", running_sequence(), "/", rank);
}

std::string ProcessGroup::records_key(int rank) const {
  return absl::StrCat(options_.name_in_store(), "/records/", rank);
}

void ProcessGroup::publish_records() {
  constexpr size_t kMaxBytes = 8'192;
  const std::shared_ptr<Store> store = this->store();
  if (!store) return;
  const std::string key = records_key(rank());
  const std::string value = recorder_.text(kMaxBytes);
  // Without the store, only this rank has its records.
  static_cast<void>(store->set({&key, 1}, {&value, 1}));
}

std::string ProcessGroup::records(int rank) const {
  constexpr size_t kMaxBytes = 65'536;
  if (rank == this->rank()) return recorder_.text(kMaxBytes);
  const std::shared_ptr<Store> store = this->store();
  const std::string key = records_key(rank);
  if (!store) return "";
  const auto values = store->get({&key, 1}, std::chrono::seconds(1));
  return values.ok() ? values->front() : "";
}

bool ProcessGroup::is_failed() const {
  MutexLock lock(mutex_);
  return failure_.has_value();
}

void ProcessGroup::publish_timeout() {
  const std::string key = timeout_key(rank());
  const std::string value = "1";
  // If the store is lost, the group fails for this reason.
  static_cast<void>(store()->set({&key, 1}, {&value, 1}));
}

// The ranks that wait for a missing rank time out at about the same time; the missing rank itself does not.
std::string ProcessGroup::ranks_without_timeout() const {
  std::vector<int> silent;
  for (int r = 0; r < size(); ++r) {
    const std::string key = timeout_key(r);
    const absl::StatusOr<bool> exists = store()->check({&key, 1});
    if (exists.ok() && !*exists) silent.push_back(r);
  }
  return silent.empty() ? "" : absl::StrCat("; no answer from rank ", absl::StrJoin(silent, ", "));
}

bool ProcessGroup::has_failed_after_forming() const {
  MutexLock lock(mutex_);
  return failed_after_forming_;
}

std::string ProcessGroup::departure_while_forming() const {
  MutexLock lock(mutex_);
  return departed_.empty() ? "" : has_left(departed_.begin()->first);
}

std::string ProcessGroup::has_left(int rank) const {
  return absl::StrCat("rank ", rank, " has left the group \"", options_.name, "\"");
}

std::string ProcessGroup::reason_to_leave(const std::string& reason) const {
  return backend_ ? absl::StrCat(kFormed, reason) : reason;
}

bool ProcessGroup::has_joined() const {
  MutexLock lock(mutex_);
  return membership_ != nullptr;
}

std::shared_ptr<Store> ProcessGroup::store() const {
  MutexLock lock(mutex_);
  return store_;
}

uint64_t ProcessGroup::running_sequence() const {
  MutexLock lock(mutex_);
  return running_;
}

void ProcessGroup::await_failure() {
  // The store reports a lost member, by its rank, at about the time at which its connection breaks.
  constexpr std::chrono::milliseconds kMaxWait{500};
  MutexLock lock(mutex_);
  changed_.wait_for(mutex_, kMaxWait, [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return failure_ || std::any_of(departed_.begin(), departed_.end(),
                                   [this](const auto& rank)
                                       ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_ > rank.second; });
  });
}

void ProcessGroup::run_on_backend(const Collective& c) {
  if (c.kind == CollectiveKind::kAllToAll) check_counts(c);
  backend_->run(c);
}

// Checks that the receive counts of an all_to_all are the other ranks' send counts.
void ProcessGroup::check_counts(const Collective& c) {
  const auto ranks = static_cast<size_t>(size());
  constexpr size_t kCounts = Backend::kMaxExchange / sizeof(uint64_t);
  std::vector<uint64_t> theirs(ranks * kCounts);
  for (size_t begin = 0; begin < ranks; begin += kCounts) {
    std::array<uint64_t, kCounts> mine{};
    for (size_t r = begin; r < std::min(begin + kCounts, ranks); ++r) mine[r - begin] = c.send_counts[r];
    backend_->exchange({reinterpret_cast<const char*>(mine.data()), sizeof(mine)},
                       {reinterpret_cast<char*>(theirs.data()), theirs.size() * sizeof(uint64_t)});
    const size_t self = static_cast<size_t>(rank());
    if (self < begin || self >= begin + kCounts) continue;
    for (size_t r = 0; r < ranks; ++r) {
      const uint64_t sent = theirs[r * kCounts + self - begin];
      if (sent == c.receive_counts[r]) continue;
      tt::fail(ErrorKind::kRuntime, "rank ", r, " sends ", sent, " items to rank ", self, ", which expects ",
               c.receive_counts[r]);
    }
  }
}

void ProcessGroup::fail(const std::string& reason, bool tell_members) {
  std::shared_ptr<Membership> membership;
  std::string told;
  {
    MutexLock lock(mutex_);
    if (failure_) return;
    failure_ = reason;
    told = reason_to_leave(reason);
    abort_backends(reason);
    // A callback of the store must not hold a reference to the membership, which it could otherwise be the last to
    // destroy.
    if (tell_members) membership = membership_;
    changed_.notify_all();
  }
  if (membership) membership->leave(told);
}

void ProcessGroup::abort_backends(std::string_view reason) {
  if (backend_) backend_->abort(reason);
  if (device_backend_ && !leaves_properly_) device_backend_->abort();
}

void ProcessGroup::abort(const std::string& reason) { fail(reason); }

void ProcessGroup::on_member_left(int rank, const std::string& reason) {
  absl::string_view rest = reason;
  uint64_t last = 0;
  if (rank >= 0 && absl::ConsumePrefix(&rest, kDeparture) && absl::SimpleAtoi(rest, &last)) {
    MutexLock lock(mutex_);
    departed_[rank] = last;
    changed_.notify_all();
    if (running_ <= last || running_ == 0) return;
    abort_backends(has_left(rank));
    return;
  }
  if (rank >= 0 && absl::ConsumePrefix(&rest, kFormed)) {
    MutexLock lock(mutex_);
    failed_after_forming_ = !failure_ || failed_after_forming_;
  }
  // The engine of the default group's rank 0 serves the store.
  fail(rank < 0 ? lost_store(options_.name, reason)
                : absl::StrCat("rank ", rank, " of the group \"", options_.name, "\" failed: ", rest),
       /*tell_members=*/false);
}

TaskQueue& ProcessGroup::lane(int peer, bool receives) {
  const auto found = lanes_.find({peer, receives});
  if (found != lanes_.end()) return found->second->queue;
  auto lane = std::make_unique<Lane>(charge_session("a queue of messages", kLaneBytes),
                                     ThreadShare(options_.threads, 1, "a queue of messages"));
  return lanes_.emplace(std::pair(peer, receives), std::move(lane)).first->second->queue;
}

std::shared_ptr<Work> ProcessGroup::send(Message message) {
  const uint64_t record = recorder_.add("send", message.dtype, message.size / item_size(message.dtype), message.site);
  MutexLock lock(mutex_);
  return add(lane(message.peer, false),
             [this, message = std::move(message), record] { run_recorded(record, [&] { send_now(message); }); });
}

std::shared_ptr<Work> ProcessGroup::receive(Message message) {
  const uint64_t record =
      recorder_.add("receive", message.dtype, message.size / item_size(message.dtype), message.site);
  MutexLock lock(mutex_);
  return add(lane(message.peer, true),
             [this, message = std::move(message), record] { run_recorded(record, [&] { receive_now(message); }); });
}

// A receive from any rank. The lane of each peer waits for a message; the first one receives it.
struct ProcessGroup::AnyReceive {
  Message message;  // used by the lane that claimed it
  std::shared_ptr<Work> work;
  uint64_t record = 0;
  std::atomic<bool> claimed{false};
  Mutex mutex;
  int lanes ABSL_GUARDED_BY(mutex) = 0;  // that may still receive
  std::optional<Error> error ABSL_GUARDED_BY(mutex);
};

std::shared_ptr<Work> ProcessGroup::receive_any(Message message) {
  check(ErrorKind::kValue, size() > 1, "expected a group of at least 2 ranks to receive from another rank, got 1");
  auto any = std::make_shared<AnyReceive>();
  any->record = recorder_.add("receive", message.dtype, message.size / item_size(message.dtype), message.site);
  any->message = std::move(message);
  any->work = std::make_shared<Work>(notifier_);
  {
    MutexLock lock(any->mutex);
    any->lanes = size() - 1;
  }
  recorder_.begin(any->record);
  MutexLock lock(mutex_);
  std::vector<std::pair<int, TaskQueue*>> lanes;  // all of them, before the first one may receive
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) lanes.emplace_back(peer, &lane(peer, true));
  }
  for (const auto& [peer, queue] : lanes) queue->add([this, any, peer = peer] { try_receive(*any, peer); });
  return any->work;
}

// Waits for a message from one rank; returns whether this lane has to receive it.
bool ProcessGroup::claim(AnyReceive& any, int peer) {
  if (any.claimed) return false;
  Backend& backend = await_backend();
  bool arrived = false;
  on_backend(peer, [&] { arrived = backend.await_message(peer, any.message.tag, sizeof(MessageHeader), any.claimed); });
  if (!arrived || any.claimed.exchange(true)) return false;
  for (int other = 0; other < size(); ++other) {
    if (other != rank() && other != peer) backend.wake(other);
  }
  return true;
}

void ProcessGroup::try_receive(AnyReceive& any, int peer) {
  bool receives = false;
  std::optional<Error> error;
  try {
    receives = claim(any, peer);
    if (receives) {
      Message message = std::move(any.message);
      message.peer = peer;
      any.work->set_value(peer);
      receive_now(message);
    }
  } catch (const Error& e) {
    error = e;
  } catch (const std::exception& e) {
    error = Error(ErrorKind::kRuntime, e.what());
  }
  if (!receives) {
    MutexLock lock(any.mutex);
    if (error) any.error = std::move(error);
    if (--any.lanes > 0 || any.claimed || !any.error) return;
    error = any.error;  // no rank can send
  }
  recorder_.end(any.record, error ? error->message() : "");
  if (error && is_failed()) publish_records();
  any.work->finish(std::move(error));
}

void ProcessGroup::send_now(const Message& message) {
  Backend& backend = await_backend();
  const bool failed = !message.failure.empty();
  const absl::Span<const char> bytes =
      failed ? absl::MakeConstSpan(message.failure).first(std::min(message.failure.size(), kMaxFailureBytes))
             : absl::MakeConstSpan(message.bytes, message.size);
  const MessageHeader header{bytes.size(), static_cast<uint64_t>(message.dtype), failed ? uint64_t{1} : 0};
  on_backend(message.peer, [&] {
    backend.send(message.peer, message.tag, {reinterpret_cast<const char*>(&header), sizeof(header)});
  });
  if (!bytes.empty()) on_backend(message.peer, [&] { backend.send(message.peer, message.tag, bytes); });
  MutexLock lock(mutex_);
  ++sent_[message.peer];
}

void ProcessGroup::receive_now(const Message& message) {
  Backend& backend = await_backend();
  MessageHeader header{};
  on_backend(message.peer, [&] {
    backend.receive(message.peer, message.tag, {reinterpret_cast<char*>(&header), sizeof(header)});
  });
  {
    MutexLock lock(mutex_);
    ++received_[message.peer];
  }
  if (header.failed == 1 && header.bytes <= kMaxFailureBytes) {
    std::string text(header.bytes, '\0');
    on_backend(message.peer, [&] { backend.receive(message.peer, message.tag, absl::MakeSpan(text)); });
    for (char& c : text) {
      if (c < ' ' || c > '~') c = '?';
    }
    tt::fail(ErrorKind::kRuntime, text);
  }
  const bool expected =
      header.failed == 0 && header.bytes == message.size && header.dtype == static_cast<uint64_t>(message.dtype);
  if (!expected) {
    // The bytes that follow cannot be distinguished from those of later messages, so the group cannot continue.
    const bool is_known = is_valid(static_cast<int64_t>(std::min<uint64_t>(header.dtype, INT64_MAX)));
    const std::string error =
        absl::StrCat("expected ", message.size, " bytes of ", message_part(name(message.dtype)), " from rank ",
                     message.peer, ", got ", header.bytes, " bytes of ",
                     is_known ? message_part(name(static_cast<DType>(header.dtype))) : "an unknown type");
    fail(error);
    tt::fail(ErrorKind::kRuntime, error);
  }
  if (message.size != 0)
    on_backend(message.peer, [&] { backend.receive(message.peer, message.tag, {message.bytes, message.size}); });
}

}  // namespace tt::distributed
