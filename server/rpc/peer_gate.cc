#include "server/rpc/peer_gate.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "server/rpc/acceptor.h"
#include "server/rpc/address.h"
#include "server/rpc/listening_sockets.h"

namespace tt::server {
namespace {

constexpr size_t kPerAddress = 4096;  // the ranks of one host

class PeerGate final : public distributed::ConnectionGate {
 public:
  PeerGate(std::unique_ptr<Acceptor> acceptor, int port, bool tls)
      : acceptor_(std::move(acceptor)), port_(port), tls_(tls) {}

  int port() const override { return port_; }
  void start(std::unique_ptr<Sink> sink) override {
    Acceptor::Sinks sinks;
    (tls_ ? sinks.tls : sinks.plain) = std::move(sink);
    acceptor_->start(std::move(sinks));
  }
  void stop() override { acceptor_->stop(); }
  void authenticated(const std::string& peer) override { acceptor_->authenticated(peer); }
  void refused(const std::string& peer) override { acceptor_->refused(peer); }

 private:
  const std::unique_ptr<Acceptor> acceptor_;
  const int port_;
  const bool tls_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<distributed::ConnectionGate>> open_peer_gate(const std::string& address, bool tls) {
  absl::StatusOr<Address> parsed = parse_address(address);
  if (!parsed.ok()) return parsed.status();
  std::vector<Address> addresses = {*parsed};
  absl::StatusOr<std::vector<ListeningSocket>> sockets = open_listening_sockets(&addresses);
  if (!sockets.ok()) return absl::UnavailableError(sockets.status().message());
  auto acceptor = std::make_unique<Acceptor>(*std::move(sockets), kPerAddress, tls);
  if (absl::Status status = acceptor->ok(); !status.ok()) return status;
  return std::make_unique<PeerGate>(std::move(acceptor), std::atoi(addresses[0].port.c_str()), tls);
}

}  // namespace tt::server
