// The operators of rows: layers, losses and random numbers (rows.inc).
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"

namespace ramet::script {

void add_rows_of_layers(std::vector<Row>& rows) {
// The first include says what the rows of the others make.
// clang-format off
#include "autograd/schema/rows.inc"
#include "autograd/ops/layers/attention.inc"
#include "autograd/ops/layers/bilinear.inc"
#include "autograd/ops/layers/conv.inc"
#include "autograd/ops/layers/group_norm.inc"
#include "autograd/ops/layers/im2col.inc"
#include "autograd/ops/layers/instance_norm.inc"
#include "autograd/ops/layers/layer_norm.inc"
#include "autograd/ops/layers/packed_attention.inc"
#include "autograd/ops/layers/pool.inc"
#include "autograd/ops/layers/pool3d.inc"
#include "autograd/ops/layers/recurrent.inc"
#include "autograd/ops/layers/shuffle.inc"
#include "autograd/ops/layers/softmax.inc"
#include "autograd/ops/layers/upsample.inc"
#include "autograd/ops/loss/cross_entropy.inc"
#include "autograd/ops/loss/ctc_loss.inc"
#include "autograd/ops/loss/linear_cross_entropy.inc"
#include "autograd/ops/loss/loss.inc"
#include "autograd/ops/loss/margin_loss.inc"
#include "autograd/ops/random/random.inc"
// clang-format on
}

}  // namespace ramet::script
