/* teletensor_operator.h: operators of a shared object that teletensord loads (--operators DIR).
 *
 * The stable interface between the daemon and such a library: plain C99, no dependency, one file. A library exports
 * one function, teletensor_operators(), which returns the table of its operators. Every string is UTF-8 and, like every
 * table, must stay valid as long as the process. docs/cpp-operators.md explains all parts with an example.
 *
 * Threads: rules and kernels are called by many sessions' threads at the same time. Errors: call `host->fail` and
 * return a value other than 0. A C++ exception that leaves a function is caught by the daemon and becomes the error of
 * the call. Code of a library runs inside the daemon: it can do whatever the daemon can.
 */
#ifndef TELETENSOR_OPERATOR_H_
#define TELETENSOR_OPERATOR_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A daemon refuses a library of another version. Members are only appended to the tables of one version; `size` says
 * how many a table has. */
#define TELETENSOR_OPERATOR_ABI 1

/* Element types. A complex number is two numbers of half its size, a bool a byte that is 0 or 1. */
typedef enum teletensor_dtype {
  TELETENSOR_BOOL = 0,
  TELETENSOR_UINT8 = 1,
  TELETENSOR_INT8 = 2,
  TELETENSOR_INT16 = 3,
  TELETENSOR_INT32 = 4,
  TELETENSOR_INT64 = 5,
  TELETENSOR_FLOAT16 = 6,
  TELETENSOR_BFLOAT16 = 7,
  TELETENSOR_FLOAT32 = 8,
  TELETENSOR_FLOAT64 = 9,
  TELETENSOR_COMPLEX64 = 10,
  TELETENSOR_COMPLEX128 = 11,
  TELETENSOR_UINT16 = 12,
  TELETENSOR_UINT32 = 13,
  TELETENSOR_UINT64 = 14,
  TELETENSOR_FLOAT8_E4M3FN = 15,
  TELETENSOR_FLOAT8_E5M2 = 16
} teletensor_dtype;

/* Device types. In rules, a tensor may also be on TELETENSOR_META. */
typedef enum teletensor_device { TELETENSOR_CPU = 0, TELETENSOR_CUDA = 1, TELETENSOR_META = 2 } teletensor_device;

/* A tensor. Valid until the function that received it returns. */
typedef struct teletensor_tensor {
  void* data;             /* of the first element; NULL in rules, and if there are no elements */
  const int64_t* sizes;   /* `dim` numbers */
  const int64_t* strides; /* `dim` numbers, in elements */
  int64_t dim;
  int64_t numel;
  int32_t dtype;       /* a teletensor_dtype */
  int32_t device_type; /* a teletensor_device */
  int32_t device_index;
} teletensor_tensor;

/* A call in progress: arguments and results. Used only while the rule or kernel that received it runs. */
typedef struct teletensor_call teletensor_call;

/* Part [begin, end) of a parallel loop. Must not throw, and must not call other functions of the host but cancelled().
 */
typedef void (*teletensor_loop)(void* context, int64_t begin, int64_t end);

/* Functions of the daemon. Arguments and results are numbered from 0 in the order of the schema. A wrong number or kind
 * of argument returns NULL or 0. All are for the thread that received the call, except cancelled(). */
typedef struct teletensor_host {
  uint32_t abi;  /* TELETENSOR_OPERATOR_ABI of the daemon */
  uint32_t size; /* sizeof(teletensor_host) of the daemon */

  /* Arguments. Omitted ones have the schema's defaults. */
  int (*is_none)(teletensor_call* call, int argument);
  const teletensor_tensor* (*tensor)(teletensor_call* call, int argument);
  int64_t (*integer)(teletensor_call* call, int argument); /* int, bool, ScalarType (a teletensor_dtype) */
  double (*number)(teletensor_call* call, int argument);   /* float, int, bool, and the real part of a Scalar */
  /* The length of a Tensor[], int[], float[] or str. */
  int64_t (*length)(teletensor_call* call, int argument);
  const teletensor_tensor* (*list_tensor)(teletensor_call* call, int argument, int64_t index);
  const int64_t* (*integers)(teletensor_call* call, int argument);
  const double* (*numbers)(teletensor_call* call, int argument);
  const char* (*text)(teletensor_call* call, int argument); /* not terminated by 0; see length() */

  /* In a rule: sets a result's sizes and dtype. Returns 0, or another value if they are invalid. */
  int (*set_result)(teletensor_call* call, int result, const int64_t* sizes, int64_t dim, int32_t dtype);
  /* In a kernel: the result, which the daemon has allocated as the rule says. It is contiguous. */
  const teletensor_tensor* (*result)(teletensor_call* call, int result);

  /* In a kernel: memory on the call's device, charged to the session and freed after the call. NULL if the session may
   * not have as much; the kernel should then return 1 without calling fail(). */
  void* (*allocate)(teletensor_call* call, int64_t bytes);
  /* Runs `loop` over [0, n), in parts of at least `grain`, on the daemon's threads. Returns 0; another value if the
   * call was cancelled meanwhile, so that the kernel should return it. */
  int (*parallel_for)(teletensor_call* call, int64_t n, int64_t grain, teletensor_loop loop, void* context);
  /* Whether the client has cancelled the call, or its time is over. Long loops should ask now and then: outside of a
   * parallel loop, other clients also compute meanwhile. Any thread. */
  int (*cancelled)(teletensor_call* call);
  /* On CUDA: the stream (cudaStream_t) on which the kernel must issue its work; NULL on the CPU. */
  void* (*stream)(teletensor_call* call);
  /* Sets the error's message, of which the daemon keeps a copy. Returns 1: `return host->fail(call, "...");`. */
  int (*fail)(teletensor_call* call, const char* message);
} teletensor_host;

/* A rule or a kernel. Returns 0 on success. */
typedef int (*teletensor_function)(const teletensor_host* host, teletensor_call* call);

typedef enum teletensor_flags {
  /* Kernels accept tensors of any strides. Otherwise they receive contiguous ones: the daemon copies others. */
  TELETENSOR_ANY_STRIDES = 1
} teletensor_flags;

/* An operator. Members that are NULL or 0 do not apply. */
typedef struct teletensor_operator {
  /* Name, parameters and results in PyTorch's language: "mylib::scaled_add(Tensor a, Tensor b, *, float scale=1.0) ->
   * Tensor". Parameters: Tensor, Scalar, int, float, bool, str, ScalarType, Tensor[], int[], float[], and T? for each
   * but lists. Results: one Tensor, or several in parentheses. Operators do not change their arguments. */
  const char* schema;
  const char* doc; /* one line */

  /* Results: `shape` and `dtype`, which the client evaluates too, or `rule`, for which it asks the daemon once for each
   * kind of arguments; none of them for an operator with a `body`. Several results are separated by ";".
   * shape: "same(a)", "equal(a, b)", "broadcast(a, b)", or a list of numbers: "[a.size(0), b.size(1), 2 * n]".
   * dtype: "same(a)", "promote(a, b)", a parameter of type ScalarType, or a name such as "float32". */
  const char* shape;
  const char* dtype;
  teletensor_function rule;

  /* Kernels by device. */
  teletensor_function cpu;
  teletensor_function cuda;

  /* Instead of rule and kernels: a pointwise expression over the parameters and the daemon's pointwise operators, which
   * is evaluated and differentiated like them on every device, and fused with them: "a / (1 + abs(a))". */
  const char* body;

  /* Gradients of an operator with kernels: a formula for each differentiable parameter, over the parameters, `result`
   * (`result0`, ...) and the gradient `g` (`g0`, ...) of the results, separated by ";": "a: g; b: g * scale", or an
   * operator that returns several: "a, b: mylib::scaled_add_backward(g, scale)". "none" in place of a formula, or of
   * all of them, says that there is no gradient; without a text, a call whose arguments require a gradient is an error.
   */
  const char* gradient;

  uint32_t flags; /* of teletensor_flags */
} teletensor_operator;

typedef struct teletensor_library {
  uint32_t abi;           /* TELETENSOR_OPERATOR_ABI */
  uint32_t operator_size; /* sizeof(teletensor_operator) */
  const char* name;       /* for the operator of the daemon: "mylib 1.2" */
  const teletensor_operator* operators;
  size_t count;
} teletensor_library;

/* The function that a library exports. Called once, when the daemon starts; NULL refuses the daemon. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const teletensor_library*
teletensor_operators(const teletensor_host* host);

#ifdef __cplusplus
}
#endif

#endif /* TELETENSOR_OPERATOR_H_ */
