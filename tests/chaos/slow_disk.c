// Makes writes to files below TELETENSOR_CHAOS_DISK slow, for a daemon that loads this library by LD_PRELOAD.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static const useconds_t kDelay = 50000;  // microseconds for each call

static void delay(int file) {
  const char* disk = getenv("TELETENSOR_CHAOS_DISK");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (disk == NULL || size < 0) return;
  path[size] = '\0';
  if (strncmp(path, disk, strlen(disk)) == 0) usleep(kDelay);
}

#define SLOW(result, name, parameters, ...)                                   \
  result name parameters {                                                    \
    result(*next) parameters = (result(*) parameters)dlsym(RTLD_NEXT, #name); \
    delay(file);                                                              \
    return next(__VA_ARGS__);                                                 \
  }

SLOW(ssize_t, write, (int file, const void* bytes, size_t size), file, bytes, size)
SLOW(ssize_t, pwrite, (int file, const void* bytes, size_t size, off_t at), file, bytes, size, at)
SLOW(ssize_t, pwrite64, (int file, const void* bytes, size_t size, off_t at), file, bytes, size, at)
SLOW(ssize_t, writev, (int file, const struct iovec* parts, int count), file, parts, count)
SLOW(int, fsync, (int file), file)
SLOW(int, fdatasync, (int file), file)
