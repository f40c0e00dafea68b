// Relay: forwards connections of one unix socket to another, until it is cut.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tt::client::testing {

class Relay {
 public:
  // Listens at `from` and forwards each connection to the socket at `to`.
  Relay(std::string from, std::string to);
  ~Relay();
  // Breaks all existing connections; continues to accept new ones.
  void cut();
  // Breaks all existing connections and accepts no more.
  void end();
  int connections() const { return connections_; }

 private:
  void accept_all();
  void forward(int from, int to);

  std::string from_, to_;
  int listener_;
  std::atomic<int> connections_{0};
  std::mutex mutex_;
  std::vector<int> sockets_;  // open ones
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace tt::client::testing
