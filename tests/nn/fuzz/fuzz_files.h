// Random files: what is written comes back. A damaged file is either refused by one Error or read
// as what it says.
#pragma once
#include <string>

#include "autograd/tensor.h"
#include "runtime/memory/allocator.h"
#include "tests/fuzz.h"

namespace ramet {
namespace fuzz {

/// Flips, cuts, inserts, repeats, puts absurd numbers in place of digits: up to four of these. With
/// `sized` the file begins with the length of its header. The length may be corrected afterwards,
/// so that the parser finds the damage and not the check of the length.
void damage(Tape& tape, std::string& bytes, bool sized);
/// A tensor of any of these dtypes, of rank 0 to 3, with or without elements, dense or not, with
/// random bytes.
Tensor any_tensor(Tape& tape, const std::vector<ScalarType>& dtypes);
/// Escapes, quotes, several bytes a letter.
std::string any_text(Tape& tape);
/// Same dtype, sizes and bytes.
bool same_bytes(const Tensor& a, const Tensor& b);

/// While it lives, the allocator gives only a little memory.
class Limit {
 public:
  explicit Limit(size_t bytes) {
    set_memory_limit(kHost, memory_stats(kHost).current + static_cast<int64_t>(bytes));
  }
  ~Limit() { set_memory_limit(kHost, 0); }

 private:
  const Device kHost{kCPU, 0};
};

/// Does load() work? Otherwise it must throw one Error, and not one about memory: a reader asks for
/// no more than a file of `bytes` can fill.
template <class F> bool loads_or_refuses(size_t bytes, F&& load) {
  const Limit limit(2 * bytes + 4096);
  try {
    load();
    return true;
  } catch (const OutOfMemoryError& e) {
    RC_FAIL(std::string("more memory than the file has bytes: ") + e.what());
  } catch (const Error& e) { RC_ASSERT(e.what()[0] == '['); }
  return false;
}

void check_safetensors(Tape& tape);
void check_archive(Tape& tape);
void check_idx(Tape& tape);

}  // namespace fuzz
}  // namespace ramet
