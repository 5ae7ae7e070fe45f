#!/usr/bin/env python3
"""Counts the public functions and methods that the comparison with LibTorch has a case for, and lists those without.

  compare --list | tools/compare/coverage.py

Functions are those of autograd/ops/*/*.h, methods those of autograd/tensor.h. It fails on a function that neither has a case nor
stands in NOT_COMPARED below with a reason, on an entry there that has a case, and on a case that covers no such name.
"""

import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import signatures  # noqa: E402

NOT_COMPARED = {
    "broadcast_sizes": "not in LibTorch: broadcast_tensors shows it",
    "accessor data_ptr const_data_ptr mutable_data_ptr item is_nonzero": "raw values: every comparison reads them",
    "storage": "memory: tests/autograd/tensor_test.cc",
    "from_file": "memory of a file: tests/autograd/ops/factory_test.cc",
    "generic_packed_accessor packed_accessor packed_accessor32 packed_accessor64": "raw values: tests/autograd/tensor_test.cc",
    "_base _version grad backward tensor_data detach_ grad_fn mutable_grad requires_grad_ retain_grad retains_grad remove_hook set_data "
    "set_requires_grad register_hook register_post_accumulate_grad_hook variable_data requires_grad is_leaf is_view shallow":
        "the graph's bookkeeping: tests/autograd",
    "_upsample_bicubic2d_aa_out _upsample_bilinear2d_aa_out _upsample_nearest_exact1d_out _upsample_nearest_exact2d_out "
    "_upsample_nearest_exact3d_out addbmm_out addmv_out addr_out amax_out amin_out aminmax_out argmax_out argmin_out "
    "bincount_out block_diag_out bucketize_out chain_matmul_out channel_shuffle_out cholesky_inverse_out cholesky_solve_out "
    "clamp_max_out clamp_min_out col2im_out column_stack_out concat_out count_nonzero_out cross_out cumprod_out cumsum_out "
    "diag_embed_out diagonal_scatter_out dist_out dot_out dstack_out embedding_out embedding_renorm_ embedding_renorm_out "
    "floor_divide_ floor_divide_out fmod_ fmod_out frobenius_norm_out gather_out histc_out hstack_out im2col_out "
    "index_add_out index_copy_out index_fill_out index_reduce_out index_select_out inner_out inverse_out kron_out lerp_out "
    "linalg_cholesky_out linalg_cross_out linalg_det_out linalg_eigvalsh_out linalg_matrix_norm_out linalg_matrix_power_out "
    "linalg_multi_dot_out linalg_norm_out linalg_pinv_out linalg_solve_out linalg_solve_triangular_out linalg_svdvals_out "
    "linalg_vector_norm_out linear_out log_softmax_out logcumsumexp_out logsumexp_out masked_fill_out masked_scatter_out "
    "masked_select_out matrix_power_out max_out min_out msort_out mv_out nanmean_out nanquantile_out nansum_out nonzero_out "
    "norm_out outer_out pixel_shuffle_out pixel_unshuffle_out prod_out put_out quantile_out remainder_ remainder_out "
    "renorm_out repeat_interleave_out roll_out rot90_out scatter_add_out scatter_out scatter_reduce_out select_scatter_out "
    "slice_scatter_out softmax_out stack_out std_out take_along_dim_out take_out tensordot_out trace_out triu_indices_out "
    "upsample_bicubic2d_out upsample_bilinear2d_out upsample_linear1d_out upsample_nearest1d_out upsample_nearest2d_out "
    "upsample_nearest3d_out upsample_trilinear3d_out var_out vdot_out vstack_out":
        "the function's result, copied: tests/autograd/table/op_table_*.cc hold them to the function, which is compared",
    "adaptive_avg_pool2d_out adaptive_avg_pool3d_out adaptive_max_pool2d_out adaptive_max_pool3d_out arange_out avg_pool2d_out "
    "avg_pool3d_out bernoulli_out binary_cross_entropy_out empty_out eye_out huber_loss_out index_out linalg_eigh_out "
    "linalg_matrix_rank_out linalg_qr_out linalg_slogdet_out linalg_svd_out linspace_out max_pool2d_with_indices_out "
    "max_pool3d_with_indices_out mse_loss_out multinomial_out nll_loss2d_out nll_loss_out normal_out nuclear_norm_out rand_out "
    "randn_out randperm_out slogdet_out smooth_l1_loss_out svd_out":
        "the same of pools, losses, decompositions, draws and what makes tensors",
    "multi_margin_loss_out multilabel_margin_loss_out reflection_pad1d_out reflection_pad2d_out reflection_pad3d_out "
    "replication_pad1d_out replication_pad2d_out replication_pad3d_out":
        "the same of activations, losses and borders that are made of others",
    "linear_cross_entropy":
        "not in LibTorch: tests/autograd hold it to linear and cross_entropy_loss, which are compared",
    "packed_scaled_dot_product_attention":
        "not in LibTorch: tests/autograd hold it to scaled_dot_product_attention, which is compared",
    "_upsample_nearest_exact3d": "of one kernel with the forms of 1 and 2 dimensions, which are compared",
    "cross_entropy_loss_consuming linear_gelu_linear residual_layer_norm":
        "not in LibTorch: tests/autograd hold them to cross_entropy_loss and layer_norm, which are compared",
    "cholesky qr inv solve solve_triangular svdvals eigh eigvalsh pinv matrix_rank": "namespace linalg's names of linalg_*, which are compared",
    "clip_ clip_out concatenate_out row_stack_out":
        "another name of a function whose form is compared",
    "fused_gru_cell fused_lstm_cell": "not in LibTorch: rows of the operation table hold them to formulas, recurrent modules to its numbers",
    "name record_stream": "what is not of values: errors, and what does nothing here",
    "can_cast result_type": "every promotion of two operands shows them",
    "get_device output_nr cpu cuda pin_memory is_pinned is_inference is_complex is_signed is_contiguous layout options stride strides print "
    "type toBackend has_storage is_alias_of is_non_overlapping_and_dense":
        "what a tensor is, and where",
    "is_conj is_hip is_meta is_mkldnn is_mps is_neg is_nested is_quantized is_sparse is_sparse_csr is_xla is_xpu":
        "kinds of tensors that are not here",
}


def public_names():
    """Names of functions and methods, each with its header."""
    methods, functions = signatures.declared()
    names = {entry.name: entry.header for entry in functions}
    for entry in methods:
        if entry.owner.name == "Tensor" and "const" in entry.pieces()[2]:
            names.setdefault(entry.name, entry.header)
    return names


def main():
    public = public_names()
    covered = set()
    for line in sys.stdin:
        covered.update(name for name in line.partition(":")[2].split() if not name.startswith("operator"))
    excused = {name for names in NOT_COMPARED for name in names.split()}
    problems = [f"{public[n]}: {n} has no case in tools/compare" for n in sorted(set(public) - covered - excused)]
    problems += [f"{n} has a case: take it off NOT_COMPARED in tools/compare/coverage.py" for n in sorted(excused & covered)]
    problems += [f"a case covers {n}, which is no public name" for n in sorted(covered - set(public))]
    problems += [f"NOT_COMPARED names {n}, which is no public name" for n in sorted(excused - set(public))]
    for problem in problems:
        print(problem)
    wanted = set(public) - excused
    print(f"coverage: {len(covered & wanted)} of {len(wanted)} public functions and methods have a case; "
          f"{len(excused & set(public))} are not compared, with a reason")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
