// save() and load(): for a tensor, a vector of tensors, or any object with operator<< and
// operator>> for archives. Such are modules (by holder, by shared_ptr and by reference) and
// optimizers.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "nn/serialize/archive.h"

namespace ramet {

/// Where to: a path (written whole or not at all), a std::ostream, or a function that takes bytes.
template <class Value, class... Where> void save(const Value& value, Where&&... where) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<Where>(where)...);
}
template <class... Where> void save(const std::vector<Tensor>& tensors, Where&&... where) {
  serialize::OutputArchive archive;
  for (size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  archive.save_to(std::forward<Where>(where)...);
}

/// From a path, a std::istream, memory or a function; then optionally the device to load to. Errors
/// as InputArchive's.
template <class Value, class... From> void load(Value& value, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}
/// Appends to `tensors`, as LibTorch's.
template <class... From> void load(std::vector<Tensor>& tensors, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  Tensor tensor;
  for (size_t i = 0; archive.try_read(std::to_string(i), tensor); ++i) {
    tensors.push_back(std::move(tensor));
    tensor = Tensor();
  }
}

namespace detail {
// In a separate library, which links libzip. Where it is missing, the linker shows these names.
RAMET_API std::vector<char> pickle_save__link_Ramet_formats_too(const IValue& ivalue);
RAMET_API IValue pickle_load__link_Ramet_formats_too(const std::vector<char>& data);
}  // namespace detail

/// LibTorch's functions: pickle_save makes the bytes of a file that Python's torch.load() reads.
/// pickle_load reads what torch.save() or pickle_save() made (nn/formats/pytorch/pt.h lists what
/// that may be). Both are in the library //nn/formats, which a program that calls them must also
/// link.
inline std::vector<char> pickle_save(const IValue& ivalue) {
  return detail::pickle_save__link_Ramet_formats_too(ivalue);
}
/// The other way round.
inline IValue pickle_load(const std::vector<char>& data) {
  return detail::pickle_load__link_Ramet_formats_too(data);
}

}  // namespace ramet
