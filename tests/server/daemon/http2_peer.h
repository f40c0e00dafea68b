// Http2Peer: a minimal HTTP/2 client that can violate the protocol: leaves messages unfinished, or reads nothing.
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
  static Http2Peer to_port(int port);  // on 127.0.0.1
  Http2Peer(Http2Peer&& other) noexcept;
  ~Http2Peer();

  // Starts a call and leaves it open. Returns the stream id.
  uint32_t call(std::string_view method, const Metadata& metadata = {});
  // Sends as much of `bytes` from offset `sent` as the flow-control windows allow. Returns the new offset.
  size_t send(uint32_t stream, std::string_view bytes, size_t sent = 0);
  // Reads available data; waits up to `milliseconds` for the first. Returns false once the connection is closed.
  bool read(int milliseconds);
  // Reads until at most `open` calls are unfinished, or no call ends for a minute (the longest limit of a call is 10 s).
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
  int64_t window_ = 65535;               // flow-control window of the connection
  int64_t initial_window_ = 65535;       // initial window of a stream
  std::map<uint32_t, int64_t> windows_;  // windows of unfinished calls, by stream id
  std::string received_;
};

// The prefix of a gRPC message.
std::string message_prefix(uint32_t bytes, bool compressed = false);

}  // namespace tt::server::testing
