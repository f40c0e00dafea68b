// link_relay: a Relay as a program. Prints the address at which it listens, then executes the commands of its standard
// input, one per line, and answers each with one line. Exits when the input ends.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/relay/relay.h"

namespace tt::relay {
namespace {

constexpr char kFooter[] = R"(
VALUE[,VALUE]: towards the target, and towards the client if that differs.

Commands:
  stall, resume       hold all bytes and accept no connection; continue
  lose                make the existing connections silent for ever
  cut                 break all connections
  cut-after N         break them when N more bytes have been forwarded to the target
  cut-every N         break them repeatedly, each time after a random number of bytes, N on average; 0: no longer
  refuse, accept      refuse connections; accept them again
  stats               print the number of connections, and bytes and reads of each direction, as JSON)";

struct Flags {
  Options options;
  std::vector<double> delay, jitter, connection_delay, rate, queue{5};
};

void add_options(CLI::App& app, Flags* flags) {
  app.add_option("target", flags->options.target, "unix:PATH or HOST:PORT")->required();
  app.add_option("--listen", flags->options.listen, "unix:PATH or HOST:PORT")->capture_default_str();
  app.add_option("--seed", flags->options.seed, "of the random numbers")->capture_default_str();
  const auto add = [&](const char* name, std::vector<double>* values, const char* text) {
    app.add_option(name, *values, text)
        ->delimiter(',')
        ->expected(1, 2)
        ->allow_extra_args(false)
        ->check(CLI::NonNegativeNumber)
        ->type_name("VALUE[,VALUE]");
  };
  add("--delay", &flags->delay, "milliseconds");
  add("--jitter", &flags->jitter, "milliseconds; each chunk is delayed by up to this much more");
  add("--connection-delay", &flags->connection_delay,
      "milliseconds; each connection is delayed by up to this much more");
  add("--rate", &flags->rate, "megabits per second; 0: unlimited");
  add("--queue", &flags->queue, "milliseconds that a byte may wait for a link with a limited rate (default: 5)");
}

double value(const std::vector<double>& values, size_t direction, double scale) {
  return values.empty() ? 0 : values[std::min(direction, values.size() - 1)] * scale;
}

std::string stats(const Relay& relay) {
  const auto traffic = relay.traffic();
  const Traffic& up = traffic[kToTarget];
  const Traffic& down = traffic[kToClient];
  return absl::StrFormat(R"({"connections": %d, "bytes": [%d, %d], "reads": [%d, %d]})", relay.connections(), up.bytes,
                         down.bytes, up.chunks, down.chunks);
}

// Executes a command and returns the answer.
std::string execute(Relay& relay, const std::string& line) {
  std::istringstream words(line);
  std::string name, rest;
  words >> name;
  const auto count = [&] {
    uint64_t bytes = 0;
    if (!(words >> bytes)) throw std::invalid_argument("expected a number of bytes after " + name);
    return bytes;
  };
  if (name == "stats") return stats(relay);
  if (name == "stall") {
    relay.stall();
  } else if (name == "resume") {
    relay.resume();
  } else if (name == "lose") {
    relay.lose();
  } else if (name == "cut") {
    relay.cut();
  } else if (name == "cut-after") {
    relay.cut_after(kToTarget, count());
  } else if (name == "cut-every") {
    relay.cut_every(count());
  } else if (name == "refuse" || name == "accept") {
    relay.refuse(name == "refuse");
  } else {
    throw std::invalid_argument("unknown command '" + name + "'");
  }
  return "ok";
}

int run(int argc, char** argv) {
  CLI::App app{"link_relay: forwards connections under the conditions of a network"};
  app.footer(kFooter);
  Flags flags;
  add_options(app, &flags);
  CLI11_PARSE(app, argc, argv);
  for (size_t d = 0; d < kDirections; ++d) {
    flags.options.conditions[d] = {.delay = value(flags.delay, d, 1e-3),
                                   .jitter = value(flags.jitter, d, 1e-3),
                                   .connection_delay = value(flags.connection_delay, d, 1e-3),
                                   .rate = value(flags.rate, d, 1e6 / 8),
                                   .queue = value(flags.queue, d, 1e-3)};
  }
  try {
    Relay relay(flags.options);
    std::cout << relay.address() << std::endl;
    for (std::string line; std::getline(std::cin, line);) {
      try {
        std::cout << execute(relay, line) << std::endl;
      } catch (const std::exception& error) {
        std::cout << "error: " << error.what() << std::endl;
      }
    }
  } catch (const std::exception& error) {
    std::cerr << "link_relay: " << error.what() << std::endl;
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tt::relay

int main(int argc, char** argv) { return tt::relay::run(argc, argv); }
