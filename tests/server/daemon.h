// Daemon: a teletensord of the build, as a process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"

namespace tt::server::testing {

// A folder that goes with the test.
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
  // Starts it, listening on a unix socket in a folder of its own, and waits until it does (unless it ends before).
  // `descriptors`: how many files it may have open; 0: as many as this process.
  explicit Daemon(std::vector<std::string> flags = {}, int descriptors = 0);
  ~Daemon();  // kills it where it still runs

  std::string socket() const { return folder_.path() / "engine.sock"; }
  std::string token() const;
  std::string admin_token() const;
  // Of 127.0.0.1, where the flags have it listen there.
  int port() const;
  std::shared_ptr<grpc::Channel> channel() const;
  // Metadata that lets a call in.
  void authorize(grpc::ClientContext* context) const;
  // The same with the admin token.
  void administer(grpc::ClientContext* context) const;
  uint64_t resident_bytes() const;

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  void close_stdin();
  // The exit code, or -1 where it does not end in time (or by a signal).
  int exit_code(std::chrono::milliseconds timeout);
  // What it has written; complete once it has ended.
  std::string standard_output() const;
  std::string standard_error() const;

 private:
  std::string read(const char* name) const;

  TemporaryFolder folder_;
  pid_t pid_ = -1;
  int stdin_ = -1;
};

}  // namespace tt::server::testing
