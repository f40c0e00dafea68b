#include "server/log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/text.h"
#include "spdlog/formatter.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

constexpr size_t kMaxLine = 500;
constexpr size_t kMaxJsonMessage = 8 << 10;  // of other lines

// The subject of the line that this thread writes. The logger is synchronous, so its formatter runs during the call.
thread_local const LogSubject* current_subject = nullptr;

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& into) override {
    const auto level = spdlog::level::to_string_view(message.level);
    const absl::string_view text(message.payload.data(), message.payload.size());
    nlohmann::ordered_json line;
    line["time"] = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(message.time), absl::UTCTimeZone());
    line["level"] = std::string(level.data(), level.size());
    line["message"] = std::string(text.substr(0, kMaxJsonMessage));
    if (text.size() > kMaxJsonMessage) line["left_out_bytes"] = text.size() - kMaxJsonMessage;
    if (const LogSubject* subject = current_subject) {
      if (subject->session != 0) line["session"] = subject->session;
      if (!subject->principal.empty()) line["principal"] = std::string(subject->principal);
      if (!subject->peer.empty()) line["peer"] = std::string(subject->peer);
    }
    // ASCII only, because some readers also end lines at U+2028; invalid UTF-8 is replaced.
    const std::string json = line.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
    into.append(json.data(), json.data() + json.size());
    into.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

// gRPC reports the ordinary end of a connection as an error, so its messages are logged at level debug or trace.
void log_grpc_message(gpr_log_func_args* line) {
  auto level = line->severity == GPR_LOG_SEVERITY_DEBUG ? spdlog::level::trace : spdlog::level::debug;
  spdlog::log(level, "grpc: {}", line->message);
}

// protobuf's errors concern bytes that a client sent. The client receives an error too, so all but fatal errors are
// logged at level debug.
void log_protobuf_message(google::protobuf::LogLevel level, const char*, int, const std::string& text) {
  const bool fatal = level == google::protobuf::LOGLEVEL_FATAL;
  spdlog::log(fatal ? spdlog::level::err : spdlog::level::debug, "protobuf: {}", text);
}

// Writes a line's text escaped: clients choose parts of it, which must not start a new line or control a terminal.
class PrintableText final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& into) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    into.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<PrintableText>(); }
};

}  // namespace

void start_log(const std::string& level, LogFormat format) {
  auto logger = spdlog::stderr_color_mt("teletensord");
  if (format == LogFormat::kJson) {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    auto formatter = std::make_unique<spdlog::pattern_formatter>();
    formatter->add_flag<PrintableText>('*').set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %*");
    logger->set_formatter(std::move(formatter));
  }
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::from_str(level));
  spdlog::flush_on(spdlog::level::info);
  gpr_set_log_function(&log_grpc_message);
  google::protobuf::SetLogHandler(&log_protobuf_message);
}

void log_line(LogLevel level, const LogSubject& subject, absl::string_view text) {
  current_subject = &subject;
  spdlog::log(to_spdlog(level), "{}", std::string_view(text.data(), text.size()));
  current_subject = nullptr;
}

void LogLimit::write(LogLevel level, absl::string_view text, const LogSubject& subject) {
  if (!spdlog::should_log(to_spdlog(level))) return;
  const int64_t dropped = allow(Clock::now());
  if (dropped < 0) return;
  log_line(level, subject,
           absl::StrCat(printable(text, kMaxLine),
                        dropped == 0 ? "" : absl::StrCat(" (", dropped, " similar lines were dropped)")));
}

int64_t LogLimit::allow(Clock::time_point now) {
  MutexLock lock(mutex_);
  const auto earned = (now - refilled_) / interval_;
  if (earned > 0) {
    left_ = static_cast<int>(std::min<int64_t>(burst_, left_ + earned));
    refilled_ += earned * interval_;
  }
  if (left_ == 0) return ++dropped_, -1;
  --left_;
  return std::exchange(dropped_, 0);
}

}  // namespace tt::server
