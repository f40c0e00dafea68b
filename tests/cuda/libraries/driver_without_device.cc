// A libcuda.so.1 without devices, which "loads" any kernel: cuDNN builds execution plans with it, but they cannot run.
// It has the functions that cuDNN looks up.

namespace {

int kernel;  // what every handle points to

int store_handle(void** handle) {
  *handle = &kernel;
  return 0;
}

}  // namespace

#define TT_SUCCEEDS(name) \
  extern "C" int name() { return 0; }
#define TT_STORES_HANDLE(name) \
  extern "C" int name(void** handle) { return store_handle(handle); }

TT_STORES_HANDLE(cuCtxGetCurrent)
TT_STORES_HANDLE(cuKernelGetFunction)
TT_STORES_HANDLE(cuLibraryGetKernel)
TT_STORES_HANDLE(cuLibraryGetModule)
TT_STORES_HANDLE(cuLibraryLoadData)
TT_STORES_HANDLE(cuLibraryLoadFromFile)
TT_STORES_HANDLE(cuModuleGetFunction)
TT_STORES_HANDLE(cuModuleLoadData)
TT_SUCCEEDS(cuCtxGetLimit)
TT_SUCCEEDS(cuCtxPopCurrent)
TT_SUCCEEDS(cuCtxPushCurrent)
TT_SUCCEEDS(cuDeviceGet)
TT_SUCCEEDS(cuDeviceGetCount)
TT_SUCCEEDS(cuDriverGetVersion)
TT_SUCCEEDS(cuFuncSetAttribute)
TT_SUCCEEDS(cuGetErrorName)
TT_SUCCEEDS(cuGetErrorString)
TT_SUCCEEDS(cuKernelGetAttribute)
TT_SUCCEEDS(cuKernelSetAttribute)
TT_SUCCEEDS(cuLaunchCooperativeKernel)
TT_SUCCEEDS(cuLaunchKernel)
TT_SUCCEEDS(cuLaunchKernelEx)
TT_SUCCEEDS(cuLibraryUnload)
TT_SUCCEEDS(cuLinkAddData)
TT_SUCCEEDS(cuLinkComplete)
TT_SUCCEEDS(cuLinkCreate)
TT_SUCCEEDS(cuLinkDestroy)
TT_SUCCEEDS(cuModuleUnload)
TT_SUCCEEDS(cuOccupancyMaxPotentialClusterSize)
TT_SUCCEEDS(cuStreamGetCtx)
