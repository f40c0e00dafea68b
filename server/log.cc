#include "server/log.h"

#include <grpc/support/log.h>

#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace tt::server {
namespace {

// gRPC calls errors what is often an ordinary end of a connection: for those who look closely.
void take_grpc_line(gpr_log_func_args* line) {
  auto level = line->severity == GPR_LOG_SEVERITY_DEBUG ? spdlog::level::trace : spdlog::level::debug;
  spdlog::log(level, "grpc: {}", line->message);
}

}  // namespace

void start_log(const std::string& level) {
  auto logger = spdlog::stderr_color_mt("teletensord");
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%e %^%l%$ %v");
  spdlog::set_default_logger(logger);
  spdlog::set_level(spdlog::level::from_str(level));
  spdlog::flush_on(spdlog::level::info);
  gpr_set_log_function(&take_grpc_line);
}

}  // namespace tt::server
