#include "tests/client/daemon.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "client/connection/private_engine.h"

namespace tt::client::testing {
namespace {

// Waits until a process listens at `path`.
bool accepts(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  for (int i = 0; i < 10'000; ++i) {
    int probe = ::socket(AF_UNIX, SOCK_STREAM, 0);
    bool connected = ::connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
    close(probe);
    if (connected) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

}  // namespace

Daemon::Daemon(std::vector<std::string> arguments) {
  folder_ = ::testing::TempDir() + "/daemon-XXXXXX";
  EXPECT_TRUE(mkdtemp(folder_.data()));
  std::vector<std::string> words = {PrivateEngine::find_binary(), "--listen",    address(), "--token-file",
                                    folder_ + "/token",           "--log-level", "error"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // the daemon ends if the test crashes
    execv(argv[0], argv.data());
    _exit(127);
  }
  EXPECT_TRUE(accepts(socket())) << "teletensord did not become ready";
}

Daemon::~Daemon() {
  if (pid_ > 0) kill_now();  // clean shutdown is tested in tests/server
  std::filesystem::remove_all(folder_);
}

std::string Daemon::token() const {
  std::string token;
  std::ifstream(folder_ + "/token") >> token;
  return token;
}

void Daemon::kill_now() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void Daemon::stop_running() {
  kill(pid_, SIGSTOP);
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/task")) {
    std::string line;
    do {
      std::ifstream file(thread.path() / "stat");
      std::getline(file, line);
    } while (!line.empty() && line.compare(line.rfind(')') + 2, 1, "T") != 0);
  }
}

teletensor::v1::StatusReply Daemon::status() const {
  auto admin = teletensor::v1::Admin::NewStub(grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + token());
  teletensor::v1::StatusReply reply;
  grpc::Status status = admin->Status(&context, {}, &reply);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return reply;
}

}  // namespace tt::client::testing
