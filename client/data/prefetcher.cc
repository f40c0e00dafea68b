#include "client/data/prefetcher.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "base/mutex.h"
#include "client/api/errors.h"
#include "client/api/session.h"

namespace teletensor::data::internal {

struct Prefetcher::Shared {
  struct Result {
    std::any batch;
    std::exception_ptr error;
  };

  // Makes batches until there are no more.
  void work() {
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
    const NoGradGuard no_grad;
    std::optional<SessionGuard> guard;
    if (session.defined()) guard.emplace(session);
    try {
      return {fetch(batches[number]), nullptr};
    } catch (...) {
      return {{}, std::current_exception()};
    }
  }

  // Waits for the batches that are being made.
  void stop() {
    {
      tt::MutexLock lock(mutex);
      done = true;
      may_start.notify_all();
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<std::vector<size_t>> batches;
  Fetch fetch;
  Session session;  // of the thread that made the loader's iterator; undefined for the default session
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
  shared_->session = teletensor::internal::guarded_session();
  shared_->ahead = std::max<size_t>(ahead, 1);
  workers = std::min(workers, shared_->batches.size());
  try {
    for (size_t i = 0; i < workers; ++i) shared_->threads.emplace_back([shared = shared_.get()] { shared->work(); });
  } catch (const std::system_error& error) {
    shared_->stop();
    throw RuntimeError("cannot start thread " + std::to_string(shared_->threads.size() + 1) + " of " +
                       std::to_string(workers) + " of a loader: " + error.what());
  }
}

Prefetcher::~Prefetcher() { shared_->stop(); }

std::any Prefetcher::next() {
  Shared& s = *shared_;
  if (s.position == s.batches.size()) return {};
  const size_t number = s.position++;
  Shared::Result result;
  if (s.threads.empty()) {
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
