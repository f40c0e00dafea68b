// save and load: `.pt` files in PyTorch's zip format, and safetensors.
//
// Files are on the client's host. Files written here are read by PyTorch and by teletensor's Python package, and the
// reverse if they contain tensors, numbers, strings, lists and dicts. Nothing in a file is executed; a damaged or
// hostile file throws RuntimeError, ValueError or NotImplementedError. Both wait for the engine.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/api/tensor.h"
#include "client/serialize/value.h"

namespace teletensor {

/// Writes a `.pt` file. Tensors that share memory share it in the file. The file appears complete or not at all.
void save(const Value& value, const std::string& path);
inline void save(const Tensor& tensor, const std::string& path) { save(Value(tensor), path); }
void save(const std::vector<Tensor>& tensors, const std::string& path);

/// Reads a `.pt` file; its tensors are made in the current session, on `device`.
Value load(const std::string& path, Device device = kCPU);
/// Reads a file that contains one tensor, or a list of tensors. Throws TypeError for another file.
void load(Tensor& tensor, const std::string& path, Device device = kCPU);
void load(std::vector<Tensor>& tensors, const std::string& path, Device device = kCPU);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
/// Writes a safetensors file. Throws ValueError if a name occurs twice.
void save_safetensors(const NamedTensors& tensors, const std::string& path);
/// Reads a safetensors file, in the order of the tensors' bytes.
NamedTensors load_safetensors(const std::string& path, Device device = kCPU);

}  // namespace teletensor
