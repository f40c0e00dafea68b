// Sessions: sessions that continue from images, of the disk or of another process.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/log.h"
#include "server/session/session_log.h"
#include "server/session/sessions.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

// How often the images that are due are looked for, and how long a session is waited for until it can be stored.
constexpr std::chrono::milliseconds kImageInterval{100}, kImageTime{10'000}, kFirstImageTime{30'000};
constexpr double kMaxInterval = 30.0 * 24 * 3600;
std::chrono::steady_clock::duration to_clock(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

absl::Status Sessions::adopt(const SessionRecord& record, const Principal& principal, ImageSource* source,
                             ImageBlocks* blocks) {
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    last_id_ = std::max(last_id_, record.id);
    session = make(record, "", principal, "");
  }
  try {
    session->read_image(source, blocks);
  } catch (const Error& error) {
    return absl::DataLossError(absl::StrCat("session ", record.id, ": ", error.message()));
  }
  session->set_persistence(record.persistence);
  if (options_.store) options_.store->keep(record.key_digest);
  MutexLock lock(mutex_);
  if (stopped_) return absl::UnavailableError("the engine is shutting down");
  add(session, "").quota = principal.quota;
  return absl::OkStatus();
}

absl::Status Sessions::restore(const std::string& key_digest, absl::string_view address, const Principal& principal) {
  absl::StatusOr<SessionStore::Stored> stored = options_.store->find(key_digest);
  if (absl::IsNotFound(stored.status())) return absl::NotFoundError("the session has ended");
  if (!stored.ok()) {
    return absl::NotFoundError(absl::StrCat("the session cannot be restored: ", stored.status().message()));
  }
  if (stored->record.principal != principal.name) return absl::NotFoundError("the session has ended");
  std::shared_ptr<Session> session;
  {
    MutexLock lock(mutex_);
    if (stopped_) return absl::UnavailableError("the engine is shutting down");
    if (entries_.contains(key_digest)) return absl::OkStatus();
    if (absl::Status status = check_room(principal); !status.ok()) return status;
    if (!restoring_.insert(key_digest).second) return absl::UnavailableError("the session is being restored");
    session = make(stored->record, address, principal, "");
  }
  absl::Status status;
  try {
    session->read_image(stored->source.get());
  } catch (const Error& error) {
    const std::string why = absl::StrCat("the session cannot be restored: ", stored->path, ": ", error.message());
    status = error.kind() == ErrorKind::kOutOfMemory ? absl::ResourceExhaustedError(why) : absl::NotFoundError(why);
    log_line(LogLevel::kError, {session->id(), session->principal(), address}, why);
  }
  session->set_persistence(stored->record.persistence);
  session->set_persisted(stored->record.executed);
  MutexLock lock(mutex_);
  restoring_.erase(key_digest);
  if (!status.ok()) return status;
  options_.store->keep(key_digest);
  Entry& entry = add(session, address);
  entry.quota = principal.quota;
  entry.next_image = Clock::now();
  log_sessions().info(
      absl::StrCat("session ", session->id(), " continues from its image of frame ", session->executed()),
      {session->id(), principal.name, address});
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Sessions::write_image(Session& session, const std::shared_ptr<Quota>& quota,
                                               std::chrono::milliseconds wait, bool keep_held) {
  MutexLock writing(image_mutex_);
  {
    MutexLock lock(mutex_);
    if (frozen_) return absl::UnavailableError("the engine is being replaced by another process");
  }
  if (absl::Status status = session.hold(Clock::now() + wait); !status.ok()) return status;
  const uint64_t frame = session.executed();
  bool held = true;
  const auto release = [&] {
    if (std::exchange(held, false)) session.release();
  };
  try {
    absl::StatusOr<std::unique_ptr<SessionStore::Writer>> writer = options_.store->begin(session.record(), quota);
    if (!writer.ok()) {
      release();
      return writer.status();
    }
    session.write_image(writer->get());
    if (!keep_held) release();  // before the wait for the disk
    (*writer)->commit();
    session.set_persisted(frame);
    return (*writer)->bytes();
  } catch (const Error& error) {
    release();
    return absl::FailedPreconditionError(error.message());
  }
}

absl::Status Sessions::persist(Session& session, const Persistence& persistence, v1::PersistReply* reply) {
  if (!options_.store) {
    return absl::FailedPreconditionError("the engine stores no sessions; start it with --state-dir");
  }
  if (!(persistence.every >= 0 && persistence.every <= kMaxInterval && persistence.wait >= 0 &&
        persistence.wait <= kMaxInterval)) {
    return absl::InvalidArgumentError(absl::StrCat("expected intervals of 0 to ", kMaxInterval, " seconds, got ",
                                                   persistence.every, " and ", persistence.wait));
  }
  std::shared_ptr<Quota> quota;
  {
    MutexLock lock(mutex_);
    const auto found = entries_.find(session.key());
    if (found == entries_.end()) return absl::NotFoundError("the session has ended");
    quota = found->second.quota;
    found->second.next_image = Clock::now() + std::chrono::hours(24);  // not before the one below
  }
  const Persistence before = session.persistence();
  session.set_persistence(persistence);
  if (!persistence.is_on()) {
    session.set_persisted(0);
    options_.store->remove(session.key());
    return absl::OkStatus();
  }
  const absl::StatusOr<uint64_t> bytes = write_image(session, quota, kFirstImageTime);
  if (!bytes.ok()) session.set_persistence(before);
  const std::chrono::duration<double> every(session.persistence().every);
  MutexLock lock(mutex_);
  const auto found = entries_.find(session.key());
  if (found == entries_.end()) {  // it has ended meanwhile
    options_.store->remove(session.key());
    return absl::NotFoundError("the session has ended");
  }
  if (before.is_on() || bytes.ok()) found->second.next_image = Clock::now() + to_clock(every.count());
  changed_.notify_all();
  if (!bytes.ok()) return absl::FailedPreconditionError(bytes.status().message());
  reply->set_persisted(session.persisted());
  reply->set_bytes(*bytes);
  return absl::OkStatus();
}

// Writes the images that are due, one after the other.
void Sessions::run_images() {
  MutexLock lock(mutex_);
  while (!ending_) {
    std::shared_ptr<Session> due;
    std::shared_ptr<Quota> quota;
    bool any = false;
    const auto now = Clock::now();
    for (auto& [key, entry] : entries_) {
      const Persistence persistence = entry.session->persistence();
      if (stopped_ || frozen_ || !persistence.is_on()) continue;
      any = true;
      if (entry.session->executed() == entry.session->persisted()) continue;
      if (now < entry.next_image && !entry.session->wants_image()) continue;
      entry.next_image = now + to_clock(persistence.every);
      due = entry.session;
      quota = entry.quota;
      break;
    }
    if (!due) {
      changed_.wait_for(mutex_, any ? kImageInterval : std::chrono::milliseconds(std::chrono::hours(1)));
      continue;
    }
    lock.unlock();
    const absl::StatusOr<uint64_t> bytes = write_image(*due, quota, kImageTime);
    if (!bytes.ok()) {
      log_sessions().warn(absl::StrCat("session ", due->id(), ": no image was stored: ", bytes.status().message()),
                          {due->id(), due->principal()});
    }
    lock.lock();
    if (!entries_.contains(due->key()) && !parked_.contains(due->key())) options_.store->remove(due->key());
  }
}

// Persistent sessions continue after the engine's next start.
void Sessions::park_persistent(std::chrono::milliseconds timeout) {
  if (!options_.store) return;
  std::vector<std::string> keys;
  for (const auto& [key, entry] : entries_) {
    if (entry.session->persistence().is_on()) keys.push_back(key);
  }
  const auto deadline = Clock::now() + timeout;
  for (const std::string& key : keys) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) continue;
    const std::shared_ptr<Session> session = found->second.session;
    const std::shared_ptr<Quota> quota = found->second.quota;
    absl::StatusOr<uint64_t> bytes = 0;
    {
      MutexUnlock unlocked(mutex_);
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
      bytes = write_image(*session, quota, left, /*keep_held=*/true);
    }
    if (!bytes.ok()) {
      spdlog::warn("session {}: the engine ends without a new image: {}", session->id(),
                   std::string(bytes.status().message()));
      if (session->persisted() == 0) continue;
    }
    const auto again = entries_.find(key);
    if (again == entries_.end()) continue;
    session->park();
    if (again->second.cancel) again->second.cancel();
    parked_.emplace(key, std::move(again->second));
    entries_.erase(again);
  }
}

}  // namespace tt::server
