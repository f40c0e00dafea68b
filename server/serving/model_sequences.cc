// ModelVersion: sequences of requests, which share states.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/serving/model_version.h"
#include "server/serving/request_inputs.h"

namespace tt::server {

using Clock = std::chrono::steady_clock;

size_t ModelVersion::sequences_of(const std::string& principal) const {
  size_t count = 0;
  for (auto each = sequences_.lower_bound({principal, ""}); each != sequences_.end(); ++each, ++count) {
    if (each->first.first != principal) break;
  }
  return count;
}

bool ModelVersion::has_place(const SequenceKey& key) const {
  if (settings_.max_candidates == 0 || sequences_.contains(key)) return true;
  if (sequences_.size() >= settings_.max_candidates) return false;
  const size_t own = sequences_of(key.first);
  return std::none_of(starting_.begin(), starting_.end(), [&](const auto& other) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return other.first != key.first && sequences_of(other.first) < own;
  });
}

std::shared_ptr<ModelVersion::Sequence> ModelVersion::take_place(const std::string& principal) {
  if (sequences_.size() < settings_.max_candidates) return nullptr;
  std::map<absl::string_view, size_t> counts;
  for (const auto& [other, requests] : starting_) counts[other] = 0;
  for (const auto& [key, sequence] : sequences_) ++counts[key.first];
  const size_t share = std::max<size_t>(settings_.max_candidates / counts.size(), 1);
  if (counts[principal] >= share) return nullptr;
  auto oldest = sequences_.end();
  for (auto each = sequences_.begin(); each != sequences_.end(); ++each) {
    const bool may_end = !each->second->is_busy && counts[each->first.first] > share;
    if (may_end && (oldest == sequences_.end() || each->second->used < oldest->second->used)) oldest = each;
  }
  if (oldest == sequences_.end()) return nullptr;
  std::shared_ptr<Sequence> sequence = std::move(oldest->second);
  sequences_.erase(oldest);
  return sequence;
}

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
  if (request.sequence_start && !has_place(key)) {
    ++starting_[request.principal];
    const absl::Cleanup leave = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      if (--starting_[request.principal] == 0) starting_.erase(request.principal);
      sequences_changed_.notify_all();
    };
    const Clock::time_point late = now + settings_.max_sequence_idle;
    while (!has_place(key)) {
      if (now >= late) {
        if (std::shared_ptr<Sequence> ended = take_place(request.principal)) {
          dropped.push_back(std::move(ended));
          continue;
        }
      }
      if (absl::Status status = wait(); !status.ok()) return status;
      drop_idle();
    }
  }
  if (request.sequence_start) {
    const bool is_new = !sequences_.contains(key);
    if (is_new && (sequences_.size() >= kMaxSequences || sequences_of(request.principal) >= kMaxSequencesOfPrincipal)) {
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

size_t ModelVersion::starting() const {
  MutexLock lock(sequences_mutex_);
  size_t count = 0;
  for (const auto& [principal, requests] : starting_) count += requests;
  return count;
}

size_t ModelVersion::sequences() const {
  MutexLock lock(sequences_mutex_);
  return sequences_.size();
}

}  // namespace tt::server
