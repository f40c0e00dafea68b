// Limits of HTTP/2 connections, enforced where gRPC receives their bytes.
//
// gRPC has no interface between its sockets and its HTTP/2 transport. Therefore the executable defines recvmsg() and
// SSL_read(), which precede those of the C library and of OpenSSL in the search order of the dynamic linker: gRPC, also
// as a shared library, calls ours, which call theirs and examine what was received. Nothing is copied. Each connection
// whose peer begins with HTTP/2's preface is limited by an Http2Meter, over TCP, unix sockets and TLS (after
// decryption); one that exceeds a limit receives an error, upon which gRPC closes it. Other sockets are not affected.
//
// Until a call is authenticated, a TCP connection also has a budget of bytes, frames and header bytes per 10 seconds.
// Beyond it nothing is read, so that the bytes stay in the kernel and the peer has to wait. A client that sent more
// than the budget before its first call was authenticated may wait until the call fails: gRPC was seen not to read on
// when the limit was lifted. gRPC's clients do not, because a connection's flow-control window is smaller at first. The
// peers of unix sockets have no such budget: the socket's folder excludes other users. With TLS the budget counts
// encrypted bytes, and no frames. Thread-safe.
#pragma once

#include <cstdint>

namespace tt::server {

// The budget of HTTP/2 connections without a token, and the interval after which it begins again.
inline constexpr uint64_t kFirstBytes = 256 << 10, kFirstHeaderBytes = 64 << 10, kFirstFrames = 4096;
inline constexpr int kFirstSeconds = 10;

// Limits what is read from a socket to `bytes` per interval, until lift_limit() or the socket is closed.
void limit_first_bytes(int fd, uint64_t bytes = kFirstBytes);
// `fd` must be the same socket still.
void lift_limit(int fd);

}  // namespace tt::server
