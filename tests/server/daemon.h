// Daemon: runs a teletensord of the build as a child process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"

namespace tt::server::testing {

// A folder that is removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class Daemon {
 public:
  // Starts a daemon that listens on a unix socket in a temporary folder; waits until it listens or exits.
  // `descriptors`: the limit of open files; 0: this process's limit.
  explicit Daemon(std::vector<std::string> flags = {}, int descriptors = 0);
  ~Daemon();  // kills the daemon if it still runs

  std::string socket() const { return folder_.path() / "engine.sock"; }
  std::string token() const;
  std::string admin_token() const;
  // The port on 127.0.0.1, if the flags specify one.
  int port() const;
  std::shared_ptr<grpc::Channel> channel() const;
  // Adds the user token to a call's metadata.
  void authorize(grpc::ClientContext* context) const;
  // Adds the admin token.
  void administer(grpc::ClientContext* context) const;
  uint64_t resident_bytes() const;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  void close_stdin();
  // The exit code; -1 if the daemon does not exit in time, or is killed by a signal.
  int exit_code(std::chrono::milliseconds timeout);
  // The output so far; complete after the daemon has exited.
  std::string standard_output() const;
  std::string standard_error() const;

 private:
  std::string read(const char* name) const;

  TemporaryFolder folder_;
  pid_t pid_ = -1;
  int stdin_ = -1;
};

}  // namespace tt::server::testing
