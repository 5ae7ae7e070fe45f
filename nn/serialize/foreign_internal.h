// Files of other programs that people give to load().
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace ramet {
namespace serialize {
namespace detail {

/// An Error where the file is one of LibTorch, PyTorch or NumPy: it names the program and says what
/// to do now. Otherwise does nothing. `read` reads any bytes of the file.
void refuse_foreign(const std::string& name, uint64_t size,
                    const std::function<void(uint64_t at, void* to, size_t bytes)>& read);

}  // namespace detail
}  // namespace serialize
}  // namespace ramet
