// Sessions: streams, leases, and the end of sessions.
#include <algorithm>
#include <exception>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/log.h"
#include "server/session/session_log.h"
#include "server/session/sessions.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

// Delay between the loss of a client's connection and the first check whether the client has died. The delay is needed
// because the kernel may close the socket of a dying process before its shared segment.
constexpr std::chrono::milliseconds kFirstCheck{5};
// Interval at which busy sessions are checked for broken connections and exceeded time limits.
constexpr std::chrono::milliseconds kWatch{100};
// Interval at which end_all() checks whether running frames have ended.
constexpr std::chrono::milliseconds kFramePollInterval{5};

// Why a session ends when the engine ends.
constexpr char kShutdown[] = "was ended by engine shutdown";

}  // namespace

void Sessions::end(const Session& session) {
  std::shared_ptr<Session> ended;
  {
    MutexLock lock(mutex_);
    auto found = entries_.find(session.key());
    if (found == entries_.end()) return;
    ended = found->second.session;
    ended_[ended->principal()].add_work(ended->status());
    ended->end_trace();  // before the session leaves the table, so that end_traces() misses none
    entries_.erase(found);
  }
  ended->close();
  if (options_.store) options_.store->remove(ended->key());
  release_memory(*ended);
  log_sessions().info(absl::StrCat("session ", ended->id(), " ended"), {ended->id(), ended->principal()});
  if (options_.on_end) options_.on_end(*ended);
}

void Sessions::release_memory(const Session& session) {
  memory_.session_ended(options_.tenant == 0 ? session.account()->tenant() : kNoTenant);
}

bool Sessions::end(uint64_t id) {
  MutexLock lock(mutex_);
  auto found = std::find_if(entries_.begin(), entries_.end(), [=](auto& at) { return at.second.session->id() == id; });
  if (found == entries_.end()) return false;
  begin_closing(found, "was ended by an administrator");
  return true;
}

size_t Sessions::end_all_of(absl::string_view principal) {
  publications_->revoke(principal);
  MutexLock lock(mutex_);
  size_t ended = 0;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const auto here = at++;
    if (here->second.session->principal() != principal) continue;
    begin_closing(here, "was ended: the access of its principal was revoked");
    ++ended;
  }
  return ended;
}

uint64_t Sessions::attach(Session& session, std::function<void()> cancel, std::function<bool()> is_broken) {
  MutexLock lock(mutex_);
  auto found = entries_.find(session.key());
  if (found == entries_.end()) return 0;
  Entry& entry = found->second;
  const std::function<void()> replaced = std::exchange(entry.cancel, std::move(cancel));
  entry.is_broken = std::move(is_broken);
  entry.attachment = ++last_attachment_;
  session.set_stream(entry.attachment);
  if (auto segment = session.segment()) segment->client_exited();  // records that the client is present
  if (replaced) replaced();  // under the lock, so that the stream cannot detach and be destroyed during the call
  changed_.notify_all();     // wakes the watching thread, which must check this stream too
  return entry.attachment;
}

void Sessions::detach(Session& session, uint64_t attachment) {
  MutexLock lock(mutex_);
  for (Entries* entries : {&entries_, &closing_}) {
    auto found = entries->find(session.key());
    if (found == entries->end() || found->second.attachment != attachment) continue;
    on_stream_closed(found->second);
  }
}

void Sessions::on_stream_closed(Entry& entry) {
  entry.attachment = 0;
  entry.cancel = nullptr;
  entry.is_broken = nullptr;
  entry.session->set_stream(0);
  start_lease(entry);
  const Session& session = *entry.session;
  log_line(
      LogLevel::kDebug, {session.id(), session.principal(), entry.address},
      absl::StrCat("session ", session.id(), ": the stream has ended; the lease is ", options_.lease.count(), " ms"));
}

void Sessions::end_streams() {
  if (options_.store) options_.store->release_lock();
  MutexLock lock(mutex_);
  for (auto& [key, entry] : entries_) {
    entry.session->park();
    if (entry.cancel) entry.cancel();
  }
}

void Sessions::stop() {
  MutexLock lock(mutex_);
  stopped_ = true;
}

void Sessions::end_all(std::chrono::milliseconds timeout) {
  MutexLock lock(mutex_);
  stopped_ = true;
  park_persistent(timeout);
  for (auto& [key, entry] : entries_) entry.session->stop(kShutdown);
  auto any_busy = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return std::any_of(entries_.begin(), entries_.end(), [](auto& at) { return at.second.session->busy(); });
  };
  for (const auto deadline = Clock::now() + timeout; any_busy() && Clock::now() < deadline;) {
    changed_.wait_for(mutex_, kFramePollInterval);
  }
  while (!entries_.empty()) begin_closing(entries_.begin(), kShutdown);
  changed_.wait(mutex_, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return closing_.empty(); });
}

// Never waits for the session: a library call in it may take minutes.
void Sessions::begin_closing(Entries::iterator at, std::string why) {
  const std::string key = at->first;
  at->second.session->begin_closing(why);
  const Session& session = *at->second.session;
  log_sessions().info(absl::StrCat("session ", session.id(), " ", why, "; its memory is being released"),
                      {session.id(), session.principal(), at->second.address});
  ended_[session.principal()].add_work(session.status());
  closing_.emplace(key, std::move(at->second));
  entries_.erase(at);
  start_closing_thread(key);
}

void Sessions::start_closing_thread(const std::string& key) {
  try {
    // Detached; end_all() waits until closing_ is empty.
    std::thread([this, key] { close(key); }).detach();
  } catch (const std::system_error& error) {
    spdlog::error("cannot start a thread to close a session: {}", error.what());
    closings_without_thread_.push_back(key);  // the watching thread retries
  }
}

void Sessions::close(const std::string& key) {
  MutexLock lock(mutex_);
  Session& session = *closing_.find(key)->second.session;
  lock.unlock();  // the entry stays until this thread erases it
  try {
    session.close();
    if (options_.store) options_.store->remove(key);
    release_memory(session);
    session.end_trace();
  } catch (const std::exception& error) {
    log_line(LogLevel::kError, {session.id(), session.principal()},
             absl::StrCat("session ", session.id(), ": closing failed: ", error.what()));
  }
  if (options_.on_end) options_.on_end(session);
  lock.lock();
  auto found = closing_.find(key);
  if (found->second.cancel) found->second.cancel();  // ends a stream that waits for its client's next frame
  closing_.erase(found);
  changed_.notify_all();
}

void Sessions::start_lease(Entry& entry) {
  auto now = Clock::now();
  entry.expires = now + options_.lease;
  entry.check_interval = kFirstCheck;
  entry.next_check = now + kFirstCheck;
  changed_.notify_all();
}

void Sessions::run_leases() {
  MutexLock lock(mutex_);
  while (!ending_) {
    Clock::time_point next = Clock::now() + std::chrono::hours(1);
    try {
      watch(&next);
      end_expired(&next);
    } catch (const std::exception& error) {  // probably out of memory, which may be temporary
      spdlog::error("checking sessions failed: {}", error.what());
      next = Clock::now() + kWatch;
    }
    changed_.wait_until(mutex_, next);
  }
}

// Performs checks that the sessions' own threads cannot do while they are busy.
void Sessions::watch(Clock::time_point* next) {
  const bool limited = options_.frame_time_limit.count() != 0;
  for (auto& [key, entry] : entries_) {
    if (entry.attachment == 0 && !limited) continue;
    *next = std::min(*next, Clock::now() + kWatch);
    if (!entry.session->busy()) continue;
    entry.session->enforce_time_limit();
    if (entry.is_broken && entry.is_broken()) on_stream_closed(entry);
  }
  for (const std::string& key : std::exchange(closings_without_thread_, {})) start_closing_thread(key);
  if (!closings_without_thread_.empty()) *next = std::min(*next, Clock::now() + kWatch);
}

void Sessions::end_expired(Clock::time_point* next) {
  if (frozen_) return;
  if (options_.store) *next = std::min(*next, options_.store->remove_expired());
  const auto now = Clock::now();
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    auto here = it++;
    if (entry.attachment != 0) continue;
    bool over = now >= entry.expires;
    if (!over && now >= entry.next_check) {
      auto segment = entry.session->segment();
      over = segment && segment->client_exited();
      entry.check_interval *= 4;
      entry.next_check = now + entry.check_interval;
    }
    if (over) {
      begin_closing(here, "expired");
    } else {
      *next = std::min({*next, entry.expires, entry.next_check});
    }
  }
}

}  // namespace tt::server
