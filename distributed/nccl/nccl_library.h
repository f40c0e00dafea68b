// NcclLibrary: the functions of NCCL that collectives use, opened at run time.
//
// The declarations repeat nccl.h (https://github.com/NVIDIA/nccl/blob/v2.14.3-1/src/nccl.h.in) for the functions used
// here, so that no header is needed to compile; later versions keep them compatible.
#pragma once

#include <array>
#include <cstddef>
#include <string>

namespace tt::distributed::nccl {

using Comm = void*;    // ncclComm_t
using Stream = void*;  // cudaStream_t
struct UniqueId {      // ncclUniqueId
  char internal[128];
};

enum Result : int {  // ncclResult_t; further values are errors too
  kSuccess = 0,
  kInProgress = 7,
};
enum DataType : int {  // ncclDataType_t
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
};
enum RedOp : int {  // ncclRedOp_t
  kSum = 0,
  kProd = 1,
  kMax = 2,
  kMin = 3,
  kAvg = 4,
};

// ncclConfig_t of version 2.14, which later versions accept as the beginning of theirs.
struct Config {
  size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21'400;
  int blocking = 0;
};

struct Library {
  int version = 0;  // 22703 is 2.27.3
  Result (*get_unique_id)(UniqueId*);
  Result (*comm_init_rank_config)(Comm*, int size, UniqueId, int rank, Config*);
  Result (*comm_finalize)(Comm);
  Result (*comm_destroy)(Comm);
  Result (*comm_abort)(Comm);
  Result (*comm_get_async_error)(Comm, Result*);
  const char* (*get_error_string)(Result);
  const char* (*get_last_error)(Comm);
  Result (*group_start)();
  Result (*group_end)();
  Result (*all_reduce)(const void*, void*, size_t count, DataType, RedOp, Comm, Stream);
  Result (*reduce)(const void*, void*, size_t count, DataType, RedOp, int root, Comm, Stream);
  Result (*broadcast)(const void*, void*, size_t count, DataType, int root, Comm, Stream);
  Result (*all_gather)(const void*, void*, size_t count, DataType, Comm, Stream);
  Result (*reduce_scatter)(const void*, void*, size_t count, DataType, RedOp, Comm, Stream);
  Result (*send)(const void*, size_t count, DataType, int peer, Comm, Stream);
  Result (*recv)(void*, size_t count, DataType, int peer, Comm, Stream);
};

// Opens libnccl.so.2 at the first call; it stays open. Null if it is missing, is older than 2.14 or lacks a function;
// `why` is then a one-line reason. Thread-safe.
const Library* library(std::string* why);

// Returns the UUID of a GPU (cuDeviceGetUuid), by which ranks that share a GPU are detected; null if the driver does
// not report it. Thread-safe.
using Uuid = std::array<char, 16>;
bool device_uuid(int index, Uuid* uuid);

}  // namespace tt::distributed::nccl
