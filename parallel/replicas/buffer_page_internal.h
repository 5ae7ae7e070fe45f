// Memory for buffers that the library writes between forwards. Private to parallel/.
//
// Note [Buffers and live graphs]
// Between two forwards the ranks and the replicas may give a buffer another value. The program
// itself has written nothing. A graph of the first forward may keep the buffer for its backward.
// That backward must run as in one process: neither with the new value nor with an error about a
// version. So the new value goes to fresh memory (a page), and the graphs keep the old page with
// its version. The tensor itself stays the same for all code that holds it. Graphs keep the page
// instead of the tensor because the buffer has a node that collects gradients, and no edge leads to
// that node. Such a node makes autograd::with_history_of_now() of what is saved.
#pragma once
#include <algorithm>
#include <functional>

#include "autograd/tensor.h"

namespace ramet {
namespace parallel {
namespace detail {

/// Is the buffer's memory its own among `all`, which include it? Buffers that share memory continue
/// to share it: what is written to one is seen in the other.
template <class Buffers, class Tensors>
bool alone(const Tensor& buffer, const Buffers& all, Tensors tensor_of) {
  return std::count_if(all.begin(), all.end(), [&](const auto& other) {
           return std::invoke(tensor_of, other).may_overlap(buffer);
         }) <= 1;
}
/// From now on operations keep the buffer's page. Does nothing for undefined tensors.
RAMET_API void keep_pages(const Tensor& buffer);
/// Uninitialised memory with the buffer's geometry and version. Undefined if the values may be
/// written in place. That is so in a capture, and if only `holders` tensors hold the page, all of
/// which will turn it. It is also undefined if the values must be written in place, so that other
/// code sees them there. That is so in a part of some memory (a view), and in memory that the user
/// gave.
RAMET_API Tensor fresh_page(const Tensor& buffer, uint32_t holders = 1);
/// Makes `page` the buffer's memory from now on; does nothing if it is undefined.
RAMET_API void turn_page(const Tensor& buffer, const Tensor& page);

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
