// What the tests of replica sets share: a module, small buckets, and the comparison with the
// source.
#pragma once
#include <gtest/gtest.h>

#include "parallel/replicas/replica_set.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace testing {

/// Three layers of 4 x 4 weights: 64 + 16 bytes each.
struct StackImpl : nn::Cloneable<StackImpl> {
  StackImpl() { StackImpl::reset(); }
  void reset() override {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 4));
    c = register_module("c", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) { return c(b(a(x).tanh()).tanh()); }
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
};
RAMET_MODULE(Stack);

inline nn::parallel::ReplicaOptions buckets_of(int64_t bytes) {
  nn::parallel::ReplicaOptions options;
  options.bucket_bytes = bytes;
  return options;
}
/// Every replica's parameters and buffers hold the source's values, on the replica's device.
inline void expect_equal_to_source(const nn::parallel::ReplicaSet& set) {
  for (int r = 0; r < set.size(); ++r) {
    const auto theirs = set.shell(r)->named_parameters();
    const auto ours = set.source()->named_parameters();
    ASSERT_EQ(theirs.keys(), ours.keys());
    for (size_t i = 0; i < ours.size(); ++i) {
      EXPECT_EQ(values(theirs[i].value()), values(ours[i].value())) << r << ours[i].key();
      EXPECT_EQ(theirs[i].value().device(), set.device_of()[static_cast<size_t>(r)]);
    }
    EXPECT_EQ(all_values(set.shell(r)->buffers()), all_values(set.source()->buffers()));
  }
}

}  // namespace testing
}  // namespace ramet
