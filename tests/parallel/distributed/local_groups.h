// with_groups for tests with threads as ranks.
#pragma once
#include <utility>

#include "tests/parallel/distributed/groups.h"

namespace ramet::distributed {

inline void with_groups(int ranks, Milliseconds timeout, const Body& body) {
  GroupOptions o;
  o.timeout = timeout;
  auto groups = make_local_groups(ranks, o);
  as_ranks(ranks, [&](int rank) {
    const Group mine = std::move(groups[static_cast<size_t>(rank)]);
    body(mine);
  });
}
inline void with_groups_of(int ranks, const Body& body) { with_groups(ranks, seconds(60), body); }

/// trained(ranks, devices of each rank) gives the same tensors for one rank, for several, and for
/// ranks of several devices.
template <class F> void expect_same_bits_for_every_number_of_ranks(const F& trained) {
  const std::vector<Tensor> one = trained(1, {});
  for (const auto& [ranks, devices] :
       {std::pair(2, std::vector<Device>{}), std::pair(4, std::vector<Device>{}),
        std::pair(1, std::vector<Device>{"cpu:0", "cpu:1"}),
        std::pair(2, std::vector<Device>{"cpu:0", "cpu:2"})}) {
    const std::vector<Tensor> other = trained(ranks, devices);
    ASSERT_EQ(other.size(), one.size());
    for (size_t i = 0; i < one.size(); ++i)
      EXPECT_TRUE(same_bits(one[i], other[i])) << ranks << " ranks, " << i;
  }
}

}  // namespace ramet::distributed
