// Operators on a tensor itself: what it is, its copies and conversions, views, history.
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

// A conversion that leaves out what it does not change.
Tensor to(const Call& a, std::optional<Device> device, std::optional<ScalarType> dtype, size_t i) {
  return a.tensor(0).to(TensorOptions().dtype(dtype).device(device), a.truth(i), a.truth(i + 1),
                        a.size() > i + 2 ? a.may_format(i + 2) : std::nullopt);
}
IValue gradients(const Call& a) {
  std::vector<Tensor> given;
  if (!a.none(2))
    for (std::optional<Tensor>& item : a.optional_tensors(2))
      given.push_back(item ? std::move(*item) : Tensor());
  const std::vector<Tensor> found = autograd::grad(a.tensors(0).vec(), a.tensors(1).vec(), given,
                                                   a.may_truth(3), a.truth(4), a.truth(5));
  IValue::GenericList made;
  for (const Tensor& item : found) made.push_back(item.defined() ? IValue(item) : IValue());
  return made;
}
bool is_format(const Tensor& self, int64_t format) { return self.is_contiguous(format_of(format)); }

#define RAMET_IS(name) RAMET_LINE("prim::" #name "(Tensor a) -> bool", a.tensor(0).name())

const Line kTensors[] = {
    RAMET_LINE("aten::size(Tensor self) -> int[]", IValue(a.tensor(0).sizes())),
    RAMET_LINE("aten::size.int(Tensor self, int dim) -> int", a.tensor(0).size(a.integer(1))),
    RAMET_LINE("aten::sym_size(Tensor self) -> int[]", IValue(a.tensor(0).sizes())),
    RAMET_LINE("aten::sym_size.int(Tensor self, int dim) -> int", a.tensor(0).size(a.integer(1))),
    RAMET_LINE("aten::stride(Tensor self) -> int[]", IValue(a.tensor(0).strides())),
    RAMET_LINE("aten::stride.int(Tensor self, int dim) -> int", a.tensor(0).stride(a.integer(1))),
    RAMET_LINE("aten::storage_offset(Tensor self) -> int", a.tensor(0).storage_offset()),
    RAMET_LINE("aten::numel(Tensor self) -> int", a.tensor(0).numel()),
    RAMET_LINE("aten::sym_numel(Tensor self) -> int", a.tensor(0).numel()),
    RAMET_LINE("aten::dim(Tensor self) -> int", a.tensor(0).dim()),
    RAMET_LINE("aten::element_size(Tensor self) -> int",
               static_cast<int64_t>(a.tensor(0).element_size())),
    RAMET_LINE("prim::itemsize(Tensor a) -> int", static_cast<int64_t>(a.tensor(0).element_size())),
    RAMET_LINE("aten::item(Tensor self) -> Scalar", IValue(a.tensor(0).item())),
    RAMET_LINE("aten::_local_scalar_dense(Tensor self) -> Scalar", IValue(a.tensor(0).item())),
    RAMET_LINE("aten::is_nonzero(Tensor self) -> bool", a.tensor(0).is_nonzero()),
    RAMET_LINE("aten::is_floating_point(Tensor self) -> bool", a.tensor(0).is_floating_point()),
    RAMET_LINE("aten::is_complex(Tensor self) -> bool", a.tensor(0).is_complex()),
    RAMET_LINE("aten::is_signed(Tensor self) -> bool", a.tensor(0).is_signed()),
    RAMET_LINE("aten::is_same_size(Tensor self, Tensor other) -> bool",
               a.tensor(0).is_same_size(a.tensor(1))),
    RAMET_LINE("aten::is_contiguous(Tensor self) -> bool", a.tensor(0).is_contiguous()),
    RAMET_LINE("aten::is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool",
               is_format(a.tensor(0), a.integer(1))),
    RAMET_LINE("aten::is_leaf(Tensor self) -> bool", a.tensor(0).is_leaf()),
    RAMET_LINE("aten::is_inference(Tensor self) -> bool", a.tensor(0).is_inference()),
    RAMET_LINE("aten::is_pinned(Tensor self, Device? device=None) -> bool",
               a.tensor(0).is_pinned()),
    RAMET_LINE("aten::get_device(Tensor self) -> int",
               a.tensor(0).is_cuda() ? a.tensor(0).get_device() : int64_t{-1}),
    RAMET_LINE("prim::dtype(Tensor a) -> int", number_of(a.tensor(0).scalar_type())),
    RAMET_LINE("prim::device(Tensor a) -> Device", IValue(a.tensor(0).device())),
    RAMET_LINE("prim::layout(Tensor a) -> Layout", int64_t{0}),
    RAMET_LINE("prim::requires_grad(Tensor a) -> bool", a.tensor(0).requires_grad()),
    RAMET_IS(is_cuda),
    RAMET_IS(is_sparse),
    RAMET_IS(is_sparse_csr),
    RAMET_IS(is_quantized),
    RAMET_IS(is_mkldnn),
    RAMET_IS(is_meta),
    RAMET_IS(is_nested),
    RAMET_IS(is_xpu),
    RAMET_IS(is_mps),
    RAMET_LINE("prim::is_cpu(Tensor a) -> bool", a.tensor(0).device().type() == kCPU),
    RAMET_LINE("prim::data(Tensor(a) a) -> Tensor(a)", a.tensor(0).data()),
    RAMET_LINE("aten::data(Tensor self) -> Tensor", a.tensor(0).data()),
    RAMET_LINE("prim::grad(Tensor a) -> Tensor(*)", a.tensor(0).grad()),
    RAMET_LINE("prim::name(Tensor a) -> str?", IValue()),
    RAMET_LINE("aten::len.Tensor(Tensor t) -> int", a.tensor(0).size(0)),
    RAMET_LINE("aten::to.device(Tensor(a) self, Device device, ScalarType dtype, "
               "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> "
               "Tensor(a)",
               to(a, a.may_device(1), a.dtype(2), 3)),
    RAMET_LINE("aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, "
               "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
               to(a, std::nullopt, a.dtype(1), 2)),
    RAMET_LINE("aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, "
               "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
               to(a, a.tensor(1).device(), a.tensor(1).scalar_type(), 2)),
    RAMET_LINE("aten::to.dtype_layout(Tensor(a) self, *, " RAMET_OPTIONS
               ", bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> "
               "Tensor(a)",
               to(a, a.may_device(3), a.may_dtype(1), 5)),
    RAMET_LINE("aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, "
               "bool non_blocking=False, bool copy=False) -> Tensor(b|a)",
               to(a, a.may_device(1), a.may_dtype(2), 3)),
    RAMET_LINE("aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, "
               "bool copy=False) -> Tensor(b|a)",
               to(a, std::nullopt, a.may_dtype(1), 2)),
    RAMET_LINE("aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> "
               "Tensor(b|a)",
               to(a, std::nullopt, std::nullopt, 1)),
    RAMET_LINE("aten::_to_copy(Tensor self, *, " RAMET_OPTIONS
               ", bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
               a.tensor(0).to(TensorOptions().dtype(a.may_dtype(1)).device(a.may_device(3)),
                              a.truth(5), true, a.may_format(6))),
    RAMET_LINE("aten::type_as(Tensor self, Tensor other) -> Tensor",
               a.tensor(0).type_as(a.tensor(1))),
    RAMET_LINE("aten::cpu(Tensor(a) self) -> Tensor(b|a)", a.tensor(0).cpu()),
    RAMET_LINE("aten::cuda(Tensor(a) self) -> Tensor(b|a)", a.tensor(0).cuda()),
    RAMET_LINE("aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)",
               a.tensor(0).contiguous(format_of(a.integer(1)))),
    RAMET_LINE("aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
               a.tensor(0).clone(a.may_format(1))),
    RAMET_LINE("aten::alias(Tensor(a) self) -> Tensor(a)", a.tensor(0).view(a.tensor(0).sizes())),
    RAMET_LINE("aten::lift_fresh(Tensor(a) self) -> Tensor(a)", a.tensor(0)),
    RAMET_LINE("aten::lift_fresh_copy(Tensor self) -> Tensor", a.tensor(0).clone()),
    RAMET_LINE("aten::detach(Tensor(a) self) -> Tensor(a)", a.tensor(0).detach()),
    RAMET_LINE("aten::detach_(Tensor(a!) self) -> Tensor(a!)", a.tensor(0).detach_()),
    RAMET_LINE("aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)",
               a.tensor(0).requires_grad_(a.truth(1))),
    RAMET_LINE("aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
               a.tensor(0).copy_(a.tensor(1), a.truth(2))),
    RAMET_LINE("aten::copy_.int(Tensor(a!) self, int other) -> Tensor(a!)",
               a.tensor(0).copy_(scalar_to_tensor(a.number(1)))),
    RAMET_LINE("aten::copy_.float(Tensor(a!) self, float other) -> Tensor(a!)",
               a.tensor(0).copy_(scalar_to_tensor(a.number(1)))),
    RAMET_LINE("aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
               a.tensor(0).fill_(a.number(1))),
    RAMET_LINE("aten::fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
               a.tensor(0).fill_(a.tensor(1))),
    RAMET_LINE("aten::zero_(Tensor(a!) self) -> Tensor(a!)", a.tensor(0).zero_()),
    RAMET_LINE("aten::resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None) -> "
               "Tensor(a!)",
               a.tensor(0).resize_(a.integers(1), a.may_format(2))),
    RAMET_LINE("aten::resize_as_(Tensor(a!) self, Tensor the_template, *, "
               "MemoryFormat? memory_format=None) -> Tensor(a!)",
               a.tensor(0).resize_as_(a.tensor(1), a.may_format(2))),
    RAMET_LINE("aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)",
               a.tensor(0).view_as(a.tensor(1))),
    RAMET_LINE("aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)",
               a.tensor(0).reshape_as(a.tensor(1))),
    RAMET_LINE("aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)",
               a.tensor(0).expand_as(a.tensor(1))),
    RAMET_LINE("aten::expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a)",
               a.tensor(0).expand(a.integers(1))),
    RAMET_LINE("aten::_unsafe_view(Tensor self, int[] size) -> Tensor",
               a.tensor(0).view(a.integers(1))),
    RAMET_LINE("aten::_reshape_alias(Tensor(a) self, int[] size, int[] stride) -> Tensor(a)",
               a.tensor(0).as_strided(a.integers(1), a.integers(2), a.tensor(0).storage_offset())),
    RAMET_LINE("aten::numpy_T(Tensor(a) self) -> Tensor(a)", a.tensor(0).numpy_T()),
    RAMET_LINE("aten::numpy_T.a(Tensor(a) self) -> Tensor(a)", a.tensor(0).numpy_T()),
    RAMET_LINE("aten::mT.a(Tensor(a) self) -> Tensor(a)", a.tensor(0).mT()),
    RAMET_LINE("aten::mH.a(Tensor(a) self) -> Tensor(a)", a.tensor(0).mH()),
    RAMET_LINE("aten::unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)",
               a.tensor(0).unflatten(a.integer(1), a.integers(2))),
    RAMET_LINE("aten::squeeze(Tensor(a) self) -> Tensor(a)", a.tensor(0).squeeze()),
    RAMET_LINE("aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
               a.tensor(0).squeeze(a.integer(1))),
    RAMET_LINE("aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)",
               a.tensor(0).squeeze(a.integers(1))),
    RAMET_LINE("aten::unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]",
               a.tensor(0).split(a.integer(1), a.integer(2))),
    RAMET_LINE("aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]",
               a.tensor(0).chunk(a.integer(1), a.integer(2))),
    RAMET_LINE("aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]",
               broadcast_tensors(a.tensors(0))),
    RAMET_LINE("aten::atleast_1d(Tensor self) -> Tensor", atleast_1d(a.tensor(0))),
    RAMET_LINE("aten::atleast_2d(Tensor self) -> Tensor", atleast_2d(a.tensor(0))),
    RAMET_LINE("aten::atleast_3d(Tensor self) -> Tensor", atleast_3d(a.tensor(0))),
    RAMET_LINE("aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
               number_of(result_type(a.tensor(0), a.tensor(1)))),
    RAMET_LINE("aten::result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType",
               number_of(result_type(a.tensor(0), a.number(1)))),
    RAMET_LINE("aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType",
               number_of(promote_types(a.dtype(0), a.dtype(1)))),
    RAMET_LINE("aten::can_cast(ScalarType from_, ScalarType to) -> bool",
               can_cast(a.dtype(0), a.dtype(1))),
    RAMET_LINE("aten::grad(Tensor[] outputs, Tensor[] inputs, Tensor?[]? grad_outputs=None, "
               "bool? retain_graph=None, bool create_graph=False, bool allow_unused=False) -> "
               "Tensor?[]",
               gradients(a)),
    RAMET_LINE_DO(
        "aten::backward(Tensor self, Tensor? gradient=None, bool? retain_graph=None, "
        "bool create_graph=False) -> ()",
        a.tensor(0).backward(a.may_tensor(1).value_or(Tensor()), a.may_truth(2), a.truth(3))),
    RAMET_LINE_DO("aten::retain_grad(Tensor(a!) self) -> ()", a.tensor(0).retain_grad()),
    RAMET_LINE("prim::AutogradZero() -> Tensor", Tensor()),
};

}  // namespace

Lines lines_of_tensors() { return kTensors; }

}  // namespace ramet::script
