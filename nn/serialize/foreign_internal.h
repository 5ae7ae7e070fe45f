// Files of other programs that people give to load().
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace ramet {
namespace serialize {
namespace detail {

/// Does nothing unless the file, of which `read` gives any bytes, is one of LibTorch, PyTorch or
/// NumPy: then an Error that says whose it is and what to do now.
void refuse_foreign(const std::string& name, uint64_t size,
                    const std::function<void(uint64_t at, void* to, size_t bytes)>& read);

}  // namespace detail
}  // namespace serialize
}  // namespace ramet
