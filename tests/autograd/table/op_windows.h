// References of what slides windows over sequences, images and volumes, with a batch or without.
#pragma once
#include "tests/autograd/table/op_table.h"

namespace ramet {
namespace op_table {

/// A number for each spatial dimension, or one for all of them.
struct Windows {
  Index kernel;  ///< of pools: for each dimension
  Index stride = {1}, padding = {0}, dilation = {1};
  int64_t groups = 1, output_padding = 0;
  bool ceil = false;  ///< the last windows hang over, if they begin inside or in the padding before
};

/// x, the kernel and perhaps a bias.
Plain convolved(P in, const Windows& w);
/// The transposed convolution: each input, times the taps, is added to the outputs that see it.
Plain spread(P in, const Windows& w);

/// Of windows; `places`: where the largest are, in one number for each.
Plain max_pooled(const Plain& x, const Windows& w, bool places = false);
Plain mean_pooled(const Plain& x, const Windows& w, bool with_padding);
/// Of windows that cover everything and give these extents.
Plain max_adapted(const Plain& x, const Index& out, bool places = false);
Plain mean_adapted(const Plain& x, const Index& out);

}  // namespace op_table
}  // namespace ramet
