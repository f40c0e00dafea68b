#include "server/log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

constexpr size_t kMaxLine = 500;

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

// Prevents text from clients from starting a new line or controlling a terminal.
std::string one_line(absl::string_view text) {
  std::string line(text.substr(0, kMaxLine));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

}  // namespace

void start_log(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("teletensord");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::from_str(level));
  spdlog::flush_on(spdlog::level::info);
  gpr_set_log_function(&log_grpc_message);
  google::protobuf::SetLogHandler(&log_protobuf_message);
}

void LogLimit::write(bool warning, absl::string_view text) {
  const auto level = warning ? spdlog::level::warn : spdlog::level::info;
  if (!spdlog::should_log(level)) return;
  const int64_t dropped = allow(Clock::now());
  if (dropped < 0) return;
  spdlog::log(level, "{}{}", one_line(text),
              dropped == 0 ? "" : absl::StrCat(" (", dropped, " similar lines were dropped)"));
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
