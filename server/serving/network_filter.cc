#include "server/serving/network_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace tt::server {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr uint32_t kForeignCalls = 0x40000000;  // numbers of the x32 interface begin here
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr uint32_t kForeignCalls = 0xffffffff;
#else
#error "add the number of this architecture"
#endif

constexpr sock_filter load(size_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
constexpr sock_filter result(uint32_t what) { return BPF_STMT(BPF_RET | BPF_K, what); }
constexpr sock_filter refuse(uint32_t error) { return result(SECCOMP_RET_ERRNO | error); }
// Skips the next instruction unless the loaded value is `value`.
constexpr sock_filter if_equal(uint32_t value) { return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1); }

constexpr sock_filter kFilter[] = {
    load(offsetof(seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
    result(SECCOMP_RET_KILL_PROCESS),
    load(offsetof(seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kForeignCalls, 0, 1),
    result(SECCOMP_RET_KILL_PROCESS),
    if_equal(SYS_io_uring_setup),  // which opens sockets, too
    refuse(ENOSYS),
    if_equal(SYS_ptrace),
    refuse(EPERM),
    if_equal(SYS_process_vm_readv),
    refuse(EPERM),
    if_equal(SYS_process_vm_writev),
    refuse(EPERM),
    if_equal(SYS_pidfd_getfd),
    refuse(EPERM),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0),
    result(SECCOMP_RET_ALLOW),
    load(offsetof(seccomp_data, args)),
    if_equal(AF_UNIX),
    result(SECCOMP_RET_ALLOW),
    refuse(EAFNOSUPPORT),
};

}  // namespace

bool refuse_network() {
  const sock_fprog program{static_cast<unsigned short>(std::size(kFilter)), const_cast<sock_filter*>(kFilter)};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

}  // namespace tt::server
