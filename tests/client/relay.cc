#include "tests/client/relay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

namespace tt::client::testing {
namespace {

sockaddr_un named(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return address;
}

}  // namespace

Relay::Relay(std::string from, std::string to) : from_(std::move(from)), to_(std::move(to)) {
  listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = named(from_);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  listen(listener_, 8);
  accepting_ = std::thread([this] { accept_all(); });
}

Relay::~Relay() {
  end();
  for (std::thread& thread : threads_) thread.join();
  for (int s : sockets_) close(s);
  close(listener_);
  unlink(from_.c_str());
}

void Relay::cut() {
  std::lock_guard lock(mutex_);
  for (int s : sockets_) ::shutdown(s, SHUT_RDWR);
}

void Relay::end() {
  ::shutdown(listener_, SHUT_RDWR);
  if (accepting_.joinable()) accepting_.join();
  cut();
}

void Relay::accept_all() {
  for (int in; (in = accept(listener_, nullptr, nullptr)) >= 0;) {
    int out = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = named(to_);
    if (::connect(out, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
      close(in);
      close(out);
      continue;
    }
    ++connections_;
    std::lock_guard lock(mutex_);
    sockets_.insert(sockets_.end(), {in, out});
    threads_.emplace_back([this, in, out] { forward(in, out); });
    threads_.emplace_back([this, in, out] { forward(out, in); });
  }
}

void Relay::forward(int from, int to) {
  char buffer[16384];
  for (ssize_t n; (n = recv(from, buffer, sizeof(buffer), 0)) > 0;) {
    for (ssize_t sent = 0, part; sent < n; sent += part) {
      part = send(to, buffer + sent, static_cast<size_t>(n - sent), MSG_NOSIGNAL);
      if (part <= 0) return;
    }
  }
  ::shutdown(to, SHUT_RDWR);
}

}  // namespace tt::client::testing
