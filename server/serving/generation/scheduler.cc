#include "server/serving/generation/scheduler.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/schema/error.h"

namespace tt::server::generation {

const char* name(Finish finish) {
  switch (finish) {
    case Finish::kNone: return "";
    case Finish::kStop: return "stop";
    case Finish::kLength: return "length";
    case Finish::kCancelled: return "cancelled";
    case Finish::kError: return "error";
  }
  return "";
}

namespace {

absl::Status internal_error(const std::exception& exception) {
  const auto* error = dynamic_cast<const Error*>(&exception);
  return absl::InternalError(error != nullptr ? error->message() : "[generation] internal error");
}

}  // namespace

Scheduler::Scheduler(std::unique_ptr<Decoder> decoder, size_t max_waiting, std::function<void()> prepare)
    : decoder_(std::move(decoder)),
      prepare_(std::move(prepare)),
      limits_(decoder_->limits()),
      max_waiting_(max_waiting) {
  for (int64_t slot = 0; slot < limits_.slots; ++slot) free_slots_.insert(slot);
  thread_ = std::thread([this] { run(); });
}

Scheduler::~Scheduler() {
  {
    MutexLock lock(mutex_);
    ends_ = true;
    wake_up_.notify_all();
  }
  thread_.join();
}

absl::Status Scheduler::check_request(const Request& request) const {
  const auto length = static_cast<int64_t>(request.prompt.size());
  if (length < 1 || length >= limits_.max_length) {
    return absl::InvalidArgumentError(
        absl::StrCat("[generation] expected a prompt of 1 to ", limits_.max_length - 1, " tokens, got ", length));
  }
  for (int64_t token : request.prompt) {
    if (token < 0 || token >= limits_.vocabulary) {
      return absl::InvalidArgumentError(
          absl::StrCat("[generation] expected tokens from 0 to ", limits_.vocabulary - 1, ", got ", token));
    }
  }
  if (request.max_tokens < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("[generation] expected max_tokens of at least 1, got ", request.max_tokens));
  }
  if (request.stop_tokens.size() > kMaxStopTokens) {
    return absl::InvalidArgumentError(absl::StrCat("[generation] expected at most ", kMaxStopTokens,
                                                   " stop tokens, got ", request.stop_tokens.size()));
  }
  try {
    check_sampling(request.sampling);
  } catch (const Error& error) {
    return absl::InvalidArgumentError(error.message());
  }
  return absl::OkStatus();
}

absl::Status Scheduler::submit(Request request, Sink sink, uint64_t* number) {
  if (absl::Status status = check_request(request); !status.ok()) return status;
  MutexLock lock(mutex_);
  if (ends_) return absl::UnavailableError("[generation] the model is being unloaded");
  if (waiting_.size() >= max_waiting_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[generation] ", waiting_.size(), " requests are waiting, and at most ", max_waiting_, " may"));
  }
  Sequence sequence{++last_number_, std::move(request), std::move(sink)};
  *number = sequence.number;
  cancellable_.emplace_back(sequence.number, sequence.cancelled);
  waiting_.push_back(std::move(sequence));
  wake_up_.notify_all();
  return absl::OkStatus();
}

void Scheduler::cancel(uint64_t number) {
  std::deque<Sequence> dropped;  // destroyed outside of the lock
  {
    MutexLock lock(mutex_);
    for (const auto& [of, cancelled] : cancellable_) {
      if (of == number) cancelled->store(true);
    }
    // A request that still waits leaves the queue now: slots may be occupied for long.
    const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const Sequence& sequence) { return sequence.number == number; });
    if (waits == waiting_.end()) return;
    dropped.push_back(std::move(*waits));
    waiting_.erase(waits);
  }
  finish(dropped.front(), Finish::kCancelled);
  release(dropped.front());
}

SchedulerCounters Scheduler::counters() const {
  MutexLock lock(mutex_);
  SchedulerCounters counters = counters_;
  counters.waiting = waiting_.size();
  return counters;
}

void Scheduler::run() {
  if (prepare_) prepare_();
  while (admit()) {
    if (!running_.empty()) step();
  }
  for (Sequence& sequence : running_) finish(sequence, Finish::kCancelled);
  running_.clear();
  std::deque<Sequence> waiting;
  {
    MutexLock lock(mutex_);
    waiting.swap(waiting_);
  }
  for (Sequence& sequence : waiting) finish(sequence, Finish::kCancelled);
}

bool Scheduler::admit() {
  Sequence next{};
  {
    MutexLock lock(mutex_);
    counters_.running = running_.size();
    while (!ends_ && running_.empty() && waiting_.empty()) wake_up_.wait(mutex_);
    if (ends_) return false;
    if (waiting_.empty() || free_slots_.empty()) return true;
    next = std::move(waiting_.front());
    waiting_.pop_front();
    counters_.running = running_.size() + 1;
  }
  begin(std::move(next));
  return true;
}

void Scheduler::begin(Sequence sequence) {
  if (is_over(sequence)) {
    release(sequence);
    return;
  }
  sequence.slot = *free_slots_.begin();
  free_slots_.erase(free_slots_.begin());
  sequence.length = static_cast<int64_t>(sequence.request.prompt.size());
  bool goes_on = false;
  try {
    goes_on = append(sequence, decoder_->prefill(sequence.slot, sequence.request.prompt));
  } catch (const std::exception& error) {  // also std::bad_alloc: the thread serves other requests
    finish(sequence, Finish::kError, internal_error(error));
  }
  {
    MutexLock lock(mutex_);
    counters_.prompt_tokens += sequence.request.prompt.size();
  }
  if (goes_on) {
    running_.push_back(std::move(sequence));
  } else {
    release(sequence);
  }
}

void Scheduler::step() {
  std::erase_if(running_, [&](Sequence& sequence) {
    const bool over = is_over(sequence);
    if (over) release(sequence);
    return over;
  });
  if (running_.empty()) return;
  std::vector<Decoder::Next> next;
  next.reserve(running_.size());
  for (const Sequence& sequence : running_) next.push_back({sequence.slot, sequence.last, sequence.length});
  absl::Span<const float> logits;
  absl::Status failed;
  try {
    logits = decoder_->step(next);
  } catch (const std::exception& error) {
    failed = internal_error(error);
  }
  {
    MutexLock lock(mutex_);
    ++counters_.steps;
  }
  const auto vocabulary = static_cast<size_t>(limits_.vocabulary);
  size_t row = 0;
  std::erase_if(running_, [&](Sequence& sequence) {
    bool goes_on = false;
    if (!failed.ok()) {
      finish(sequence, Finish::kError, failed);
    } else {
      ++sequence.length;
      try {
        goes_on = append(sequence, logits.subspan(row++ * vocabulary, vocabulary));
      } catch (const std::exception& error) {
        finish(sequence, Finish::kError, internal_error(error));
      }
    }
    if (!goes_on) release(sequence);
    return !goes_on;
  });
}

bool Scheduler::append(Sequence& sequence, absl::Span<const float> logits) {
  const Request& request = sequence.request;
  check(static_cast<int64_t>(logits.size()) == limits_.vocabulary, "[generation] expected ", limits_.vocabulary,
        " logits, got ", logits.size());
  const auto index = static_cast<uint64_t>(sequence.generated);
  Event event{.token = sample(logits, request.sampling, index, &scratch_), .index = sequence.generated};
  sequence.last = event.token;
  ++sequence.generated;
  const auto& stops = request.stop_tokens;
  if (std::find(stops.begin(), stops.end(), event.token) != stops.end()) {
    event.finish = Finish::kStop;
  } else if (sequence.generated >= request.max_tokens || sequence.length >= limits_.max_length) {
    event.finish = Finish::kLength;
  }
  {
    MutexLock lock(mutex_);
    ++counters_.tokens;
    counters_.requests += event.finish != Finish::kNone;
  }
  const bool is_read = sequence.sink(event);
  if (event.finish != Finish::kNone) return false;
  if (!is_read) {
    finish(sequence, Finish::kCancelled);
    return false;
  }
  return true;
}

// Ends the sequence if it was cancelled or is late.
bool Scheduler::is_over(Sequence& sequence) {
  if (sequence.cancelled->load()) {
    finish(sequence, Finish::kCancelled);
    return true;
  }
  if (std::chrono::steady_clock::now() < sequence.request.deadline) return false;
  finish(sequence, Finish::kError, absl::DeadlineExceededError("[generation] the request's time is over"));
  return true;
}

void Scheduler::finish(Sequence& sequence, Finish finish, absl::Status status) {
  {
    MutexLock lock(mutex_);
    ++counters_.requests;
  }
  sequence.sink(Event{.index = sequence.generated, .finish = finish, .status = std::move(status)});
}

void Scheduler::release(const Sequence& sequence) {
  if (sequence.slot >= 0) free_slots_.insert(sequence.slot);
  MutexLock lock(mutex_);
  std::erase_if(cancellable_, [&](const auto& entry) { return entry.first == sequence.number; });
}

}  // namespace tt::server::generation
