#include "client/data/prefetcher.h"

#include <algorithm>
#include <exception>
#include <map>
#include <thread>

#include "base/mutex.h"
#include "client/api/session.h"

namespace teletensor::data::internal {

struct Prefetcher::Shared {
  struct Result {
    std::any batch;
    std::exception_ptr error;
  };

  // Makes batches until there are no more.
  void work() {
    NoGradGuard no_grad;
    for (;;) {
      size_t number = 0;
      {
        tt::MutexLock lock(mutex);
        while (!done && started < batches.size() && started >= used + ahead) may_start.wait(mutex);
        if (done || started == batches.size()) return;
        number = started++;
      }
      Result result = make(number);
      tt::MutexLock lock(mutex);
      results.emplace(number, std::move(result));
      is_made.notify_all();
    }
  }

  Result make(size_t number) const {
    try {
      return {fetch(batches[number]), nullptr};
    } catch (...) {
      return {{}, std::current_exception()};
    }
  }

  std::vector<std::vector<size_t>> batches;
  Fetch fetch;
  size_t ahead = 0;
  std::vector<std::thread> threads;
  size_t position = 0;  // of next()

  tt::Mutex mutex;
  tt::CondVar may_start, is_made;
  std::map<size_t, Result> results ABSL_GUARDED_BY(mutex);
  size_t started ABSL_GUARDED_BY(mutex) = 0, used ABSL_GUARDED_BY(mutex) = 0;
  bool done ABSL_GUARDED_BY(mutex) = false;
};

Prefetcher::Prefetcher(std::vector<std::vector<size_t>> batches, Fetch fetch, size_t workers, size_t ahead)
    : shared_(std::make_unique<Shared>()) {
  shared_->batches = std::move(batches);
  shared_->fetch = std::move(fetch);
  shared_->ahead = std::max<size_t>(ahead, 1);
  for (size_t i = 0; i < workers; ++i) shared_->threads.emplace_back([shared = shared_.get()] { shared->work(); });
}

Prefetcher::~Prefetcher() {
  {
    tt::MutexLock lock(shared_->mutex);
    shared_->done = true;
    shared_->may_start.notify_all();
  }
  for (std::thread& thread : shared_->threads) thread.join();
}

std::any Prefetcher::next() {
  Shared& s = *shared_;
  if (s.position == s.batches.size()) return {};
  const size_t number = s.position++;
  Shared::Result result;
  if (s.threads.empty()) {
    NoGradGuard no_grad;
    result = s.make(number);
  } else {
    tt::MutexLock lock(s.mutex);
    while (!s.results.contains(number)) s.is_made.wait(s.mutex);
    result = std::move(s.results.extract(number).mapped());
    ++s.used;
    s.may_start.notify_all();
  }
  if (result.error) std::rethrow_exception(result.error);
  return std::move(result.batch);
}

}  // namespace teletensor::data::internal
