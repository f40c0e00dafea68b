#include "client/api/errors.h"

namespace teletensor::internal {

void throw_translated(const tt::Error& error) {
  const std::string& text = error.message();
  switch (error.kind()) {
    case tt::ErrorKind::kRuntime: throw RuntimeError(text);
    case tt::ErrorKind::kIndex: throw IndexError(text);
    case tt::ErrorKind::kType: throw TypeError(text);
    case tt::ErrorKind::kValue: throw ValueError(text);
    case tt::ErrorKind::kNotImplemented: throw NotImplementedError(text);
    case tt::ErrorKind::kOutOfMemory: throw OutOfMemoryError(text);
    case tt::ErrorKind::kConnection: throw ConnectionError(text);
    case tt::ErrorKind::kLinAlg: throw LinAlgError(text);
    case tt::ErrorKind::kFileNotFound: throw FileNotFoundError(text);
    case tt::ErrorKind::kIsADirectory: throw IsADirectoryError(text);
    case tt::ErrorKind::kNotADirectory: throw NotADirectoryError(text);
    case tt::ErrorKind::kPermission: throw PermissionError(text);
  }
  throw Error(error.kind(), text);  // a kind of a newer engine
}

}  // namespace teletensor::internal
