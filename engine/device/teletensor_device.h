/* teletensor_device.h: the interface of a device library, which adds a type of devices to teletensord.
 *
 * A device library is a shared object that the engine's operator names with `teletensord --devices FILE.so`. It exports
 * one function, teletensor_device_table(), which returns a table of functions and kernels. This header is plain C99 and
 * includes only the standard library; a device library links nothing of teletensor.
 *
 * Every function returns TELETENSOR_DEVICE_OK or another status, and may then store a message of at most `error->size`
 * bytes (with the terminating zero) in `error->text`. A C++ library must not throw; an exception that leaves a function
 * becomes the error of the operation. The functions may be called by any thread, at the same time, except that one
 * stream is used by one thread at a time.
 *
 * Order: work of a stream is executed in the order of the calls, and may be executed after they have returned. A copy
 * between the host and the device need not be complete when it returns either; the engine waits for the stream before
 * it reads or reuses the host's memory. Memory that the engine frees is used again by work in the same stream only, or
 * after an event that was recorded later.
 *
 * Addresses: an address of the device's memory is a number of the library's choice that arithmetic on bytes applies to:
 * ADDRESS + 8 is the eighth byte. It need not be readable by the CPU, but no memory of the process that the library did
 * not allocate may have the same address. It is a multiple of 64, and neither 0 nor beyond 2^63 - 1.
 *
 * Trust: the library runs in the engine's process with its rights. The engine checks what the library returns, so that
 * a library for another version, without a function, or that fails, is refused or fails an operation; it cannot check
 * what the library writes to.
 */
#ifndef TELETENSOR_DEVICE_H_
#define TELETENSOR_DEVICE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library is loaded if its table has the engine's version. Later versions may add
 * members at the ends of the structures, whose sizes say which members are present. */
#define TELETENSOR_DEVICE_ABI 1

enum {
  TELETENSOR_DEVICE_OK = 0,
  TELETENSOR_DEVICE_FAILED = 1,     /* the operation fails with the message */
  TELETENSOR_DEVICE_NO_MEMORY = 2,  /* out of memory: the engine frees caches and tries again once */
  TELETENSOR_DEVICE_UNSUPPORTED = 3 /* from a kernel, before it has enqueued anything: the CPU executes the call */
};

enum {
  TELETENSOR_DEVICE_BOOL = 0, /* one byte: 0 or 1 */
  TELETENSOR_DEVICE_UINT8 = 1,
  TELETENSOR_DEVICE_INT8 = 2,
  TELETENSOR_DEVICE_INT16 = 3,
  TELETENSOR_DEVICE_INT32 = 4,
  TELETENSOR_DEVICE_INT64 = 5,
  TELETENSOR_DEVICE_FLOAT16 = 6,
  TELETENSOR_DEVICE_BFLOAT16 = 7,
  TELETENSOR_DEVICE_FLOAT32 = 8,
  TELETENSOR_DEVICE_FLOAT64 = 9
  /* The engine has more dtypes, whose numbers follow. Kernels get those of TeletensorDeviceOperator.dtypes only. */
};

typedef struct TeletensorDeviceError {
  char* text;
  size_t size;
} TeletensorDeviceError;

typedef struct TeletensorDeviceProperties {
  uint32_t size;         /* of this structure, set by the engine */
  char name[128];        /* "Example device" */
  uint64_t total_memory; /* bytes; the engine allocates no more for tensors */
} TeletensorDeviceProperties;

/* A tensor on the device. */
typedef struct TeletensorDeviceTensor {
  void* data;    /* the address of the first element */
  int32_t dtype; /* TELETENSOR_DEVICE_FLOAT32, ... */
  int32_t dims;
  const int64_t* sizes;   /* `dims` numbers */
  const int64_t* strides; /* `dims` numbers, in elements; 0 for a repeated dimension */
} TeletensorDeviceTensor;

/* Kinds of arguments. A parameter for a tensor may also get a number: a zero-dim tensor of the host is passed as one,
 * so that a kernel checks the kind before it reads `tensors`. */
enum {
  TELETENSOR_DEVICE_NONE = 0,     /* an omitted optional argument */
  TELETENSOR_DEVICE_TENSOR = 1,   /* tensors[0] */
  TELETENSOR_DEVICE_TENSORS = 2,  /* tensors, count; an omitted tensor has a dtype of -1 */
  TELETENSOR_DEVICE_INTEGER = 3,  /* integer; also a bool, a dtype (as above), and an integer passed for a tensor */
  TELETENSOR_DEVICE_REAL = 4,     /* real; also a number passed for a tensor */
  TELETENSOR_DEVICE_INTEGERS = 5, /* integers, count */
  TELETENSOR_DEVICE_REALS = 6,    /* reals, count */
  TELETENSOR_DEVICE_STRING = 7    /* string, count; not terminated */
};

typedef struct TeletensorDeviceArgument {
  int32_t kind;
  uint32_t count;
  const TeletensorDeviceTensor* tensors;
  int64_t integer;
  double real;
  const int64_t* integers;
  const double* reals;
  const char* string;
} TeletensorDeviceArgument;

/* A call of an operator. Everything it points to exists until the kernel returns. */
typedef struct TeletensorDeviceCall {
  uint32_t size; /* of this structure */
  int32_t device;
  void* stream;           /* in which the kernel enqueues its work */
  const char* name;       /* of the operator */
  uint32_t num_arguments; /* of the operator's signature, in its order */
  uint32_t num_outputs;
  const TeletensorDeviceArgument* arguments;
  /* The results, allocated. They share no element with an argument, except that an output of an operator of the kind
   * "pointwise" may have exactly an argument's elements (x.add_(y)). Without TELETENSOR_DEVICE_STRIDED they are
   * contiguous. */
  const TeletensorDeviceTensor* outputs;
  int32_t compute_dtype; /* of a pointwise operator: the dtype in which it computes */
} TeletensorDeviceCall;

typedef int32_t (*TeletensorDeviceKernel)(const TeletensorDeviceCall* call, TeletensorDeviceError* error);

enum {
  /* The kernel accepts tensors with any strides. Otherwise it gets contiguous ones, and other calls of it copy first.
   */
  TELETENSOR_DEVICE_STRIDED = 1,
  /* Of a pointwise operator: every tensor argument has the sizes of the output (repeated dimensions have a stride of 0,
   * or with contiguous tensors are copied), and all tensors have one dtype. Other calls are executed by the CPU. */
  TELETENSOR_DEVICE_ELEMENTWISE = 2
};

typedef struct TeletensorDeviceOperator {
  const char* name; /* "add"; the operators are in docs/operators.md */
  uint32_t
      num_arguments; /* of its signature there; if the engine's has another number, the CPU executes the operator */
  uint32_t flags;
  uint32_t dtypes; /* bit 1 << TELETENSOR_DEVICE_FLOAT32, ...: the dtypes of tensors that the kernel accepts */
  TeletensorDeviceKernel kernel;
} TeletensorDeviceOperator;

typedef struct TeletensorDeviceTable {
  uint32_t abi;        /* TELETENSOR_DEVICE_ABI */
  uint32_t size;       /* sizeof(TeletensorDeviceTable) */
  const char* name;    /* of the device type: "mydev", as in torch.device("mydev:0") */
  const char* version; /* of the library, for `teletensor status` */

  int32_t (*device_count)(int32_t* count, TeletensorDeviceError* error); /* called once */
  int32_t (*properties)(int32_t device, TeletensorDeviceProperties* properties, TeletensorDeviceError* error);
  /* The device's memory that is free now, in bytes. May be null. */
  int32_t (*free_memory)(int32_t device, uint64_t* bytes, TeletensorDeviceError* error);

  /* Allocates and frees segments, which the engine divides into tensors. A segment is a multiple of 2 MiB. */
  int32_t (*allocate)(int32_t device, uint64_t bytes, void** address, TeletensorDeviceError* error);
  int32_t (*release)(int32_t device, void* address, uint64_t bytes, TeletensorDeviceError* error);

  int32_t (*create_stream)(int32_t device, void** stream, TeletensorDeviceError* error);
  /* Waits for the stream's work. Returns the first failure of its work since the last call, which the engine raises. */
  int32_t (*synchronize_stream)(int32_t device, void* stream, TeletensorDeviceError* error);
  int32_t (*synchronize_device)(int32_t device, TeletensorDeviceError* error);

  int32_t (*create_event)(int32_t device, void** event, TeletensorDeviceError* error);
  int32_t (*destroy_event)(int32_t device, void* event, TeletensorDeviceError* error);
  int32_t (*record_event)(int32_t device, void* event, void* stream, TeletensorDeviceError* error); /* once per event */
  /* Later work in the stream starts after the event, which may be one of another device of the library. */
  int32_t (*wait_event)(int32_t device, void* stream, void* event, TeletensorDeviceError* error);
  int32_t (*query_event)(int32_t device, void* event, int32_t* done, TeletensorDeviceError* error);
  int32_t (*synchronize_event)(int32_t device, void* event, TeletensorDeviceError* error);
  /* The milliseconds between two events that are done. May be null. */
  int32_t (*elapsed)(int32_t device, void* from, void* to, double* milliseconds, TeletensorDeviceError* error);

  int32_t (*copy_to_device)(int32_t device, void* stream, void* to, const void* from, uint64_t bytes,
                            TeletensorDeviceError* error);
  int32_t (*copy_to_host)(int32_t device, void* stream, void* to, const void* from, uint64_t bytes,
                          TeletensorDeviceError* error);
  /* Copies within the device, or from another device of the library. */
  int32_t (*copy_on_device)(int32_t device, void* stream, void* to, const void* from, uint64_t bytes,
                            TeletensorDeviceError* error);
  int32_t (*zero)(int32_t device, void* stream, void* to, uint64_t bytes, TeletensorDeviceError* error);

  uint32_t operator_size; /* sizeof(TeletensorDeviceOperator) */
  uint32_t num_operators;
  const TeletensorDeviceOperator* operators;
} TeletensorDeviceTable;

/* Exported by the library. `abi` is the engine's TELETENSOR_DEVICE_ABI; a library may return null for versions that it
 * does not support. The table exists as long as the process. */
const TeletensorDeviceTable* teletensor_device_table(uint32_t abi);

#ifdef __cplusplus
}
#endif

#endif /* TELETENSOR_DEVICE_H_ */
