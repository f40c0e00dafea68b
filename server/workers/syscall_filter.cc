#include "server/workers/syscall_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tt::server {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr uint32_t kForeignCalls = 0x40000000;  // numbers of the x32 interface begin here
constexpr int kArchitectureCalls[] = {SYS_fork, SYS_vfork, SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_mknod};
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr uint32_t kForeignCalls = 0xffffffff;
constexpr int kArchitectureCalls[] = {SYS_acct};
#else
#error "add this architecture's calls that start processes"
#endif

constexpr int kRefused[] = {
    // programs and other processes
    SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_tkill,
    SYS_pidfd_send_signal, SYS_pidfd_getfd, SYS_process_madvise, SYS_personality,
    // file systems and namespaces
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_setns, SYS_unshare, SYS_open_tree, SYS_move_mount,
    SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_quotactl,
    SYS_swapon, SYS_swapoff, SYS_mknodat, SYS_fanotify_init,
    // the kernel
    SYS_kexec_load, SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_bpf,
    SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_add_key,
    SYS_request_key, SYS_keyctl, SYS_reboot, SYS_acct, SYS_syslog, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex,
    SYS_clock_adjtime, SYS_sethostname, SYS_setdomainname, SYS_vhangup, SYS_lookup_dcookie, SYS_nfsservctl,
    // users
    SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups, SYS_setfsuid,
    SYS_setfsgid, SYS_capset};

// Calls whose first argument is a process: allowed for this one, and if it is 0.
constexpr int kOwnProcessOnly[] = {SYS_kill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_prlimit64};

constexpr uint32_t kFamilies[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};

class Program {
 public:
  Program() {
    load(offsetof(seccomp_data, arch));
    skip_unless(BPF_JEQ, kArchitecture, 1);
    jump(1);
    result(SECCOMP_RET_KILL_PROCESS);
    load_number();
    skip_unless(BPF_JGE, kForeignCalls, 1);
    result(SECCOMP_RET_KILL_PROCESS);
  }
  void refuse(int call, int error = EPERM) {
    skip_unless(BPF_JEQ, static_cast<uint32_t>(call), 1);
    refuse_now(error);
  }
  // Allows the call only if its argument (its lower half) is one of the values.
  void allow_only(int call, size_t argument, std::initializer_list<uint32_t> values) {
    allow_only(call, argument, values.begin(), values.size());
  }
  void allow_only(int call, size_t argument, const uint32_t* values, size_t count) {
    skip_unless(BPF_JEQ, static_cast<uint32_t>(call), static_cast<uint8_t>(2 * count + 2));
    load(offsetof(seccomp_data, args) + 8 * argument);
    for (size_t i = 0; i < count; ++i) {
      skip_unless(BPF_JEQ, values[i], 1);
      result(SECCOMP_RET_ALLOW);
    }
    refuse_now(EPERM);
  }
  // Allows clone() for threads only.
  void allow_threads_only() {
    skip_unless(BPF_JEQ, SYS_clone, 4);
    load(offsetof(seccomp_data, args));
    skip_unless(BPF_JSET, CLONE_THREAD, 1);
    result(SECCOMP_RET_ALLOW);
    refuse_now(EPERM);
  }
  int install() {
    result(SECCOMP_RET_ALLOW);
    const sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
  }

 private:
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset), 0, 0); }
  void load_number() { load(offsetof(seccomp_data, nr)); }
  // Skips `count` instructions unless the comparison with the loaded value holds.
  void skip_unless(int comparison, uint32_t value, uint8_t count) {
    add(BPF_JMP | comparison | BPF_K, value, 0, count);
  }
  void jump(uint32_t count) { add(BPF_JMP | BPF_JA, count, 0, 0); }
  void result(uint32_t what) { add(BPF_RET | BPF_K, what, 0, 0); }
  void refuse_now(int error) { result(SECCOMP_RET_ERRNO | (static_cast<uint32_t>(error) & SECCOMP_RET_DATA)); }
  void add(int code, uint32_t value, uint8_t if_true, uint8_t if_false) {
    code_.push_back({static_cast<uint16_t>(code), if_true, if_false, value});
  }
  std::vector<sock_filter> code_;
};

}  // namespace

absl::Status install_syscall_filter() {
  Program program;
  for (int call : kRefused) program.refuse(call);
  for (int call : kArchitectureCalls) program.refuse(call);
  const auto own = static_cast<uint32_t>(getpid());
  for (int call : kOwnProcessOnly) program.allow_only(call, 0, {own, 0});
  program.allow_only(SYS_socket, 0, kFamilies, std::size(kFamilies));
  program.allow_threads_only();
  // Its flags are in memory, which a filter cannot read; libc then uses clone().
  program.refuse(SYS_clone3, ENOSYS);
  const int failed = program.install();
  if (failed == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("cannot filter system calls: ", failed > 0 ? "a thread has another filter" : std::strerror(errno)));
}

}  // namespace tt::server
