#!/usr/bin/env python3
"""Writes autocast_dtypes.txt: the dtypes of results under PyTorch's autocast, for the calls of tests/autograd/autocast/calls.cc.

Needs PyTorch 2.15, and no GPU: a fake tensor of a GPU has a dtype and no memory. A line is `name device case dtypes`. Cases: all
tensors are float32, of autocast's dtype (lower), or float64; or the first one is of autocast's dtype (mixed). `refused`: PyTorch
does not compute that, so Ramet may do what it likes.
"""

import pathlib
import sys
import warnings

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

LOWER = {"cpu": torch.bfloat16, "cuda": torch.float16}


class Make:
    """Makes the tensors of a call."""

    def __init__(self, device, case):
        self.device, self.case, self.made = device, case, 0

    def __call__(self, *shape):
        self.made += 1
        lower = self.case == "lower" or (self.case == "mixed" and self.made == 1)
        dtype = LOWER[self.device] if lower else {"float64": torch.float64}.get(self.case, torch.float32)
        return torch.full(shape, 0.5, device=self.device, dtype=dtype)

    def float32(self, *shape):
        return torch.full(shape, 0.5, device=self.device)

    def square(self, n):
        """An invertible matrix."""
        return self(n, n) + 2 * torch.eye(n, device=self.device, dtype=torch.float64 if self.case == "float64" else LOWER[self.device])

    def index(self, *shape):
        return torch.zeros(shape, device=self.device, dtype=torch.long)


def weights(t, gates):
    return [t.float32(3 * gates, 2), t.float32(3 * gates, 3), t.float32(3 * gates), t.float32(3 * gates)]


CALLS = {
    # Products.
    "mm": lambda t: torch.mm(t(2, 3), t(3, 2)),
    "bmm": lambda t: torch.bmm(t(1, 2, 3), t(1, 3, 2)),
    "mv": lambda t: torch.mv(t(2, 3), t(3)),
    "dot": lambda t: torch.dot(t(3), t(3)),
    "vdot": lambda t: torch.vdot(t(3), t(3)),
    "matmul": lambda t: torch.matmul(t(2, 3), t(3, 2)),
    "matmul.vectors": lambda t: torch.matmul(t(3), t(3)),
    "matmul.matrix_vector": lambda t: torch.matmul(t(2, 3), t(3)),
    "linear": lambda t: F.linear(t(2, 3), t(4, 3), t(4)),
    "addmm": lambda t: torch.addmm(t(2), t(2, 3), t(3, 2)),
    "addbmm": lambda t: torch.addbmm(t(2, 2), t(1, 2, 3), t(1, 3, 2)),
    "baddbmm": lambda t: torch.baddbmm(t(1, 2, 2), t(1, 2, 3), t(1, 3, 2)),
    "addmv": lambda t: torch.addmv(t(2), t(2, 3), t(3)),
    "addr": lambda t: torch.addr(t(2, 3), t(2), t(3)),
    "outer": lambda t: torch.outer(t(2), t(3)),
    "kron": lambda t: torch.kron(t(2), t(3)),
    "inner": lambda t: torch.inner(t(2, 3), t(2, 3)),
    "tensordot": lambda t: torch.tensordot(t(2, 3), t(3, 2), 1),
    "chain_matmul": lambda t: torch.chain_matmul(t(2, 3), t(3, 3)),
    "linalg_multi_dot": lambda t: torch.linalg.multi_dot([t(2, 3), t(3, 3), t(3, 2)]),
    "einsum": lambda t: torch.einsum("ij,jk->ik", t(2, 3), t(3, 2)),
    "matrix_power": lambda t: torch.matrix_power(t(3, 3), 3),
    "cross": lambda t: torch.cross(t(3), t(3), 0),
    "bilinear": lambda t: F.bilinear(t(2, 3), t(2, 3), t(4, 3, 3)),
    "prelu": lambda t: F.prelu(t(2, 3), t(1)),
    "mm.out": lambda t: torch.mm(t(2, 3), t(3, 2), out=t(2, 2)),
    "addmm_": lambda t: t(2, 2).addmm_(t(2, 3), t(3, 2)),
    "baddbmm_": lambda t: t(1, 2, 2).baddbmm_(t(1, 2, 3), t(1, 3, 2)),
    "scaled_dot_product_attention": lambda t: F.scaled_dot_product_attention(t(1, 1, 4, 8), t(1, 1, 4, 8), t(1, 1, 4, 8)),
    # Convolutions.
    "conv1d": lambda t: F.conv1d(t(1, 1, 4), t(1, 1, 2), t(1)),
    "conv2d": lambda t: F.conv2d(t(1, 1, 4, 4), t(1, 1, 2, 2), t(1)),
    "conv3d": lambda t: F.conv3d(t(1, 1, 4, 4, 4), t(1, 1, 2, 2, 2), t(1)),
    "conv2d.same": lambda t: F.conv2d(t(1, 1, 4, 4), t(1, 1, 2, 2), t(1), padding="same"),
    "conv_transpose1d": lambda t: F.conv_transpose1d(t(1, 1, 4), t(1, 1, 2), t(1)),
    "conv_transpose2d": lambda t: F.conv_transpose2d(t(1, 1, 4, 4), t(1, 1, 2, 2), t(1)),
    "conv_transpose3d": lambda t: F.conv_transpose3d(t(1, 1, 4, 4, 4), t(1, 1, 2, 2, 2), t(1)),
    "convolution": lambda t: torch.convolution(t(1, 1, 4, 4), t(1, 1, 2, 2), t(1), [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    "conv_tbc": lambda t: torch.conv_tbc(t(4, 1, 2), t(2, 2, 3), t(3)),
    # Recurrent networks. Their states and weights are float32.
    "lstm": lambda t: torch.lstm(t(2, 1, 2), [t.float32(1, 1, 3), t.float32(1, 1, 3)], weights(t, 4), True, 1, 0.0, True, False, False),
    "gru": lambda t: torch.gru(t(2, 1, 2), t.float32(1, 1, 3), weights(t, 3), True, 1, 0.0, True, False, False),
    "rnn_tanh": lambda t: torch.rnn_tanh(t(2, 1, 2), t.float32(1, 1, 3), weights(t, 1), True, 1, 0.0, True, False, False),
    "rnn_relu": lambda t: torch.rnn_relu(t(2, 1, 2), t.float32(1, 1, 3), weights(t, 1), True, 1, 0.0, True, False, False),
    "lstm_cell": lambda t: torch.lstm_cell(t(1, 2), [t.float32(1, 3), t.float32(1, 3)], *weights(t, 4)),
    "gru_cell": lambda t: torch.gru_cell(t(1, 2), t.float32(1, 3), *weights(t, 3)),
    "rnn_tanh_cell": lambda t: torch.rnn_tanh_cell(t(1, 2), t.float32(1, 3), *weights(t, 1)),
    "rnn_relu_cell": lambda t: torch.rnn_relu_cell(t(1, 2), t.float32(1, 3), *weights(t, 1)),
    # Functions of elements.
    **{
        name: (lambda name: lambda t: getattr(torch, name)(t(3)))(name)
        for name in """acos asin atan cos sin tan cosh sinh tanh acosh asinh atanh erf erfc erfinv exp exp2 expm1 log log10 log1p log2
            reciprocal rsqrt sqrt square neg abs sigmoid relu floor ceil round trunc frac sign lgamma digamma logit nan_to_num""".split()
    },
    "pow": lambda t: torch.pow(t(3), t(3)),
    "pow.number": lambda t: torch.pow(t(3), 2),
    "pow.of_number": lambda t: torch.pow(2, t(3)),
    "pow.operator": lambda t: t(3) ** 3,
    "exp_": lambda t: t(3).exp_(),
    "pow_": lambda t: t(3).pow_(2),
    "softplus": lambda t: F.softplus(t(3)),
    "gelu": lambda t: F.gelu(t(3)),
    "silu": lambda t: F.silu(t(3)),
    "leaky_relu": lambda t: F.leaky_relu(t(3)),
    "elu": lambda t: F.elu(t(3)),
    "mish": lambda t: F.mish(t(3)),
    "logsigmoid": lambda t: F.logsigmoid(t(3)),
    "hardswish": lambda t: F.hardswish(t(3)),
    "glu": lambda t: F.glu(t(4)),
    "add": lambda t: torch.add(t(3), t(3)),
    "mul": lambda t: torch.mul(t(3), t(3)),
    "div": lambda t: torch.div(t(3), t(3)),
    "atan2": lambda t: torch.atan2(t(3), t(3)),
    "hypot": lambda t: torch.hypot(t(3), t(3)),
    "addcmul": lambda t: torch.addcmul(t(3), t(3), t(3)),
    "addcdiv": lambda t: torch.addcdiv(t(3), t(3), t(3)),
    "lerp": lambda t: torch.lerp(t(3), t(3), 0.5),
    "maximum": lambda t: torch.maximum(t(3), t(3)),
    "eq": lambda t: torch.eq(t(3), t(3)),
    # Reductions.
    "sum": lambda t: torch.sum(t(2, 3)),
    "sum.dim": lambda t: torch.sum(t(2, 3), 1),
    "sum.dtype": lambda t: torch.sum(t(2, 3), dtype=torch.float64),
    "mean": lambda t: torch.mean(t(2, 3)),
    "prod": lambda t: torch.prod(t(2, 3)),
    "prod.dim": lambda t: torch.prod(t(2, 3), 1),
    "cumsum": lambda t: torch.cumsum(t(2, 3), 1),
    "cumprod": lambda t: torch.cumprod(t(2, 3), 1),
    "var": lambda t: torch.var(t(2, 3)),
    "amax": lambda t: torch.amax(t(2, 3), 1),
    "norm": lambda t: torch.ops.aten.norm.Scalar(t(2, 3), 2),
    "norm.dim": lambda t: torch.ops.aten.norm.ScalarOpt_dim(t(2, 3), 2, [1], False),
    "logsumexp": lambda t: torch.logsumexp(t(2, 3), [1]),
    "softmax": lambda t: torch.softmax(t(2, 3), 1),
    "softmax.dtype": lambda t: torch.softmax(t(2, 3), 1, torch.float64),
    "log_softmax": lambda t: torch.log_softmax(t(2, 3), 1),
    "quantile": lambda t: torch.quantile(t(4), 0.5),
    "nanquantile": lambda t: torch.nanquantile(t(4), 0.5),
    "trace": lambda t: torch.trace(t(3, 3)),
    "linalg_vector_norm": lambda t: torch.linalg.vector_norm(t(3)),
    "linalg_matrix_norm": lambda t: torch.linalg.matrix_norm(t(3, 3)),
    "frobenius_norm": lambda t: torch.frobenius_norm(t(3, 3), [0, 1]),
    "nuclear_norm": lambda t: torch.nuclear_norm(t(3, 3)),
    "dist": lambda t: torch.dist(t(3), t(3)),
    "renorm": lambda t: torch.renorm(t(2, 3), 2, 0, 1),
    "cdist": lambda t: torch.cdist(t(2, 3), t(2, 3)),
    "pdist": lambda t: torch.pdist(t(2, 3)),
    "cosine_similarity": lambda t: torch.cosine_similarity(t(2, 3), t(2, 3)),
    "pairwise_distance": lambda t: torch.pairwise_distance(t(2, 3), t(2, 3)),
    # Norms with parameters of float32.
    "layer_norm": lambda t: F.layer_norm(t(2, 3), [3], t.float32(3), t.float32(3)),
    "rms_norm": lambda t: F.rms_norm(t(2, 3), [3]),
    "group_norm": lambda t: F.group_norm(t(2, 4), 2, t.float32(4), t.float32(4)),
    "batch_norm": lambda t: F.batch_norm(t(2, 3), t.float32(3), t.float32(3), t.float32(3), t.float32(3), True),
    # Losses.
    "mse_loss": lambda t: F.mse_loss(t(2, 3), t(2, 3)),
    "l1_loss": lambda t: F.l1_loss(t(2, 3), t(2, 3)),
    "smooth_l1_loss": lambda t: F.smooth_l1_loss(t(2, 3), t(2, 3)),
    "huber_loss": lambda t: F.huber_loss(t(2, 3), t(2, 3)),
    "binary_cross_entropy": lambda t: F.binary_cross_entropy(t(2, 3), t(2, 3)),
    "binary_cross_entropy_with_logits": lambda t: F.binary_cross_entropy_with_logits(t(2, 3), t(2, 3)),
    "kl_div": lambda t: F.kl_div(t(2, 3), t(2, 3), reduction="sum"),
    "poisson_nll_loss": lambda t: F.poisson_nll_loss(t(2, 3), t(2, 3)),
    "hinge_embedding_loss": lambda t: F.hinge_embedding_loss(t(2, 3), t(2, 3)),
    "soft_margin_loss": lambda t: F.soft_margin_loss(t(2, 3), t(2, 3)),
    "margin_ranking_loss": lambda t: F.margin_ranking_loss(t(3), t(3), t(3)),
    "cosine_embedding_loss": lambda t: F.cosine_embedding_loss(t(2, 3), t(2, 3), t.float32(2)),
    "triplet_margin_loss": lambda t: F.triplet_margin_loss(t(2, 3), t(2, 3), t(2, 3)),
    "multi_margin_loss": lambda t: F.multi_margin_loss(t(2, 3), t.index(2)),
    "multilabel_margin_loss": lambda t: F.multilabel_margin_loss(t(2, 3), t.index(2, 3)),
    "nll_loss": lambda t: F.nll_loss(t(2, 3), t.index(2)),
    "nll_loss2d": lambda t: F.nll_loss(t(2, 3, 1, 1), t.index(2, 1, 1)),
    "cross_entropy_loss": lambda t: F.cross_entropy(t(2, 3), t.index(2)),
    "ctc_loss": lambda t: F.ctc_loss(t(4, 1, 3), t.index(1, 2) + 1, [4], [2]),
    # Linear algebra.
    "inverse": lambda t: torch.inverse(t.square(2)),
    "linalg_inv": lambda t: torch.linalg.inv(t.square(2)),
    "linalg_solve": lambda t: torch.linalg.solve(t.square(2), t(2, 1)),
    "linalg_cholesky": lambda t: torch.linalg.cholesky(t.square(2)),
    "cholesky_solve": lambda t: torch.cholesky_solve(t(2, 1), t.square(2)),
    "cholesky_inverse": lambda t: torch.cholesky_inverse(t.square(2)),
    "linalg_qr": lambda t: torch.linalg.qr(t(2, 2)),
    "linalg_svd": lambda t: torch.linalg.svd(t(2, 2)),
    "svd": lambda t: torch.svd(t(2, 2)),
    "linalg_svdvals": lambda t: torch.linalg.svdvals(t(2, 2)),
    "linalg_eigh": lambda t: torch.linalg.eigh(t(2, 2)),
    "linalg_eigvalsh": lambda t: torch.linalg.eigvalsh(t(2, 2)),
    "linalg_matrix_rank": lambda t: torch.linalg.matrix_rank(t(2, 2)),
    "pinverse": lambda t: torch.pinverse(t(2, 2)),
    # Parts of tensors.
    "cat": lambda t: torch.cat([t(2), t(2)]),
    "stack": lambda t: torch.stack([t(2), t(2)]),
    "hstack": lambda t: torch.hstack([t(2), t(2)]),
    "index_copy": lambda t: torch.index_copy(t(2, 3), 0, t.index(1), t(1, 3)),
    "index_put": lambda t: torch.index_put(t(2, 3), [t.index(1)], t(1, 3)),
    "scatter_add": lambda t: torch.scatter_add(t(2, 3), 0, t.index(1, 3), t(1, 3)),
    "index_add": lambda t: torch.index_add(t(2, 3), 0, t.index(1), t(1, 3)),
    "gather": lambda t: torch.gather(t(2, 3), 0, t.index(1, 3)),
    "embedding": lambda t: F.embedding(t.index(2), t(2, 3)),
    "reshape": lambda t: torch.reshape(t(2, 3), [6]),
    # Images.
    "reflection_pad1d": lambda t: torch.ops.aten.reflection_pad1d(t(1, 2, 4), [1, 1]),
    "reflection_pad2d": lambda t: torch.ops.aten.reflection_pad2d(t(1, 2, 4, 4), [1, 1, 1, 1]),
    "reflection_pad3d": lambda t: torch.ops.aten.reflection_pad3d(t(1, 1, 4, 4, 4), [1, 1, 1, 1, 1, 1]),
    "replication_pad1d": lambda t: torch.ops.aten.replication_pad1d(t(1, 2, 4), [1, 1]),
    "replication_pad2d": lambda t: torch.ops.aten.replication_pad2d(t(1, 2, 4, 4), [1, 1, 1, 1]),
    "replication_pad3d": lambda t: torch.ops.aten.replication_pad3d(t(1, 1, 4, 4, 4), [1, 1, 1, 1, 1, 1]),
    "max_pool2d": lambda t: F.max_pool2d(t(1, 1, 4, 4), 2),
    "avg_pool2d": lambda t: F.avg_pool2d(t(1, 1, 4, 4), 2),
    "max_pool3d": lambda t: torch.max_pool3d(t(1, 1, 4, 4, 4), 2),
    "avg_pool3d": lambda t: F.avg_pool3d(t(1, 1, 4, 4, 4), 2),
    "adaptive_avg_pool2d": lambda t: F.adaptive_avg_pool2d(t(1, 1, 4, 4), 2),
    "adaptive_avg_pool3d": lambda t: F.adaptive_avg_pool3d(t(1, 1, 4, 4, 4), 2),
    "adaptive_max_pool3d": lambda t: F.adaptive_max_pool3d(t(1, 1, 4, 4, 4), 2, True),
    "upsample_nearest1d": lambda t: torch.ops.aten.upsample_nearest1d(t(1, 1, 4), [8]),
    "upsample_nearest2d": lambda t: torch.ops.aten.upsample_nearest2d(t(1, 1, 4, 4), [8, 8]),
    "upsample_nearest3d": lambda t: torch.ops.aten.upsample_nearest3d(t(1, 1, 4, 4, 4), [8, 8, 8]),
    "_upsample_nearest_exact1d": lambda t: torch.ops.aten._upsample_nearest_exact1d(t(1, 1, 4), [8]),
    "_upsample_nearest_exact2d": lambda t: torch.ops.aten._upsample_nearest_exact2d(t(1, 1, 4, 4), [8, 8]),
    "_upsample_nearest_exact3d": lambda t: torch.ops.aten._upsample_nearest_exact3d(t(1, 1, 4, 4, 4), [8, 8, 8]),
    "upsample_linear1d": lambda t: torch.ops.aten.upsample_linear1d(t(1, 1, 4), [8], False),
    "upsample_bilinear2d": lambda t: torch.ops.aten.upsample_bilinear2d(t(1, 1, 4, 4), [8, 8], False),
    "upsample_trilinear3d": lambda t: torch.ops.aten.upsample_trilinear3d(t(1, 1, 4, 4, 4), [8, 8, 8], False),
    "upsample_bicubic2d": lambda t: torch.ops.aten.upsample_bicubic2d(t(1, 1, 4, 4), [8, 8], False),
    "_upsample_bilinear2d_aa": lambda t: torch.ops.aten._upsample_bilinear2d_aa(t(1, 1, 4, 4), [8, 8], False),
    "_upsample_bicubic2d_aa": lambda t: torch.ops.aten._upsample_bicubic2d_aa(t(1, 1, 4, 4), [8, 8], False),
}


def dtypes(result):
    results = result if isinstance(result, (tuple, list)) else [result]
    return ",".join(str(r.dtype).replace("torch.", "") for r in results)


def measured(call, device, case):
    torch.set_autocast_enabled(device, True)
    try:
        with FakeTensorMode() if device == "cuda" else torch.no_grad():
            return dtypes(call(Make(device, case)))
    except (RuntimeError, NotImplementedError) as error:
        # What a machine without a GPU cannot ask. cuDNN's networks are in autocast's dtype.
        return "refused" if "driver" not in str(error) else "unknown"
    finally:
        torch.set_autocast_enabled(device, False)
        torch.clear_autocast_cache()


def main():
    assert torch.__version__.startswith("2.15."), torch.__version__
    warnings.simplefilter("ignore")
    lines = []
    for name, call in CALLS.items():
        for device in LOWER:
            for case in ("float32", "lower", "mixed", "float64"):
                lines.append(f"{name} {device} {case} {measured(call, device, case)}\n")
    path = pathlib.Path(__file__).with_name("autocast_dtypes.txt")
    path.write_text("".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
