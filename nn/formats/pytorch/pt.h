// Files of PyTorch and LibTorch: what torch.save() wrote in Python and torch::save() in C++.
//
// Only data is read: tensors, numbers, texts, lists, tuples, dictionaries. Any other object (of a
// class, or a tensor of an unknown dtype) becomes an opaque value, which holds its name only.
// Nothing in a file is ever run, and the code in TorchScript's archives is not read. Sizes that a
// file gives are compared with the file's bytes before memory is allocated.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "autograd/ivalue.h"
#include "autograd/tensor.h"
#include "nn/module/ordered_dict.h"
#include "nn/serialize/archive.h"

namespace ramet {
namespace formats {

/// Loads all that a .pt or .pth file holds, as a tree. Files of torch.save() in Python may have the
/// zip format or the one before PyTorch 1.6. In files of LibTorch's torch::save(), a module,
/// optimizer or tensor is the dictionary of its attributes. Tensors that shared a storage (tied
/// weights) share memory again, with their strides. All tensors are on `device` (cpu:0 by default),
/// wherever they were. Big-endian and little-endian files are read. dtypes are texts
/// ("torch.float32"). A value that cannot be read is opaque (IValue::isOpaque()); its conversion is
/// an Error. unread_of() (state_dict.h) lists all opaque values. An Error names file, entry and
/// offset.
RAMET_API IValue load_pt(const std::string& path, std::optional<Device> device = std::nullopt);
/// From memory; `name` stands for the file in errors.
RAMET_API IValue load_pt(const char* data, size_t bytes, const std::string& name = "memory",
                         std::optional<Device> device = std::nullopt);

/// Reads a module, an optimizer, a tensor or a list of tensors. LibTorch's torch::save() wrote
/// them, or Python a state dict of a module or optimizer. Returns the archive that this library
/// would have written. The file does not hold an optimizer's class. Reading is an Error where its
/// options show another class than the reader's, or a feature that this library lacks (maximize).
/// Opaque values are left out.
RAMET_API serialize::InputArchive torch_archive(const std::string& path,
                                                std::optional<Device> device = std::nullopt);
inline serialize::InputArchive torch_archive(const char* path,
                                             std::optional<Device> device = std::nullopt) {
  return torch_archive(std::string(path), device);  // an IValue may be a text, too
}
/// Of a part of a file: `torch_archive(load_pt(path).toGenericDict().at("optimizer"))`; `name`
/// stands for it in errors.
RAMET_API serialize::InputArchive torch_archive(const IValue& tree,
                                                const std::string& name = "value");

/// load() (nn/serialize/save.h) of such a file: `load_torch(net, "net.pt")`, `load_torch(adam,
/// ...)`. For modules, load_state_dict() (nn/formats/pytorch/state_dict.h) compares all first and
/// maps names.
template <class Value>
void load_torch(Value& value, const std::string& path,
                std::optional<Device> device = std::nullopt) {
  serialize::InputArchive archive = torch_archive(path, device);
  archive >> value;
}
/// Appends to `tensors`, as load().
RAMET_API void load_torch(std::vector<Tensor>& tensors, const std::string& path,
                          std::optional<Device> device = std::nullopt);

/// Writes a file that torch.load() reads in Python, with weights_only too: zip format, protocol 2
/// of pickle. It may hold numbers, texts, tensors, and lists, tuples and dictionaries of them, at
/// most 256 deep. An undefined tensor becomes None. Tensors of one dtype that share a storage share
/// it in the file; other tensors are written dense, on whatever device they are. The file is
/// written whole or not at all. The same content gives the same file.
RAMET_API void save_pt(const std::string& path, const IValue& value);
/// A state dict.
RAMET_API void save_pt(const std::string& path, const OrderedDict<std::string, Tensor>& tensors);

}  // namespace formats

// Here are also pickle_load() and pickle_save() of nn/serialize/save.h: load_pt() and save_pt() in
// memory.

}  // namespace ramet
