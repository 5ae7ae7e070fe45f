// Memory of buffers that others than the program write. Private to parallel/.
//
// Note [Buffers and live graphs]
// Between two forwards the ranks and the replicas may give a buffer another value. The program has
// written nothing, so a graph of the first forward, which keeps the buffer for its backward, must
// go on as in one process: neither with the new value nor with an error about a version. So the
// new value comes to fresh memory (a page), and the old page, with its version, is left to the
// graphs. The tensor stays what it is for everybody who holds it. Graphs keep the page and not the
// tensor because the buffer has a node that collects gradients, which nothing leads to: that makes
// autograd::with_history_of_now() of what is saved.
#pragma once
#include <algorithm>
#include <functional>

#include "autograd/tensor.h"

namespace ramet {
namespace parallel {
namespace detail {

/// Buffers in one memory stay there: what is written to one is seen in the other. True where none
/// of `all` but the buffer itself, which is one of them, is in its memory.
template <class Buffers, class Tensors>
bool alone(const Tensor& buffer, const Buffers& all, Tensors tensor_of) {
  return std::count_if(all.begin(), all.end(), [&](const auto& other) {
           return std::invoke(tensor_of, other).may_overlap(buffer);
         }) <= 1;
}
/// From now on operations keep the buffer's page. Nothing for undefined tensors.
RAMET_API void keep_pages(const Tensor& buffer);
/// Uninitialised, of the buffer's geometry and version. Undefined where its values may be written
/// in place: in a capture; where nobody holds the page but `holders` tensors, which will all turn
/// it. And where they have to be, since others are to see them there: in a part of some memory (a
/// view), and in memory that the user gave.
RAMET_API Tensor fresh_page(const Tensor& buffer, uint32_t holders = 1);
/// The buffer's memory is that of `page` from now on; nothing where that is undefined.
RAMET_API void turn_page(const Tensor& buffer, const Tensor& page);

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
