#include "tests/client/fake_engine.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"

namespace tt::client::testing {

void FakeEngine::execute(const v1::Frame& frame, std::deque<v1::Reply>* replies) {
  v1::Reply reply;
  if (frame.sequence() > last_sequence + 1) {
    reply.mutable_fault()->set_message(
        absl::StrCat("frame ", frame.sequence(), " before its turn, expected ", last_sequence + 1));
    replies->push_back(std::move(reply));
    return;
  }
  if (frame.sequence() == last_sequence + 1) {
    last_sequence = frame.sequence();
    const bool cancelled = frame.sequence() <= cancelled_through;
    for (int i = 0; i < frame.scalar_reads_size(); i += 2) {
      const float number = static_cast<float>(executed.size() + frame.scalar_reads(i));
      std::string bytes(16, '\0');
      std::memcpy(bytes.data(), &number, sizeof(number));
      numbers[frame.sequence()] += bytes;
    }
    for (const v1::Site& site : frame.sites()) sites.push_back(site);
    for (const v1::Instruction& instruction : frame.instructions()) {
      released.insert(released.end(), instruction.release().begin(), instruction.release().end());
      if (!cancelled) {
        executed.push_back(instruction);
        continue;
      }
      for (uint32_t i = 0; i < std::max(1u, instruction.result_count()); ++i) {
        poison[instruction.result() + i].set_message("the operation was cancelled");
      }
    }
    released.insert(released.end(), frame.release().begin(), frame.release().end());
    frame_sizes.push_back(frame.instructions_size());
    closed |= frame.close();
  }
  reply.set_executed(last_sequence);
  for (const v1::Read& read : frame.reads()) {
    v1::ReadResult* result = reply.add_reads();
    result->set_request(read.request());
    if (auto it = poison.find(read.handle()); it != poison.end()) *result->mutable_error() = it->second;
    if (auto it = descriptions.find(read.handle()); it != descriptions.end()) *result->mutable_tensor() = it->second;
    auto value = values.find(read.handle());
    if (!read.meta_only()) {
      float id = static_cast<float>(read.handle());
      result->set_data(value != values.end() ? value->second : std::string(reinterpret_cast<char*>(&id), sizeof(id)));
    }
  }
  if (frame.scalar_reads_size() != 0) {
    reply.set_first_number(frame.first_number());
    reply.set_numbers(numbers[frame.sequence()]);
  }
  replies->push_back(std::move(reply));
}

absl::Status FakeTransport::hello(const v1::HelloRequest& request, v1::HelloReply* reply) {
  std::this_thread::sleep_for(engine_->hello_delay);
  std::lock_guard lock(engine_->mutex);
  ++engine_->hellos;
  if (engine_->dead) return absl::UnavailableError("connection refused");
  if (engine_->refusing > 0) {
    --engine_->refusing;
    return absl::UnavailableError("connection refused");
  }
  if (engine_->silent > 0) {
    --engine_->silent;
    return absl::DeadlineExceededError("no answer");
  }
  reply->set_engine_version("fake");
  reply->set_max_op_id(engine_->max_op_id);
  if (engine_->operators.ids_size() > 0) *reply->mutable_operators() = engine_->operators;
  reply->set_default_dtypes(engine_->default_dtypes);
  reply->set_session_key(engine_->forgetful ? absl::StrCat("key ", engine_->hellos) : "key");
  if (!request.resume_key().empty()) reply->set_executed(engine_->last_sequence);
  *reply->mutable_limits() = engine_->limits;
  reply->set_lease_seconds(engine_->lease_seconds);
  return absl::OkStatus();
}

bool FakeTransport::engine_has_ended() const {
  std::lock_guard lock(engine_->mutex);
  return engine_->has_ended;
}

absl::Status FakeTransport::open(const std::string&) {
  std::lock_guard lock(engine_->mutex);
  arrived_.clear();
  replies_.clear();
  delivered_ = replied_ = 0;
  broken_ = false;
  return absl::OkStatus();
}

bool FakeTransport::breaks_at(Break::Kind kind, int count) {
  std::vector<Break>& breaks = engine_->breaks;
  if (breaks.empty() || breaks.front().kind != kind || breaks.front().at != count) return false;
  std::this_thread::sleep_for(breaks.front().delay);
  breaks.erase(breaks.begin());
  return true;
}

void FakeTransport::break_stream() {
  broken_ = true;
  replies_.clear();
  engine_->changed.notify_all();
}

void FakeTransport::run_arrived() {
  auto runs = [&] { return !engine_->paused || arrived_.front().sequence() <= engine_->cancelled_through; };
  for (; !arrived_.empty() && runs(); arrived_.pop_front()) engine_->execute(arrived_.front(), &replies_);
  engine_->changed.notify_all();
}

// Like std::condition_variable::wait_for, but the maximum `timeout` means no limit.
template <typename Done>
bool FakeTransport::wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout, Done done) {
  if (timeout != kForever) return engine_->changed.wait_for(lock, timeout, done);
  engine_->changed.wait(lock, done);
  return true;
}

std::optional<absl::Status> FakeTransport::send(const v1::Frame& frame, std::chrono::milliseconds timeout) {
  std::unique_lock lock(engine_->mutex);
  auto has_room = [&] { return !engine_->full || broken_ || shut_down_ || engine_->dead; };
  if (!wait(lock, timeout, has_room)) return std::nullopt;
  ++delivered_;
  if (breaks_at(Break::kBeforeDelivery, delivered_)) break_stream();
  if (broken_ || shut_down_ || engine_->dead) return absl::UnavailableError("broken pipe");
  arrived_.push_back(frame);
  engine_->most_in_flight = std::max(engine_->most_in_flight, static_cast<int>(arrived_.size()));
  run_arrived();
  if (breaks_at(Break::kAfterDelivery, delivered_)) {
    break_stream();
    return absl::UnavailableError("broken pipe");
  }
  return absl::OkStatus();
}

std::optional<absl::Status> FakeTransport::receive(v1::Reply* reply, std::chrono::milliseconds timeout) {
  std::unique_lock lock(engine_->mutex);
  if (broken_) return absl::UnavailableError("connection reset");
  auto is_over = [&] {
    if (!broken_) run_arrived();
    return !replies_.empty() || broken_ || shut_down_ || engine_->dead;
  };
  if (!wait(lock, timeout, is_over)) return std::nullopt;
  ++replied_;
  if (breaks_at(Break::kBeforeReply, replied_)) break_stream();
  if (replies_.empty() || broken_) return absl::UnavailableError("connection reset");
  *reply = std::move(replies_.front());
  replies_.pop_front();
  if (breaks_at(Break::kAfterReply, replied_)) break_stream();
  return absl::OkStatus();
}

absl::Status FakeTransport::next_transfer() {
  ++engine_->transfer_calls;
  if (engine_->dead) return absl::UnavailableError("connection refused");
  if (engine_->silent > 0) {
    --engine_->silent;
    return absl::DeadlineExceededError("no answer");
  }
  if (engine_->transfer_failures.empty()) return absl::OkStatus();
  absl::Status failure = engine_->transfer_failures.front();
  engine_->transfer_failures.pop_front();
  return failure;
}

absl::Status FakeTransport::upload(uint64_t transfer, Device, absl::Span<const char> bytes, TransferProgress*) {
  std::lock_guard lock(engine_->mutex);
  if (absl::Status failure = next_transfer(); !failure.ok()) return failure;
  uploads_[transfer].assign(bytes.begin(), bytes.end());
  return absl::OkStatus();
}

absl::Status FakeTransport::download(uint64_t handle, uint64_t, absl::Span<char> into, TransferProgress*,
                                     v1::Error* error) {
  std::lock_guard lock(engine_->mutex);
  if (absl::Status failure = next_transfer(); !failure.ok()) return failure;
  if (auto it = engine_->poison.find(handle); it != engine_->poison.end()) *error = it->second;
  std::fill(into.begin(), into.end(), static_cast<char>(handle));
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FakeTransport::cancel(uint64_t through) {
  std::lock_guard lock(engine_->mutex);
  if (!engine_->can_cancel) return absl::UnimplementedError("Cancel");
  if (engine_->lost_cancels > 0) {
    --engine_->lost_cancels;
    return absl::DeadlineExceededError("no answer");
  }
  engine_->cancels.push_back(through);
  engine_->cancelled_through = std::max(engine_->cancelled_through, through);
  uint64_t executed = engine_->last_sequence;
  run_arrived();
  return executed;
}

void FakeTransport::shutdown() {
  std::lock_guard lock(engine_->mutex);
  shut_down_ = true;
  engine_->changed.notify_all();
}

}  // namespace tt::client::testing
