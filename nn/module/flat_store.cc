#include "nn/module/flat_store.h"

#include <unordered_set>

#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "runtime/capture/capture.h"
#include "runtime/tensor/storage_ref.h"

namespace ramet::nn {
namespace {

bool is_alias(const StorageImpl* s) { return s->memory_of && s->memory_of != s; }

bool movable(const Tensor& t) {
  if (!t.defined() || !t.is_leaf() || !t.is_floating_point() || !t.is_contiguous() || t.is_view() ||
      t.is_inference())
    return false;
  const StorageImpl* s = t.storage_impl();
  if (s->external == StorageImpl::kForeign || s->external == StorageImpl::kPinned ||
      s->version_of || s->copy_on_write)
    return false;
  // No other tensor shares the memory, and the tensor is all of it.
  return s->refs.load(std::memory_order_acquire) == 1 && t->data == s->data;
}

// A piece of `flat` with a version counter of its own.
Tensor over_piece(const Tensor& flat, int64_t offset_bytes, const Tensor& like) {
  return Tensor(
      member_of(flat, offset_bytes, like.sizes(), like.raw_strides(), like.scalar_type()));
}

// `total` elements from the memory of `first` on, as a tensor.
Tensor whole(const TensorBase& first, int64_t total) {
  StorageImpl* root = first.storage_impl()->memory_of;
  const int64_t offset = static_cast<char*>(first->data) - static_cast<char*>(root->data);
  return Tensor(TensorBase::over(root, offset, {total}, {1}, first.scalar_type()));
}

// Do these lie in one buffer, at these offsets from the first one?
bool in_place(const std::vector<const TensorBase*>& tensors, const FlatStore& store) {
  const int64_t item = static_cast<int64_t>(tensors[0]->element_size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorBase& t = *tensors[i];
    if (!t.defined() || !is_alias(t.storage_impl()) ||
        t.storage_impl()->memory_of != tensors[0]->storage_impl()->memory_of)
      return false;
    if (static_cast<char*>((*tensors[0])->data) + store.segments[i].offset * item != (t)->data)
      return false;
  }
  return true;
}

void fill_store(FlatStore& store, ArrayRef<Tensor> parameters) {
  const Tensor& like = parameters[store.segments[0].index];
  const int64_t item = static_cast<int64_t>(like.element_size());
  int64_t total = 0;
  for (FlatStore::Segment& s : store.segments) {
    s.offset = total;
    total += flat_padded(s.numel * item) / item;
  }
  const TensorOptions options = TensorOptions(like.device()).dtype(like.scalar_type());

  std::vector<const TensorBase*> tensors;
  for (const FlatStore::Segment& s : store.segments) tensors.push_back(&parameters[s.index]);
  if (in_place(tensors, store)) {
    store.parameters = whole(*tensors[0], total);
  } else {
    capture::refuse("flatten_parameters", "parameters are moved");
    store.parameters = zeros({total}, options);
    std::vector<Tensor> made;
    for (const FlatStore::Segment& s : store.segments) {
      made.push_back(over_piece(store.parameters, s.offset * item, parameters[s.index]));
      autograd::copy_values(made.back(), parameters[s.index]);
    }
    for (size_t i = 0; i < made.size(); ++i) {
      const Tensor& parameter = parameters[store.segments[i].index];
      StorageImpl* to = made[i].storage_impl();
      // what saved it before must not see a change
      to->own_version.store(parameter.version(), std::memory_order_relaxed);
      add_ref(to->refs);
      Tensor(parameter).repoint(to);
    }
  }

  std::vector<const TensorBase*> places;
  for (const FlatStore::Segment& s : store.segments)
    places.push_back(&autograd::grad_accumulator(parameters[s.index].impl())->where);
  bool kept = true;
  for (size_t i = 0; i < places.size(); ++i) {
    const Tensor& parameter = parameters[store.segments[i].index];
    kept = kept && places[i]->defined() && same_sizes(*places[i], parameter) &&
           (*places[i])->key() == parameter->key();
  }
  if (kept && in_place(places, store)) {
    store.gradients = whole(*places[0], total);
    return;
  }
  capture::refuse("flatten_parameters", "gradients get places");
  store.gradients = zeros({total}, options);
  for (const FlatStore::Segment& s : store.segments)
    autograd::set_grad_destination(
        parameters[s.index], over_piece(store.gradients, s.offset * item, parameters[s.index]));
}

}  // namespace

FlatParameters flatten_parameters(ArrayRef<Tensor> parameters) {
  const NoGradGuard off;
  FlatParameters out;
  std::unordered_set<const TensorImpl*> seen;
  std::vector<uint16_t> keys;  // of the stores
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& t = parameters[i];
    if (t.defined() && !seen.insert(t.impl()).second) continue;
    if (!movable(t) || t.numel() == 0) {
      out.loose.push_back(i);
      continue;
    }
    size_t k = 0;
    while (k < keys.size() && keys[k] != t->key()) ++k;
    if (k == keys.size()) {
      keys.push_back(t->key());
      out.stores.emplace_back();
    }
    out.stores[k].segments.push_back({i, 0, t.numel()});
  }
  for (FlatStore& store : out.stores) fill_store(store, parameters);
  return out;
}

}  // namespace ramet::nn
