// ModelVersion: sequences of requests, which share states.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/serving/model_version.h"
#include "server/serving/request_inputs.h"

namespace tt::server {

using Clock = std::chrono::steady_clock;

absl::StatusOr<std::shared_ptr<ModelVersion::Sequence>> ModelVersion::begin_sequence(const InferRequest& request) {
  constexpr std::chrono::milliseconds kPollInterval{50};
  const SequenceKey key{request.principal, request.sequence};
  std::vector<std::shared_ptr<Sequence>> dropped;  // destroyed outside of the lock
  MutexLock lock(sequences_mutex_);
  Clock::time_point now = Clock::now();
  const auto drop_idle = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequences_mutex_) {
    for (auto each = sequences_.begin(); each != sequences_.end();) {
      const bool is_idle = !each->second->is_busy && now - each->second->used > settings_.max_sequence_idle;
      if (is_idle) dropped.push_back(std::move(each->second));
      each = is_idle ? sequences_.erase(each) : std::next(each);
    }
  };
  // Fails if nobody waits for the request any more.
  const auto check_time = [&]() -> absl::Status {
    if (request.is_cancelled && request.is_cancelled()) {
      return absl::CancelledError("[ModelInfer] the request was cancelled while it waited for its sequence");
    }
    now = Clock::now();
    if (now < request.deadline) return absl::OkStatus();
    return absl::DeadlineExceededError("[ModelInfer] the request's time has passed while it waited for its sequence");
  };
  // Waits for a change.
  const auto wait = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequences_mutex_) -> absl::Status {
    if (absl::Status status = check_time(); !status.ok()) return status;
    sequences_changed_.wait_until(sequences_mutex_, std::min(request.deadline, now + kPollInterval));
    return check_time();
  };
  drop_idle();
  while (request.sequence_start && settings_.max_candidates != 0 && sequences_.size() >= settings_.max_candidates &&
         !sequences_.contains(key)) {
    if (absl::Status status = wait(); !status.ok()) return status;
    drop_idle();
  }
  if (request.sequence_start) {
    const auto first = sequences_.lower_bound({request.principal, ""});
    const auto last =
        std::find_if(first, sequences_.end(), [&](const auto& each) { return each.first.first != request.principal; });
    const bool is_new = !sequences_.contains(key);
    if (is_new && (sequences_.size() >= kMaxSequences ||
                   static_cast<size_t>(std::distance(first, last)) >= kMaxSequencesOfPrincipal)) {
      return absl::ResourceExhaustedError(absl::StrCat("[ModelInfer] expected at most ", kMaxSequencesOfPrincipal,
                                                       " sequences of one caller and ", kMaxSequences,
                                                       " of all; end some, or wait until they are idle"));
    }
    std::shared_ptr<Sequence>& sequence = sequences_[key];
    dropped.push_back(std::move(sequence));
    sequence = std::make_shared<Sequence>();
    sequence->used = now;
  }
  const auto missing = [&] {
    return invalid_request("expected a request with sequence_start for the sequence '", request.sequence.substr(0, 100),
                           "', which does not exist, has ended or was idle for too long");
  };
  const auto found = sequences_.find(key);
  if (found == sequences_.end()) return missing();
  const std::shared_ptr<Sequence> sequence = found->second;
  while (sequence->is_busy) {
    if (absl::Status status = wait(); !status.ok()) return status;
  }
  // It may have ended, or begun again, meanwhile.
  const auto current = sequences_.find(key);
  if (current == sequences_.end() || current->second != sequence) return missing();
  sequence->is_busy = true;
  return sequence;
}

void ModelVersion::end_sequence(const InferRequest& request, const std::shared_ptr<Sequence>& sequence) {
  MutexLock lock(sequences_mutex_);
  sequence->is_busy = false;
  sequence->used = Clock::now();
  sequences_changed_.notify_all();
  if (!request.sequence_end && sequence->has_begun) return;
  const auto found = sequences_.find({request.principal, request.sequence});
  if (found != sequences_.end() && found->second == sequence) sequences_.erase(found);
}

size_t ModelVersion::sequences() const {
  MutexLock lock(sequences_mutex_);
  return sequences_.size();
}

}  // namespace tt::server
