"""The functions of tests/nn/module/golden_functions.cc in PyTorch's words, by its names, and what they are called with."""

from functools import partial

import torch
from torch.nn import functional as F

from golden_rows import alignments, entropy, function, index, positive, real, signs


def flat(results):
    return torch.cat([t.flatten().double() for t in results])


def bag(reduce, starts, *weighted):
    """Rows of an embedding in bags that begin at `starts`, each reduced."""

    def twin(x, w, *factors):
        rows = w[x] * factors[0][:, None] if factors else w[x]
        return torch.stack([reduce(rows[a:b]) for a, b in zip(starts, starts[1:])])

    return twin


def embedding_bag(x, w, *factors, starts, last=False, **keywords):
    offsets = torch.tensor(starts if last else starts[:-1])
    factors = factors[0] if factors else None
    return F.embedding_bag(x, w, offsets, per_sample_weights=factors, include_last_offset=last, **keywords)


def normed(x, mean, var, *affine, **keywords):
    """A batch norm in training, and the statistics that it has written."""
    mean, var = mean.clone(), var.clone()
    return flat([F.batch_norm(x, mean, var, *affine, training=True, **keywords), mean, var])


def residual_layer_norm(x, r, w, b):
    return flat([F.layer_norm(x + r, (4,), w, b, 0.01), x + r])


def attention(q, k, v, *p, heads, zero=False, **keywords):
    """`p`: in_proj_weight or None, in_proj_bias, bias_k, bias_v or None, out_proj_weight, out_proj_bias"""
    return flat(F.multi_head_attention_forward(q, k, v, q.size(-1), heads, *p[:4], zero, 0.0, *p[4:], **keywords))


def powers_of_margins(x, y, w):
    others = 1 - F.one_hot(y, x.size(1))
    return (w[y, None] * (0.6 - x.gather(1, y[:, None]) + x).clamp(min=0) ** 2 * others).sum(1).sum() / x.size(1)


def sorted_margins(x):
    """Of the classes 2 and 0, whatever else: the sum over others."""
    pairs = [(1 - x[:, j] + x[:, i]).clamp(min=0) for j in (2, 0) for i in (1, 3, 4)]
    return (sum(pairs) / x.size(1)).mean()


ACTIVATIONS = [
    function("relu", F.relu, [real(12)]),
    function("relu6", F.relu6, [real(12, by=9)]),
    function("leaky_relu", partial(F.leaky_relu, negative_slope=0.3), [real(12)]),
    function("elu", partial(F.elu, alpha=0.7), [real(12)]),
    function("selu", F.selu, [real(12)]),
    function("celu", partial(F.celu, alpha=2.0), [real(12, by=3)]),
    function("gelu", F.gelu, [real(12, by=3)]),
    function("gelu, by tanh", partial(F.gelu, approximate="tanh"), [real(12, by=3)]),
    function("glu", partial(F.glu, dim=0), [real(4, 3)]),
    function("silu", F.silu, [real(12, by=3)]),
    function("mish", F.mish, [real(12, by=3)]),
    function("softplus", partial(F.softplus, beta=2.0, threshold=3.0), [real(12, by=3)]),
    function("logsigmoid", F.logsigmoid, [real(12, by=9)]),
    function("softsign", F.softsign, [real(12, by=3)]),
    function("tanhshrink", F.tanhshrink, [real(12, by=3)]),
    function("hardshrink", partial(F.hardshrink, lambd=0.3), [real(12)]),
    function("softshrink", partial(F.softshrink, lambd=0.2), [real(12)]),
    function("hardtanh", partial(F.hardtanh, min_val=-0.3, max_val=0.8), [real(12)]),
    function("threshold", partial(F.threshold, threshold=0.3, value=-2.0), [real(12)]),
    function("prelu", F.prelu, [real(2, 3), real(1)]),
    function("prelu, of channels", F.prelu, [real(2, 3, 2), real(3)]),
    function("rrelu", partial(F.rrelu, lower=0.2, upper=0.5, training=False), [real(12)]),
    function("softmax", partial(F.softmax, dim=1), [real(2, 3, 2)]),
    function("softmin", partial(F.softmin, dim=0), [real(3, 2)]),
    function("log_softmax", partial(F.log_softmax, dim=-1), [real(2, 2, 3)]),
]

IMAGES = [
    function("linear", F.linear, [real(2, 2, 3), real(4, 3), real(4)]),
    function("linear, of a vector", F.linear, [real(3), real(4, 3)]),
    function("bilinear", F.bilinear, [real(2, 3), real(2, 4), real(2, 3, 4), real(2)]),
    function("conv1d, as large as before", partial(F.conv1d, padding="same", dilation=2), [real(1, 2, 7), real(2, 2, 3), real(2)]),
    function(
        "conv2d",
        partial(F.conv2d, stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2),
        [real(1, 4, 4, 4), real(4, 2, 2, 2), real(4)],
    ),
    function("conv3d", partial(F.conv3d, stride=(1, 2, 1), padding=(0, 1, 0), groups=2), [real(1, 2, 3, 3, 2), real(2, 1, 2, 2, 1)]),
    function(
        "conv_transpose1d",
        partial(F.conv_transpose1d, stride=2, padding=1, output_padding=1, groups=2),
        [real(1, 4, 4), real(4, 1, 3), real(2)],
    ),
    function(
        "conv_transpose2d",
        partial(F.conv_transpose2d, padding=(0, 1), dilation=(2, 1)),
        [real(1, 2, 2, 3), real(2, 2, 2, 3), real(2)],
    ),
    function("conv_transpose3d", partial(F.conv_transpose3d, stride=2), [real(1, 2, 2, 2, 1), real(2, 1, 2, 1, 2)]),
    function("fold", partial(F.fold, output_size=(4, 5), kernel_size=(2, 3), dilation=(2, 1), padding=(0, 1), stride=(1, 2)), [real(1, 6, 6)]),
    function("unfold", partial(F.unfold, kernel_size=(2, 3), dilation=(2, 1), padding=(0, 1), stride=(1, 2)), [real(1, 1, 4, 5)]),
    function("pixel_shuffle", partial(F.pixel_shuffle, upscale_factor=3), [real(2, 9, 1, 2)]),
    function("pixel_unshuffle", partial(F.pixel_unshuffle, downscale_factor=3), [real(1, 2, 3, 6)]),
    function("pad", partial(F.pad, pad=(1, 2, -1, 3), value=0.7), [real(2, 3, 3)]),
    function("pad, reflected", partial(F.pad, pad=(2, 1, 0, 1), mode="reflect"), [real(1, 2, 3, 3)]),
    function("pad, replicated", partial(F.pad, pad=(3, -1), mode="replicate"), [real(1, 2, 4)]),
    function("pad, around", partial(F.pad, pad=(2, 1, 0, 2), mode="circular"), [real(1, 2, 3, 3)]),
]
for name, size, more in (
    ("nearest", (1, 2, 5), {"size": 7}),
    ("nearest-exact", (1, 1, 3, 4), {"size": (5, 3)}),
    ("linear", (1, 2, 5), {"scale_factor": 1.5, "align_corners": True}),
    ("bilinear", (1, 1, 3, 4), {"scale_factor": (1.5, 2.3), "align_corners": False}),
    ("bicubic", (1, 1, 4, 4), {"size": (6, 7), "align_corners": True}),
    ("trilinear", (1, 1, 2, 3, 2), {"size": (3, 2, 4), "align_corners": False}),
    ("area", (1, 2, 5, 4), {"size": (3, 2)}),
):
    IMAGES.append(function("interpolate, " + name, partial(F.interpolate, mode=name, **more), [real(*size)]))
IMAGES += [
    function(
        "interpolate, places by extents",
        partial(F.interpolate, scale_factor=1.4, mode="linear", recompute_scale_factor=True),
        [real(1, 2, 5)],
    ),
    function("interpolate, antialiased", partial(F.interpolate, size=(3, 4), mode="bicubic", antialias=True), [real(1, 1, 7, 6)]),
]

POOLS = [
    function("max_pool1d", partial(F.max_pool1d, kernel_size=3, stride=2, padding=1, ceil_mode=True), [real(1, 2, 8)]),
    function("max_pool2d", partial(F.max_pool2d, kernel_size=2, stride=2, padding=1, dilation=2, ceil_mode=True), [real(1, 2, 5, 6)]),
    function("max_pool3d", partial(F.max_pool3d, kernel_size=(2, 3, 2), stride=(1, 2, 2), padding=(1, 1, 0)), [real(1, 1, 3, 4, 4)]),
    function("avg_pool1d", partial(F.avg_pool1d, kernel_size=3, stride=2, padding=1, ceil_mode=True, count_include_pad=False), [real(1, 2, 8)]),
    function("avg_pool2d", partial(F.avg_pool2d, kernel_size=(2, 3), stride=2, padding=1, divisor_override=5), [real(1, 2, 4, 5)]),
    function("avg_pool3d", partial(F.avg_pool3d, kernel_size=2, padding=1, ceil_mode=True, count_include_pad=False), [real(1, 2, 2, 3, 3)]),
]
for d, size, out in (("1d", (1, 2, 7), 3), ("2d", (1, 2, 5, 4), (3, None)), ("3d", (1, 1, 3, 4, 5), (2, None, 3))):
    average, adaptive, largest = (getattr(F, name % d) for name in ("adaptive_avg_pool%s", "adaptive_max_pool%s", "max_pool%s_with_indices"))
    places = getattr(F, "adaptive_max_pool%s_with_indices" % d)
    POOLS += [
        function("adaptive_avg_pool" + d, partial(average, output_size=out), [real(*size)]),
        function("adaptive_max_pool" + d, partial(adaptive, output_size=out), [real(*size)]),
        # Places are constants, behind the values.
        function("adaptive_max_pool%s_with_indices" % d, lambda x, f=places, out=out: flat(f(x, out)), [real(*size)]),
        function("max_pool%s_with_indices" % d, lambda x, f=largest: flat(f(x, 2, stride=1)), [real(*size)]),
    ]

STATISTICS = [real(2), positive(2)]
NORMS = [
    function("batch_norm", partial(F.batch_norm, eps=0.1), [real(3, 2, 2)] + STATISTICS + [real(2), real(2)], constants=(1, 2)),
    function("batch_norm, in training", partial(normed, momentum=0.3), [real(3, 2, 2)] + STATISTICS + [real(2), real(2)], constants=(1, 2)),
    function("layer_norm", lambda x, w, b: F.layer_norm(x, (2, 3), w, b, 0.01), [real(2, 2, 3), real(2, 3), real(2, 3)]),
    function("residual_layer_norm", residual_layer_norm, [real(3, 4), real(3, 4), real(4), real(4)]),
    function("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b, 0.01), [real(2, 4, 3), real(4), real(4)]),
    function("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b, eps=0.01), [real(2, 2, 4), real(2), real(2)]),
    function(
        "instance_norm, by running statistics",
        lambda x, m, v: F.instance_norm(x, m, v, use_input_stats=False),
        [real(2, 2, 4)] + STATISTICS,
        constants=(1, 2),
    ),
    function("rms_norm", lambda x, w: F.rms_norm(x, (2, 3), w, 0.01), [real(2, 2, 3), real(2, 3)]),
    function("local_response_norm", partial(F.local_response_norm, size=3, alpha=0.5, beta=0.6, k=2.0), [real(2, 4, 3)]),
    function("normalize", F.normalize, [real(2, 3)]),
    function("normalize, p 3", partial(F.normalize, p=3.0, dim=0), [real(3, 2)]),
    function("cosine_similarity", partial(F.cosine_similarity, dim=0), [real(3, 2), real(3, 1)]),
    function("pairwise_distance", partial(F.pairwise_distance, p=3.0, eps=0.01, keepdim=True), [real(2, 3), real(2, 3)]),
    function("pdist", partial(F.pdist, p=3.0), [real(4, 3)]),
    function("dropout", partial(F.dropout, training=False), [real(2, 3)]),
    function("dropout2d", partial(F.dropout2d, training=False), [real(1, 2, 2, 2)]),
    function("dropout3d", partial(F.dropout3d, training=False), [real(1, 2, 1, 2, 2)]),
    function("alpha_dropout", partial(F.alpha_dropout, training=False), [real(2, 3)]),
    function("feature_alpha_dropout", partial(F.feature_alpha_dropout, training=False), [real(1, 2, 2, 2)]),
]

ROWS = [
    function("one_hot", partial(F.one_hot, num_classes=5), [index(4, 2, 3)]),
    function("embedding", partial(F.embedding, padding_idx=2), [index(4, 2, 3), real(4, 3)]),
    function("embedding, of limited norm", partial(F.embedding, max_norm=0.75, norm_type=3.0), [index(4, 5), real(4, 3)], constants=(1,)),
    function(
        "embedding_bag",
        partial(embedding_bag, starts=[0, 2, 6], mode="mean"),
        [index(5, 6), real(5, 3)],
        twin=bag(lambda rows: rows.mean(0), [0, 2, 6]),
    ),
    function(
        "embedding_bag, weighted",
        partial(embedding_bag, starts=[0, 1, 4, 6], mode="sum", last=True),
        [index(5, 6), real(5, 3), real(6)],
        twin=bag(lambda rows: rows.sum(0), [0, 1, 4, 6]),
    ),
    function(
        "embedding_bag, largest",
        partial(embedding_bag, starts=[0, 3, 6], mode="max"),
        [index(5, 6), real(5, 3)],
        twin=bag(lambda rows: rows.amax(0), [0, 3, 6]),
    ),
    function(
        "multi_head_attention_forward",
        lambda q, k, v, w, b, bk, bv, ow, ob, mask: attention(q, k, v, w, b, bk, bv, ow, ob, heads=2, zero=True, attn_mask=mask),
        [real(2, 1, 4), real(3, 1, 4), real(3, 1, 4), real(12, 4), real(12), real(1, 1, 4), real(1, 1, 4), real(4, 4), real(4), real(2, 3)],
    ),
    function(
        "multi_head_attention_forward, of other columns",
        lambda q, k, v, b, wq, wk, wv, ow, ob: attention(
            *(q, k, v, None, b, None, None, ow, ob),
            heads=2,
            use_separate_proj_weight=True,
            q_proj_weight=wq,
            k_proj_weight=wk,
            v_proj_weight=wv,
            average_attn_weights=False,
        ),
        [real(2, 2, 4), real(3, 2, 3), real(3, 2, 2), real(12), real(4, 4), real(4, 3), real(4, 2), real(4, 4), real(4)],
    ),
    function(
        "multi_head_attention_forward, causal, with a mask that is not read",
        lambda x, w, b, ow, ob, mask: F.multi_head_attention_forward(
            *(x, x, x, 4, 2, w, b, None, None, False, 0.0, ow, ob), attn_mask=mask, is_causal=True, need_weights=False
        )[0],
        [real(3, 1, 4), real(12, 4), real(12), real(4, 4), real(4), real(3, 3)],
        constants=(5,),
    ),
]

TWO = [real(2, 3), real(2, 3)]
LOSSES = [
    function("l1_loss", F.l1_loss, TWO),
    function("mse_loss", F.mse_loss, TWO),
    function("smooth_l1_loss", partial(F.smooth_l1_loss, beta=0.5), TWO),
    function("huber_loss", partial(F.huber_loss, delta=0.6, reduction="sum"), TWO),
    function(
        "binary_cross_entropy",
        F.binary_cross_entropy,
        [positive(2, 3), positive(2, 3), real(2, 3)],
        constants=(2,),
        twin=lambda *t: entropy(*t).mean(),
    ),
    function(
        "binary_cross_entropy_with_logits",
        lambda x, y, w, p: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p),
        [real(2, 3), positive(2, 3), real(3), positive(3)],
        constants=(2, 3),
    ),
    function("nll_loss", partial(F.nll_loss, ignore_index=1), [real(5, 4), index(4, 5), positive(4)], constants=(2,)),
    function("nll_loss, of images", partial(F.nll_loss, reduction="sum"), [real(1, 3, 2, 2), index(3, 1, 2, 2)]),
    function("cross_entropy", partial(F.cross_entropy, ignore_index=1, label_smoothing=0.2), [real(5, 4), index(4, 5), positive(4)], constants=(2,)),
    function("cross_entropy, of probabilities", partial(F.cross_entropy, label_smoothing=0.2), [real(3, 4), positive(3, 4), positive(4)], constants=(2,)),
    function(
        "ctc_loss",
        lambda x, y: F.ctc_loss(x.log_softmax(2), y, (4, 3, 4), (2, 1, 0), blank=3),
        [real(4, 3, 4), index(3, 3, 2)],
        twin=lambda x, y: (alignments(x.log_softmax(2), y, (4, 3, 4), (2, 1, 0), 3) / torch.tensor([2, 1, 1])).mean(),
    ),
    function("kl_div", partial(F.kl_div, reduction="batchmean"), [real(2, 3), positive(2, 3)]),
    function("kl_div, of logarithms", partial(F.kl_div, reduction="sum", log_target=True), TWO),
    function("poisson_nll_loss", partial(F.poisson_nll_loss, log_input=False, full=True), [positive(2, 3), positive(2, 3, by=3)]),
    function("hinge_embedding_loss", partial(F.hinge_embedding_loss, margin=0.4), [real(2, 3), signs(2, 3)]),
    function("soft_margin_loss", partial(F.soft_margin_loss, reduction="sum"), [real(2, 3), signs(2, 3)]),
    function(
        "multilabel_margin_loss",
        lambda x: F.multilabel_margin_loss(x, torch.tensor([[2, 0, -1, 3, 1]] * 2)),
        [real(2, 5)],
        twin=sorted_margins,
    ),
    function("cosine_embedding_loss", partial(F.cosine_embedding_loss, margin=-0.3), [real(3, 4), real(3, 4), signs(3)]),
    function("margin_ranking_loss", partial(F.margin_ranking_loss, margin=0.3, reduction="sum"), TWO + [signs(2, 3)]),
    function("triplet_margin_loss", partial(F.triplet_margin_loss, margin=0.5, p=3.0, eps=0.01, swap=True), [real(2, 4)] * 3),
    function(
        "triplet_margin_with_distance_loss",
        lambda a, p, n: F.triplet_margin_with_distance_loss(
            a, p, n, distance_function=lambda x, y: (x - y).square().sum(1), margin=2.0, swap=True, reduction="sum"
        ),
        [real(2, 4)] * 3,
    ),
    function(
        "multi_margin_loss",
        lambda x, y, w: F.multi_margin_loss(x, y, p=2, margin=0.6, weight=w, reduction="sum"),
        [real(3, 4), index(4, 3), positive(4)],
        constants=(2,),
        twin=powers_of_margins,
    ),
    function(
        "multilabel_soft_margin_loss",
        lambda x, y, w: F.multilabel_soft_margin_loss(x, y, w),
        [real(2, 3), positive(2, 3), positive(3)],
        constants=(2,),
    ),
]

FILES = {
    "functions_of_elements": ACTIVATIONS,
    "functions_of_images": IMAGES,
    "functions_of_windows": POOLS,
    "functions_of_norms": NORMS,
    "functions_of_rows": ROWS,
    "functions_of_losses": LOSSES,
}
