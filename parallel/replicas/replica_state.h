// Members of a module that keep their value in its replicas from step to step: replica_state<T> and
// shared<T>.
//
// Note [Plain members of replicas]
// A replica is a copy of the module object, so what its forward writes to a plain member never
// reaches the module. Two kinds of members are exempt:
//
//   struct NetImpl : nn::Cloneable<NetImpl> {
//     nn::parallel::replica_state<double> largest{0, [](const std::vector<double>& of_replicas) {
//       return *std::max_element(of_replicas.begin(), of_replicas.end());
//     }};
//     nn::parallel::shared<std::vector<double>> log;
//     Tensor forward(const Tensor& x) {
//       *largest = std::max(*largest, x.abs().max().item<double>());
//       log.lock()->push_back(x.norm().item<double>());
//       ...
//
// Both keep their value at the target of a pointer that never changes. So a write does not change
// the module's own bytes. Otherwise a ReplicaSet would make the replicas again.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/base/array_ref.h"
#include "runtime/base/error.h"

namespace ramet {
namespace nn {
namespace parallel {
namespace detail {

/// The operations of a ReplicaSet on a state of any type. Each state is listed, by its address,
/// while it exists.
class RAMET_API ReplicaStateBase {
 public:
  virtual ~ReplicaStateBase();
  /// Takes over the value of `other`; does nothing if its type is another.
  virtual void follow(const ReplicaStateBase& other) = 0;
  /// Merges the values of `replicas`. Calling the returned function makes the result this state's
  /// value. Returns an empty function if there is no merge.
  virtual std::function<void()> merged(ArrayRef<ReplicaStateBase*> replicas) = 0;

 protected:
  ReplicaStateBase();
  ReplicaStateBase(const ReplicaStateBase&) : ReplicaStateBase() {}
  ReplicaStateBase& operator=(const ReplicaStateBase&) { return *this; }
};
/// The states within these bytes, by address.
RAMET_API std::vector<ReplicaStateBase*> states_within(const void* begin, size_t bytes);

}  // namespace detail

/// A plain member with a separate value in each replica, which lasts from step to step and when the
/// replicas are made again. A replica's value begins as a copy of the module's. With `merge`, the
/// module's value becomes merge(values of all replicas, in replica order) after each step in which
/// no replica failed. Without it only the module writes its own value. After a step that failed,
/// each replica keeps what its forward wrote. If the module itself runs (on the one device that
/// holds it), there is only the module's value.
///
/// A merge should tolerate equal values (a maximum or a mean, not a sum). Reason: replicas of
/// another set, or on an additional device, begin with the module's value after earlier merges.
///
/// It must be a member of the module object, or of a struct in it. It is not found through a
/// pointer or in a container, nor in a module with its own clone() but no own_bytes(). It is not
/// part of the module's saved state. T must be copyable and own its value: all copies would share a
/// handle such as a Tensor or a shared_ptr. Thread safety: that of T.
template <class T> class replica_state final : public detail::ReplicaStateBase {
 public:
  /// Makes one value from those of the replicas.
  using Merge = std::function<T(const std::vector<T>& of_replicas)>;

  replica_state() : replica_state(T()) {}
  explicit replica_state(T initial, Merge merge = {})
      : kept_(new Kept{std::move(initial), std::move(merge)}) {}
  /// A separate value; the pointer to it never changes.
  replica_state(const replica_state& o) : detail::ReplicaStateBase(o), kept_(new Kept(*o.kept_)) {}
  replica_state& operator=(const replica_state& o) {
    *kept_ = *o.kept_;
    return *this;
  }

  T& operator*() { return kept_->value; }
  const T& operator*() const { return kept_->value; }
  T* operator->() { return &kept_->value; }
  const T* operator->() const { return &kept_->value; }

  void follow(const detail::ReplicaStateBase& other) override {
    if (auto* same = dynamic_cast<const replica_state*>(&other)) kept_->value = **same;
  }
  std::function<void()> merged(ArrayRef<detail::ReplicaStateBase*> replicas) override {
    if (!kept_->merge) return {};
    std::vector<T> values;
    for (const detail::ReplicaStateBase* r : replicas)
      if (auto* same = dynamic_cast<const replica_state*>(r)) values.push_back(**same);
    return [this, value = kept_->merge(values)]() mutable { kept_->value = std::move(value); };
  }

 private:
  struct Kept {
    T value;
    Merge merge;
  };
  std::unique_ptr<Kept> kept_;
};

/// A plain member that a module, its replicas and its other copies share; one thread at a time has
/// access. Assigning one makes both share one value.
template <class T> class shared {
  struct Kept {
    std::mutex mutex;
    T value;
    explicit Kept(T initial) : value(std::move(initial)) {}
  };

 public:
  shared() : shared(T()) {}
  explicit shared(T initial) : kept_(std::make_shared<Kept>(std::move(initial))) {}

  /// The value, locked while this object exists.
  class Locked {
   public:
    T& operator*() const { return kept_->value; }
    T* operator->() const { return &kept_->value; }

   private:
    friend class shared;
    explicit Locked(std::shared_ptr<Kept> kept) : kept_(std::move(kept)), lock_(kept_->mutex) {}
    std::shared_ptr<Kept> kept_;  // outlives the lock
    std::unique_lock<std::mutex> lock_;
  };
  /// Waits for the lock. Not recursive: a thread that holds it must not ask again.
  Locked lock() const { return Locked(kept_); }
  /// A copy of the value.
  T load() const { return *lock(); }

 private:
  std::shared_ptr<Kept> kept_;
};

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
