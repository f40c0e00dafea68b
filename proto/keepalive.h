// Times after which the client and the engine detect that the other side is silent (a half-open connection).
//
// Each side sends an HTTP/2 ping when it has received nothing for kKeepaliveTime, and closes the connection if the
// answer does not arrive within kKeepaliveTimeout. For TCP connections, the kernel also closes them if it has sent data
// that were not acknowledged for this time. So a silent peer is detected after at most 5.5 s. The timeout leaves room
// for a ping behind several megabytes on a slow link, and for a process that does not run for seconds.
#pragma once

namespace tt {

inline constexpr int kKeepaliveTimeMilliseconds = 1'500;
inline constexpr int kKeepaliveTimeoutMilliseconds = 4'000;
// The engine accepts pings at this interval, and closes connections that ping faster. Pings may arrive closer together
// than they were sent.
inline constexpr int kMinPingIntervalMilliseconds = 300;
// gRPC answers pings, and notices their answers, only while some thread of the client polls a completion queue. An idle
// client polls at this interval.
inline constexpr int kIdlePollMilliseconds = 1'000;

}  // namespace tt
