// clang-format off
// What the compatibility headers refuse, and parts of what compilers print (with these lines too):
// says: Ramet's class: include a LibTorch compatibility header, no forward declaration
// says: an error here: the alias `namespace torch = ramet;` is for programs without these headers
namespace at {
class Tensor;
}  // namespace at

#include <torch/torch.h>

namespace torch = ramet;

int main() {
  return 0;
}
