// Http2Peer: a connection that speaks just enough HTTP/2 to misbehave: to leave messages unfinished, to read nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tt::server::testing {

class Http2Peer {
 public:
  using Metadata = std::vector<std::pair<std::string, std::string>>;

  static Http2Peer to_socket(const std::string& path);
  static Http2Peer to_port(int port);  // of 127.0.0.1
  Http2Peer(Http2Peer&& other) noexcept;
  ~Http2Peer();

  // Begins a call, and leaves it open. Gives its stream's number.
  uint32_t call(std::string_view method, const Metadata& metadata = {});
  // Sends as much of `bytes`, of which `sent` have gone already, as the windows allow. Gives the new `sent`.
  size_t send(uint32_t stream, std::string_view bytes, size_t sent = 0);
  // Reads what there is, waiting for up to `milliseconds` where there is nothing yet. False once the connection is
  // gone.
  bool read(int milliseconds);
  // Likewise, until no more than `open` calls have no end yet, or nothing comes for ten seconds.
  bool read_until_open(size_t open);

  size_t open_calls() const { return windows_.size(); }
  bool is_open(uint32_t stream) const { return windows_.count(stream) != 0; }
  bool connected() const { return fd_ >= 0; }

 private:
  explicit Http2Peer(int fd);
  void write(std::string_view bytes);
  void frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
  void take(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload);
  void close();

  int fd_;
  uint32_t next_stream_ = 1;
  int64_t window_ = 65535;               // the connection's
  int64_t initial_window_ = 65535;       // a stream's
  std::map<uint32_t, int64_t> windows_;  // of the calls that have not ended
  std::string received_;
};

// The prefix that gRPC puts before a message.
std::string message_prefix(uint32_t bytes, bool compressed = false);

}  // namespace tt::server::testing
