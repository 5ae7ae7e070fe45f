// How arguments of a data-parallel call are cut, and how results are joined, by type. A tensor is
// scattered and gathered. An optional, vector, array, pair, tuple, map, OrderedDict or a struct
// with RAMET_FIELDS is handled member by member. Any other type is copied to every replica, which
// shares the target of a shared_ptr. As a result, such a type becomes a list of one value for each
// replica.
//
//   struct Batch {
//     Tensor image, label;
//     RAMET_FIELDS(image, label)
//   };
//
// All scattered tensors of one call have the same extent along the dimension, unless an argument is
// wrapped. Undefined tensors stay undefined. If a user's type has `static Whole
// gather(std::vector<T> parts)`, that function joins it.
//
// spread.h cuts and join.h joins. This header has what they share: the wrappers of arguments, the
// plans, the common extent, and names in errors.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "parallel/nodes/broadcast_reduce.h"
#include "parallel/nodes/scatter_gather.h"

/// In a struct: lists its members, for data-parallel arguments and results.
#define RAMET_FIELDS(...)                                     \
  auto ramet_fields() { return std::tie(__VA_ARGS__); }       \
  auto ramet_fields() const { return std::tie(__VA_ARGS__); } \
  static const char* ramet_field_names() { return #__VA_ARGS__; }

namespace ramet {
namespace nn {
namespace parallel {

/// An argument that every replica gets whole, with tensors on its device. Gradients are added up.
template <class T> struct Broadcast {
  /// The argument.
  T value;
  explicit Broadcast(T v) : value(std::move(v)) {}
};
/// An argument that every replica gets unchanged, with tensors where they are.
template <class T> struct NoScatter {
  /// The argument.
  T value;
  explicit NoScatter(T v) : value(std::move(v)) {}
};
/// An argument for which the caller gives one value for each replica. Tensors are moved to the
/// replica's device.
template <class T> struct PerReplica {
  /// The values of replica 0, 1, ...
  std::vector<T> values;
  explicit PerReplica(std::vector<T> v) : values(std::move(v)) {}
};

/// How 0-dim tensor results of several replicas are joined: into a vector, their mean, or their
/// mean weighted by the sizes of the pieces. The latter is the true mean if each result is the mean
/// over its piece.
enum class Scalars : uint8_t { stack, mean, weighted_mean };

/// How arguments are scattered.
struct ScatterPlan {
  std::vector<Device> devices;  // of the replicas that take part
  std::vector<int64_t> sizes;   // of the pieces along dim; empty if nothing is scattered
  /// The dimension that is cut.
  int64_t dim = 0;
  /// What the piece on the input's own device is.
  ramet::parallel::Alias alias = ramet::parallel::Alias::view;
};
/// How results are joined.
struct GatherPlan {
  /// The device of the result.
  Device device = Device(kCPU, 0);
  /// The dimension along which results are joined.
  int64_t dim = 0;
  /// How 0-dim results are joined.
  Scalars scalars = Scalars::stack;
  std::vector<int64_t> sizes;  // sizes of the input pieces: weights
  bool keep_scalars = false;   // one device: a 0-dim result stays 0-dim
  // Called for every tensor; may be null or empty.
  const std::function<Tensor(const Tensor&)>* on_result = nullptr;
};

/// Finds the extent that all scattered tensors share.
class RAMET_API Extent {
 public:
  explicit Extent(int64_t dim) : dim_(dim) {}
  /// Adds a tensor. An Error that names both paths if its extent differs from an earlier one's.
  void tensor(const Tensor& t, const std::string& path);
  /// The same for the number of values of a PerReplica.
  void per_replica(size_t values, const std::string& path);
  /// Was there a tensor to scatter?
  bool scattered() const { return found_; }
  /// The extent.
  int64_t size() const { return size_; }
  /// The number of values of PerReplica arguments; 0 without one.
  size_t replicas() const { return replicas_; }
  /// The path of the first of these, for error texts.
  const std::string& replicas_path() const { return replicas_path_; }

 private:
  int64_t dim_, size_ = 0;
  bool found_ = false;
  std::string path_;
  size_t replicas_ = 0;
  std::string replicas_path_;
};

namespace detail {
RAMET_API std::vector<Tensor> scatter_tensor(const Tensor& t, const ScatterPlan& plan);
RAMET_API std::vector<Tensor> broadcast_tensor(const Tensor& t, const ScatterPlan& plan);
RAMET_API Tensor gather_tensors(const std::vector<Tensor>& parts, const GatherPlan& plan,
                                const std::string& path);
/// Name number `index` of "a, b, c".
RAMET_API std::string field_name(const char* names, size_t index);
RAMET_API void check_keys(const std::string& path, size_t replica, size_t got, size_t expected);
[[noreturn]] RAMET_API void missing_key(const std::string& path, size_t replica,
                                        const std::string& key);

template <class T, class = void> struct HasFields : std::false_type {};
template <class T>
struct HasFields<T, std::void_t<decltype(std::declval<T&>().ramet_fields())>> : std::true_type {};
template <class T, class = void> struct HasGather : std::false_type {};
template <class T>
struct HasGather<T, std::void_t<decltype(T::gather(std::declval<std::vector<T>>()))>>
    : std::true_type {};

template <class K> std::string key_text(const K& key) {
  if constexpr (std::is_convertible<const K&, std::string>::value)
    return "['" + std::string(key) + "']";
  else return "[" + ramet::detail::join(key) + "]";
}
inline std::string at(const std::string& path, size_t i) {
  return path + "[" + std::to_string(i) + "]";
}
}  // namespace detail

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
