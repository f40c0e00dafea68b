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
  std::vector<std::shared_ptr<Sequence>> dropped;  // destroyed outside of the lock, as is the next
  std::shared_ptr<Sequence> awaited;
  MutexLock lock(sequences_mutex_);
  Clock::time_point now = Clock::now();
  std::chrono::microseconds start_wait = kMaxStartWait;
  if (request.timeout_us != 0 && request.timeout_us < static_cast<uint64_t>(start_wait.count())) {
    start_wait = std::chrono::microseconds(request.timeout_us);
  }
  const Clock::time_point last_start = now + start_wait;
  const auto drop_idle = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequences_mutex_) {
    if (now < next_idle_) return;  // many requests may wait, each of which comes here every kPollInterval
    next_idle_ = Clock::time_point::max();
    for (auto each = sequences_.begin(); each != sequences_.end();) {
      const bool is_idle = !each->second->is_busy && now - each->second->used > settings_.max_sequence_idle;
      if (!is_idle && !each->second->is_busy) expect_idle(each->second->used);
      if (is_idle) dropped.push_back(std::move(each->second));
      each = is_idle ? sequences_.erase(each) : std::next(each);
    }
  };
  // Waits for a change, at most until then. Fails if nobody waits for the request any more.
  const auto wait = [&](CondVar& changed, Clock::time_point until)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(sequences_mutex_) -> absl::Status {
    if (absl::Status status = check_wanted(request); !status.ok()) return status;
    if (now >= until) {
      return absl::DeadlineExceededError("[ModelInfer] the request's time has passed while it waited for its sequence");
    }
    changed.wait_until(sequences_mutex_, std::min({request.deadline, until, now + kPollInterval}));
    now = Clock::now();
    return check_wanted(request);
  };
  bool is_counted = false;  // in starting_
  const absl::Cleanup uncount = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (!is_counted) return;
    if (--starting_[request.principal] == 0) starting_.erase(request.principal);
    sequences_changed_.notify_all();
  };
  const Clock::time_point late = now + std::min<Clock::duration>(settings_.max_sequence_idle, kMaxStartWait);
  uint64_t starts = 0;  // of `awaited`
  for (;;) {
    drop_idle();
    const auto found = sequences_.find(key);
    const bool is_missing =
        found == sequences_.end() || (awaited && (found->second != awaited || awaited->starts != starts));
    if (is_missing && !request.sequence_start) {
      return invalid_request("expected a request with sequence_start for the sequence '",
                             request.sequence.substr(0, 100),
                             "', which does not exist, has ended or was idle for too long");
    }
    if (found != sequences_.end() && !found->second->is_busy) {
      found->second->is_busy = true;
      return found->second;
    }
    if (found != sequences_.end()) {
      awaited = found->second;
      starts = awaited->starts;
      if (absl::Status status = wait(awaited->changed, Clock::time_point::max()); !status.ok()) return status;
      continue;
    }
    if (has_place(key)) break;
    if (!takes_waiting_starts_) return absl::UnavailableError("[ModelInfer] the model is being unloaded");
    if (!is_counted) {
      const auto waiting = starting_.find(request.principal);
      if (waiting != starting_.end() && waiting->second >= kMaxWaitingStarts) {
        return absl::ResourceExhaustedError(
            absl::StrCat("[ModelInfer] expected at most ", kMaxWaitingStarts,
                         " requests of one caller that wait for the end of a sequence; try again later"));
      }
      ++starting_[request.principal];
      is_counted = true;
    }
    if (now >= late) {
      if (std::shared_ptr<Sequence> ended = take_place(request.principal)) {
        dropped.push_back(std::move(ended));
        continue;
      }
    }
    if (absl::Status status = wait(sequences_changed_, last_start); !status.ok()) return status;
  }
  if (sequences_.size() >= kMaxSequences || sequences_of(request.principal) >= kMaxSequencesOfPrincipal) {
    return absl::ResourceExhaustedError(absl::StrCat("[ModelInfer] expected at most ", kMaxSequencesOfPrincipal,
                                                     " sequences of one caller and ", kMaxSequences,
                                                     " of all; end some, or wait until they are idle"));
  }
  auto sequence = std::make_shared<Sequence>();
  sequence->is_busy = true;
  sequence->used = now;
  sequence->key = key;
  sequences_[key] = sequence;
  return sequence;
}

void ModelVersion::end_sequence(const InferRequest& request, const std::shared_ptr<Sequence>& sequence,
                                bool has_succeeded) {
  MutexLock lock(sequences_mutex_);
  sequence->is_busy = false;
  sequence->used = Clock::now();
  expect_idle(sequence->used);
  if (has_succeeded && request.sequence_start) ++sequence->starts;
  sequence->changed.notify_all();   // requests of this sequence
  sequences_changed_.notify_all();  // those that wait until they may begin one
  if (!(has_succeeded && request.sequence_end) && sequence->has_begun) return;
  const auto found = sequences_.find(sequence->key);
  if (found != sequences_.end() && found->second == sequence) sequences_.erase(found);
}

void ModelVersion::expect_idle(Clock::time_point used) {
  next_idle_ = std::min(next_idle_, used + settings_.max_sequence_idle);
}

size_t ModelVersion::starting() const {
  MutexLock lock(sequences_mutex_);
  size_t count = 0;
  for (const auto& [principal, requests] : starting_) count += requests;
  return count;
}

void ModelVersion::end_waiting_starts() {
  MutexLock lock(sequences_mutex_);
  takes_waiting_starts_ = false;
  sequences_changed_.notify_all();
}

size_t ModelVersion::sequences() const {
  MutexLock lock(sequences_mutex_);
  return sequences_.size();
}

}  // namespace tt::server
