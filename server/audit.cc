#include "server/audit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

constexpr size_t kMaxReason = 300;
constexpr absl::string_view kRefused = "call.refused";
// Lines of a principal: a burst, then one per interval. Refused calls, which may have no principal, are one more.
constexpr int kPrincipalBurst = 200, kRefusalBurst = 20;
constexpr std::chrono::milliseconds kPrincipalInterval{100}, kRefusalInterval{50};

int open_for_appending(const std::string& file) {
  return open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

}  // namespace

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::open(std::string file) {
  FileDescriptor fd(open_for_appending(file));
  if (!fd) {
    return absl::FailedPreconditionError(absl::StrCat("cannot write the audit log ", file, ": ", std::strerror(errno)));
  }
  auto log = std::make_unique<AuditLog>();
  log->file_ = std::move(file);
  MutexLock lock(log->mutex_);
  log->fd_ = std::move(fd);
  return log;
}

AuditLog::Limit::Limit(bool is_refusals)
    : rate(is_refusals ? kRefusalBurst : kPrincipalBurst, is_refusals ? kRefusalInterval : kPrincipalInterval) {}

AuditLog::~AuditLog() {
  MutexLock lock(mutex_);
  summarise(Clock::duration::zero());
}

void AuditLog::record(const Record& record) {
  MutexLock lock(mutex_);
  if (!fd_) return;
  const bool is_refusal = record.event == kRefused;
  Limit& limit = limits_.try_emplace({is_refusal, std::string(record.principal)}, is_refusal).first->second;
  if (record.is_limited && limit.rate.allow() < 0) {
    ++limit.left_out;
    limit.last = Clock::now();
    return;
  }
  append(record, std::exchange(limit.left_out, 0));
  summarise(std::chrono::seconds(1));
}

void AuditLog::summarise(Clock::duration quiet) {
  if (!fd_) return;
  for (auto& [key, limit] : limits_) {
    if (limit.left_out == 0 || Clock::now() - limit.last < quiet) continue;
    append({.event = "lines.left_out", .principal = key.second}, std::exchange(limit.left_out, 0));
  }
}

void AuditLog::refused(absl::string_view peer, const absl::Status& status) {
  record({.event = kRefused, .peer = peer, .outcome = status});
}

void AuditLog::reopen() {
  MutexLock lock(mutex_);
  if (!fd_) return;
  FileDescriptor fresh(open_for_appending(file_));
  if (fresh) {
    fd_ = std::move(fresh);
  } else {
    spdlog::error("cannot open the audit log {} again: {}", file_, std::strerror(errno));
  }
}

void AuditLog::append(const Record& record, int64_t left_out) {
  nlohmann::ordered_json line;
  line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  line["event"] = std::string(record.event);
  if (!record.principal.empty()) line["principal"] = std::string(record.principal);
  if (!record.peer.empty()) line["peer"] = std::string(record.peer);
  if (record.session != 0) line["session"] = record.session;
  line["outcome"] = absl::AsciiStrToLower(absl::StatusCodeToString(record.outcome.code()));
  const absl::string_view reason = record.reason.empty() ? record.outcome.message() : record.reason;
  if (!reason.empty()) line["reason"] = std::string(reason.substr(0, kMaxReason));
  if (left_out != 0) line["left_out"] = left_out;
  // Peers choose parts of some reasons: ASCII only, invalid UTF-8 is replaced.
  const std::string text = line.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  const bool written = write(fd_.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written && !failing_) spdlog::error("cannot write the audit log {}: {}", file_, std::strerror(errno));
  failing_ = !written;
}

}  // namespace tt::server
