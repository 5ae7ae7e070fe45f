#include "parallel/distributed/group/operand_internal.h"

#include <cstring>

#include "autograd/grad_mode.h"
#include "autograd/graph/inplace.h"
#include "autograd/ops.h"
#include "autograd/ops/make/copy.h"
#include "runtime/devices/devices.h"

namespace ramet::distributed::detail {

Operand::Operand(const char* op, const char* what, const Tensor& t)
    : staged_(std::make_shared<std::unique_ptr<Staging>>()) {
  RAMET_CHECK(t.defined(), op, what, " is undefined");
  const NoGradGuard off;
  const DeviceGuard here(t.device());  // the memory of logical CPU devices is host memory
  user_ = t;
  dense_ = t.detach().contiguous();
  direct_ = dense_.numel() == 0 || (t.is_contiguous() && dense_.data_ptr() == t.data_ptr());
  if (direct_) dense_.ptr();  // waits until it is written
}

const char* Operand::data(Channel& channel) const {
  if (user_.is_cpu() || channel.over_cards()) return static_cast<const char*>(dense_->data);
  if (!*staged_) {
    auto staging = std::make_unique<Staging>(channel.staging(bytes()));
    read(channel, staging->data());
    *staged_ = std::move(staging);
  }
  return (*staged_)->data();
}

char* Operand::landing(const Channel& channel) const {
  return user_.is_cpu() || channel.over_cards() ? place() : nullptr;
}

void Operand::read(Channel& channel, void* to, size_t bytes) const {
  if (bytes == 0) return;
  if (user_.is_cpu() || channel.over_cards()) return channel.copy(to, dense_->data, bytes);
  gpu::library()->copy_after(*channel.tensor_place().ready, to, Device(kCPU, 0), dense_->data,
                             user_.device(), bytes);
}

void Operand::write(Channel& channel, const void* from, size_t bytes) const {
  if (bytes == 0) return;
  channel.complete();
  if (from == dense_->data) return;
  if (user_.is_cpu() || channel.over_cards()) return channel.copy(dense_->data, from, bytes);
  gpu::library()->copy_after(*channel.tensor_place().ready, dense_->data, user_.device(), from,
                             Device(kCPU, 0), bytes);
}

void Operand::write(Channel& channel, const char* op, const void* from) const {
  const NoGradGuard off;
  write(channel, from, bytes());
  if (!direct_) {
    const DeviceGuard here(user_.device());
    channel.compute([&] { autograd::copy_values(user_, dense_); });
  }
  written(op);
}

void Operand::written(const char* op) const { autograd::wrote(op, user_); }

CommonDevice& CommonDevice::add(const Operand& x) {
  const Tensor& t = x.tensor();
  if (!first_.defined()) first_ = t;
  RAMET_CHECK(t.device() == first_.device() || (t.is_cpu() && first_.is_cpu()), op_,
              "tensors on two devices: got ", describe(first_), " and ", describe(t),
              ", expected all of them in host memory or on one GPU");
  return *this;
}

CommonDevice& CommonDevice::add(const std::vector<Operand>& list) {
  for (const Operand& x : list) add(x);
  return *this;
}

}  // namespace ramet::distributed::detail
