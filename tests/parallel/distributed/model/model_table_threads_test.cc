// Ranks with different models: any difference is the same error on all of them. The error names the
// entry and what both sides have.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nn/layers/basic/linear.h"
#include "nn/module/cloneable.h"
#include "nn/module/sequential.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/shard/fully_shard.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

using nn::BufferPolicy;

struct Entry {
  Tensor tensor;
  bool is_buffer = false, grad = true;
  BufferPolicy policy = BufferPolicy::first;
};
using Entries = std::map<std::string, Entry>;  // registered in the order of their names
using TableChange = std::function<void(Entries&)>;
const TableChange kNone = [](Entries&) {};

// A module of what is registered alone.
struct TableImpl : nn::Cloneable<TableImpl> {
  explicit TableImpl(TableChange c) : change(std::move(c)) { TableImpl::reset(); }
  void reset() override {
    Entries entries = {{"a", {zeros({2, 3})}},
                       {"b", {zeros({3})}},
                       {"c", {zeros({3})}},
                       {"d", {zeros({3})}},
                       {"n", {zeros({2}), /*is_buffer=*/true}},
                       {"o", {zeros({4}), /*is_buffer=*/true, false, BufferPolicy::mean}}};
    change(entries);
    for (const auto& [name, e] : entries) {
      if (e.is_buffer) register_buffer(name, e.tensor, e.policy);
      else register_parameter(name, e.tensor, e.grad);
    }
  }
  TableChange change;
};
RAMET_MODULE(Table);

// One kind of difference, of rank 1 from the others.
struct TableCase {
  std::string what;
  TableChange change;
  std::string ddp;  // what DistributedDataParallel and replicate() say
  // What fully_shard() says that rank 1 has, and the others. Empty: that is each rank's own there.
  std::string there, here;
  TableChange everywhere = kNone;  // before `change`, on every rank
};

std::string differ(const std::string& entry, const std::string& there, const std::string& here) {
  return entry + " of rank 1, " + there + ", appears not to match that of rank 0, " + here;
}

std::vector<TableCase> cases() {
  const std::string row = "float32[3] strides [1] requires grad", frozen = "float32[3] strides [1]";
  const std::string one_row = "float32[3] requires grad";
  const std::string table = "float32[2, 3] strides [3, 1] requires grad";
  const std::string counts = "float32[2] strides [1]", means = "policy mean float32[4] strides [1]";
  return {
      {"shape",
       [](Entries& e) {
         e["a"].tensor = zeros({4, 3});
       },
       differ("parameter 'a'", "float32[4, 3] strides [3, 1] requires grad", table),
       "a float32[4, 3] requires grad", "a float32[2, 3] requires grad"},
      {"dtype",
       [](Entries& e) {
         e["a"].tensor = zeros({2, 3}, kDouble);
       },
       differ("parameter 'a'", "float64[2, 3] strides [3, 1] requires grad", table),
       "a float64[2, 3] requires grad", "a float32[2, 3] requires grad"},
      // Pieces are row-major, for any layout of the parameter.
      {"strides",
       [](Entries& e) {
         e["a"].tensor = empty_strided({2, 3}, {1, 2}).zero_();
       },
       differ("parameter 'a'", "float32[2, 3] strides [1, 2] requires grad", table), "", ""},
      {"frozen", [](Entries& e) { e["b"].grad = false; }, differ("parameter 'b'", frozen, row),
       "b float32[3]", "b " + one_row},
      {"undefined", [](Entries& e) { e["b"].tensor = Tensor(); },
       differ("parameter 'b'", "undefined", row), "c " + one_row, "b " + one_row},
      {"undefined on the others", [](Entries& e) { e["b"].tensor = zeros({3}); },
       differ("parameter 'b'", row, "undefined"), "b " + one_row, "c " + one_row,
       [](Entries& e) { e["b"].tensor = Tensor(); }},
      {"tied", [](Entries& e) { e["c"] = e["b"]; },
       differ("parameter 'c'", row + " tied to 'b'", row), "c tied to b", "c " + one_row},
      {"tied to another", [](Entries& e) { e["d"] = e["c"]; },
       differ("parameter 'd'", row + " tied to 'c'", row + " tied to 'b'"), "d tied to c",
       "d tied to b", [](Entries& e) { e["d"] = e["b"]; }},
      {"missing", [](Entries& e) { e.erase("b"); },
       differ("entry 1", "parameter 'c' " + row, "parameter 'b' " + row), "c " + one_row,
       "b " + one_row},
      {"the last one missing", [](Entries& e) { e.erase("d"); },
       differ("entry 3", "buffer 'n' " + counts, "parameter 'd' " + row), "nothing",
       "d " + one_row},
      {"extra", [](Entries& e) { e["aa"] = {zeros({1})}; },
       differ("entry 1", "parameter 'aa' float32[1] strides [1] requires grad",
              "parameter 'b' " + row),
       "aa float32[1] requires grad", "b " + one_row},
      {"extra behind the others", [](Entries& e) { e["e"] = {zeros({1})}; },
       differ("entry 4", "parameter 'e' float32[1] strides [1] requires grad",
              "buffer 'n' " + counts),
       "e float32[1] requires grad", "nothing"},
      {"name", [](Entries& e) { e["e"] = e["d"], e.erase("d"); },
       differ("entry 3", "parameter 'e' " + row, "parameter 'd' " + row), "e " + one_row,
       "d " + one_row},
      // Nothing else of the two differs.
      {"a parameter for a buffer", [](Entries& e) { e["n"].is_buffer = e["n"].grad = false; },
       differ("entry 4", "parameter 'n' " + counts, "buffer 'n' " + counts), "n float32[2]",
       "nothing"},
      {"a buffer for a parameter", [](Entries& e) { e["d"].is_buffer = true; },
       differ("entry 3", "buffer 'd' " + frozen, "parameter 'd' " + frozen), "nothing",
       "d float32[3]", [](Entries& e) { e["d"].grad = false; }},
      // Under fully_shard() buffers stay each rank's own.
      {"shape of a buffer", [](Entries& e) { e["n"].tensor = zeros({3}); },
       differ("buffer 'n'", frozen, counts), "", ""},
      {"dtype of a buffer", [](Entries& e) { e["n"].tensor = zeros({2}, kLong); },
       differ("buffer 'n'", "int64[2] strides [1]", counts), "", ""},
      {"strides of a buffer", [](Entries& e) { e["n"].tensor = zeros({4}).slice(0, 0, 4, 2); },
       differ("buffer 'n'", "float32[2] strides [2]", counts), "", ""},
      {"a buffer with a gradient", [](Entries& e) { e["n"].tensor.set_requires_grad(true); },
       differ("buffer 'n'", counts + " requires grad", counts), "", ""},
      {"undefined buffer", [](Entries& e) { e["n"].tensor = Tensor(); },
       differ("buffer 'n'", "undefined", counts), "", ""},
      {"policy of an undefined buffer", [](Entries& e) { e["o"].policy = BufferPolicy::sum; },
       differ("buffer 'o'", "policy sum undefined", "policy mean undefined"), "", "",
       [](Entries& e) { e["o"].tensor = Tensor(); }},
      {"tied buffers", [](Entries& e) { e["o"].tensor = e["n"].tensor; },
       differ("buffer 'o'", "policy mean float32[2] strides [1] tied to 'n'",
              "policy mean float32[2] strides [1]"),
       "", "", [](Entries& e) { e["o"].tensor = zeros({2}); }},
      {"a policy", [](Entries& e) { e["n"].policy = BufferPolicy::max; },
       differ("buffer 'n'", "policy max " + counts, counts), "", ""},
      {"another policy", [](Entries& e) { e["o"].policy = BufferPolicy::sum; },
       differ("buffer 'o'", "policy sum float32[4] strides [1]", means), "", ""},
      {"missing buffer", [](Entries& e) { e.erase("n"); },
       differ("entry 4", "buffer 'o' " + means, "buffer 'n' " + counts), "", ""},
      {"the last buffer missing", [](Entries& e) { e.erase("o"); },
       "rank 1 lacks buffer 'o' " + means + " of rank 0", "", ""},
      {"extra buffer",
       [](Entries& e) {
         e["p"] = {zeros({3}), true};
       },
       "rank 1 has buffer 'p' " + frozen + ", which rank 0 has not", "", ""},
  };
}

// ---- the wrappers -------------------------------------------------------------------------------

template <class Module> void wrap_ddp(const Module& net, const Group& g) {
  DistributedDataParallel<Module> ddp(net, g);
}
template <class Module> void wrap_replicate(const Module& net, const Group& g) {
  replicate(net, g);
}
template <class Module> void wrap_sharded(const Module& net, const Group& g) {
  fully_shard(net, g);
}

// The error text of each of three ranks, with the net that net_of(rank) makes. They can go on with
// other nets.
template <class Module>
std::vector<std::string> said(void (*wrap)(const Module&, const Group&),
                              const std::function<Module(int rank)>& net_of) {
  std::vector<std::string> texts(3);
  with_groups(3, seconds(60), [&](const Group& g) {
    const Module mine = net_of(g->rank()), same = net_of(0);
    texts[static_cast<size_t>(g->rank())] = error_of([&] { wrap(mine, g); });
    EXPECT_EQ(error_of([&] { wrap(same, g); }), "no error");
  });
  return texts;
}

std::function<Table(int)> nets_of(const TableCase& c) {
  return [c](int rank) {
    return Table([c, rank](Entries& e) {
      c.everywhere(e);
      if (rank == 1) c.change(e);
    });
  };
}

void expect_all_say(const std::vector<std::string>& texts, const std::string& what) {
  for (const std::string& text : texts)
    EXPECT_EQ(text, "[ddp] the ranks have different models: " + what);
}

// The error on each rank: what the rank itself has, and the first rank that has something else.
void expect_sharded_say(const std::vector<std::string>& texts, const std::string& there,
                        const std::string& here) {
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    const bool odd = rank == 1;
    EXPECT_EQ(texts[rank], "[fully_shard] the ranks have different parameters or options: rank " +
                               std::to_string(rank) + " of 'world' has " + (odd ? there : here) +
                               " where rank " + (odd ? "0" : "1") + " has " + (odd ? here : there));
  }
}

TEST(ModelTable, DistributedDataParallel) {
  for (const TableCase& c : cases()) {
    SCOPED_TRACE(c.what);
    expect_all_say(said(wrap_ddp<Table>, nets_of(c)), c.ddp);
  }
}

TEST(ModelTable, Replicate) {
  for (const TableCase& c : cases()) {
    SCOPED_TRACE(c.what);
    expect_all_say(said(wrap_replicate<Table>, nets_of(c)), c.ddp);
  }
}

TEST(ModelTable, FullyShard) {
  for (const TableCase& c : cases()) {
    SCOPED_TRACE(c.what);
    const auto texts = said(wrap_sharded<Table>, nets_of(c));
    if (!c.here.empty()) expect_sharded_say(texts, c.there, c.here);
    else EXPECT_EQ(texts, std::vector<std::string>(3, "no error"));
  }
}

// A module in two places ties its parameters.
TEST(ModelTable, SharedModules) {
  const std::function<nn::Sequential(int)> net_of = [](int rank) {
    nn::Linear a(2, 2), b(2, 2);
    return nn::Sequential(a, b, rank == 1 ? b : a);
  };
  const std::string tied = "float32[2, 2] strides [2, 1] requires grad tied to ";
  const std::string text = differ("parameter '2.weight'", tied + "'1.weight'", tied + "'0.weight'");
  expect_all_say(said(wrap_ddp<nn::Sequential>, net_of), text);
  expect_all_say(said(wrap_replicate<nn::Sequential>, net_of), text);
  expect_sharded_say(said(wrap_sharded<nn::Sequential>, net_of), "2.weight tied to 1.weight",
                     "2.weight tied to 0.weight");
}

TEST(ModelTable, EveryRankThatDiffersIsNamed) {
  for (const bool two : {false, true}) {
    const std::function<Table(int)> net_of = [two](int rank) {
      return Table([two, rank](Entries& e) {
        if (rank == 1 && two) e["d"].grad = false;
        if (rank == 2) e.erase("o");
      });
    };
    const std::string of_one =
        differ("parameter 'd'", "float32[3] strides [1]", "float32[3] strides [1] requires grad");
    expect_all_say(said(wrap_ddp<Table>, net_of),
                   (two ? of_one + "; " : "") +
                       "rank 2 lacks buffer 'o' policy mean float32[4] strides [1] of rank 0");
  }
}

// What is ignored may differ; to ignore it is a difference.
TEST(ModelTable, IgnoredEntries) {
  for (const bool everywhere : {true, false})
    with_groups(3, seconds(60), [everywhere](const Group& g) {
      const Table net([&](Entries& e) {
        if (everywhere && g->rank() == 1) e["o"].tensor = zeros({5});
      });
      DdpOptions o;
      if (everywhere || g->rank() == 1) o.ignored.names = {"o"};
      const std::string text = error_of([&] { DistributedDataParallel<Table> ddp(net, g, o); });
      if (everywhere) EXPECT_EQ(text, "no error");
      else expect_part(text, "rank 1 lacks buffer 'o' policy mean float32[4] strides [1]");
    });
}

}  // namespace
}  // namespace ramet::distributed
