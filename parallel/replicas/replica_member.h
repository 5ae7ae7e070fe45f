// Members of a module that outlive a step in its replicas: replica_state<T> and shared<T>.
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
// Both keep their value behind a pointer that never changes, so that a write is no change of the
// module's own bytes, for which a ReplicaSet would make the replicas again.
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

/// What a ReplicaSet does with a state of whatever type. Each one is listed, by its address, while
/// it lives.
class RAMET_API ReplicaStateBase {
 public:
  virtual ~ReplicaStateBase();
  /// Takes over the value of `other`; nothing where that is of another type.
  virtual void follow(const ReplicaStateBase& other) = 0;
  /// Merges the values of `replicas`; the result is this one's value when the returned function is
  /// called. An empty function where no merge was given.
  virtual std::function<void()> merged(ArrayRef<ReplicaStateBase*> replicas) = 0;

 protected:
  ReplicaStateBase();
  ReplicaStateBase(const ReplicaStateBase&) : ReplicaStateBase() {}
  ReplicaStateBase& operator=(const ReplicaStateBase&) { return *this; }
};
/// The states that lie within these bytes, by address.
RAMET_API std::vector<ReplicaStateBase*> states_within(const void* begin, size_t bytes);

}  // namespace detail

/// A plain member of which each replica has its own, kept from step to step and when the replicas
/// are made again. A replica's begins as a copy of the module's. With `merge` the module's becomes
/// merge(values of all replicas, in replica order) after each step in which no replica failed;
/// without it the module's own value is written by nobody but the module. A step that failed leaves
/// in each replica what its forward wrote. Where the module itself runs (one device, which holds
/// it) there is one value, the module's.
///
/// A merge should not mind equal values (a maximum, a mean, not a sum): replicas of another set, or
/// of one more device, begin with what the module has after earlier merges.
///
/// It has to be a member of the module object, or of a struct in it: what lies behind a pointer or
/// in a container is not found, nor what is in a module with a clone() of its own and without
/// own_bytes(). Not part of the module's saved state. T: copyable, and the owner of its value (a
/// Tensor or a shared_ptr is a handle, which all copies would share). Thread safety: that of T.
template <class T> class replica_state final : public detail::ReplicaStateBase {
 public:
  /// Makes one value of those that the replicas have.
  using Merge = std::function<T(const std::vector<T>& of_replicas)>;

  replica_state() : replica_state(T()) {}
  explicit replica_state(T initial, Merge merge = {})
      : kept_(new Kept{std::move(initial), std::move(merge)}) {}
  /// A value of its own; the pointer to it never changes.
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

/// A plain member that a module, its replicas and its other copies share, one at a time. Assigning
/// one makes both share one value.
template <class T> class shared {
  struct Kept {
    std::mutex mutex;
    T value;
    explicit Kept(T initial) : value(std::move(initial)) {}
  };

 public:
  shared() : shared(T()) {}
  explicit shared(T initial) : kept_(std::make_shared<Kept>(std::move(initial))) {}

  /// The value, and its lock while this lives.
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
