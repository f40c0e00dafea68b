// Exceptions of the C++ client, one type per kind of error. Messages are those of Python.
#pragma once

#include <string>
#include <utility>

#include "engine/schema/error.h"

namespace teletensor {

/// Base of all exceptions that the client throws; a RuntimeError of Python.
class Error : public tt::Error {
 public:
  using tt::Error::Error;
};

/// Declares the exception of one kind.
#define TELETENSOR_ERROR(Name, kind)                                        \
  class Name : public Error {                                               \
   public:                                                                  \
    explicit Name(std::string message) : Error(kind, std::move(message)) {} \
  }

TELETENSOR_ERROR(RuntimeError, tt::ErrorKind::kRuntime);
TELETENSOR_ERROR(IndexError, tt::ErrorKind::kIndex);
TELETENSOR_ERROR(TypeError, tt::ErrorKind::kType);
TELETENSOR_ERROR(ValueError, tt::ErrorKind::kValue);
TELETENSOR_ERROR(NotImplementedError, tt::ErrorKind::kNotImplemented);
TELETENSOR_ERROR(OutOfMemoryError, tt::ErrorKind::kOutOfMemory);
/// The engine is unreachable, or has ended the session.
TELETENSOR_ERROR(ConnectionError, tt::ErrorKind::kConnection);
TELETENSOR_ERROR(LinAlgError, tt::ErrorKind::kLinAlg);
TELETENSOR_ERROR(FileNotFoundError, tt::ErrorKind::kFileNotFound);
TELETENSOR_ERROR(PermissionError, tt::ErrorKind::kPermission);
/// Another error of the operating system for a path.
TELETENSOR_ERROR(IsADirectoryError, tt::ErrorKind::kIsADirectory);
TELETENSOR_ERROR(NotADirectoryError, tt::ErrorKind::kNotADirectory);
#undef TELETENSOR_ERROR

namespace internal {

/// Throws the exception of the error's kind.
[[noreturn]] void throw_translated(const tt::Error& error);

/// Runs `body`, and translates what the layers beneath throw. The only place where this happens.
template <typename Body>
decltype(auto) translated(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const Error&) {
    throw;
  } catch (const tt::Error& error) {
    throw_translated(error);
  }
}

}  // namespace internal
}  // namespace teletensor
