// LibTorch's stores, and its process groups between threads: over a HashStore.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "tests/tools/compat/processes/group_cases.h"

namespace {

using c10d_cases::error_of;
using std::chrono::milliseconds;

std::vector<uint8_t> bytes(const std::string& text) { return {text.begin(), text.end()}; }

void in_threads(int n, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  for (int r = 0; r < n; ++r) threads.emplace_back([&f, r] { f(r); });
  for (std::thread& t : threads) t.join();
}

// `theirs` is another handle of the same store.
void store_cases(c10d::Store& mine, c10d::Store& theirs) {
  mine.set("a", "one");
  mine.set("bytes", std::vector<uint8_t>{0, 255, 7});
  EXPECT_EQ(theirs.get_to_str("a"), "one");
  EXPECT_EQ(theirs.get("bytes"), (std::vector<uint8_t>{0, 255, 7}));
  EXPECT_EQ(mine.add("count", 3) + theirs.add("count", 4), 3 + 7);
  EXPECT_TRUE(theirs.check({"a", "count"}));
  EXPECT_FALSE(theirs.check({"a", "none"}));

  // Absent and expected absent; absent and expected there; another value; the expected one.
  EXPECT_EQ(mine.compareSet("c", "x", "y"), "x");
  EXPECT_FALSE(mine.check({"c"}));
  EXPECT_EQ(mine.compareSet("c", "", "first"), "first");
  EXPECT_EQ(theirs.compareSet("c", "", "second"), "first");
  EXPECT_EQ(theirs.compareSet("c", "first", "second"), "second");
  EXPECT_EQ(mine.get_to_str("c"), "second");

  const int64_t keys = mine.getNumKeys();
  EXPECT_TRUE(mine.deleteKey("c"));
  EXPECT_FALSE(mine.deleteKey("c"));
  EXPECT_EQ(mine.getNumKeys(), keys - 1);

  mine.append("log", bytes("ab"));
  theirs.append("log", bytes("c"));
  EXPECT_EQ(mine.get_to_str("log"), "abc");
  mine.multiSet({"m1", "m2"}, {bytes("1"), bytes("2")});
  EXPECT_EQ(theirs.multiGet({"m2", "m1"}),
            (std::vector<std::vector<uint8_t>>{bytes("2"), bytes("1")}));

  mine.queuePush("q", bytes("x"));
  mine.queuePush("q", bytes("y"));
  EXPECT_EQ(theirs.queueLen("q"), 2);
  EXPECT_EQ(theirs.queuePop("q", true), bytes("x"));
  EXPECT_EQ(mine.queuePop("q", false), bytes("y"));
  EXPECT_THROW(mine.queuePop("q", false), c10::DistQueueEmptyError);

  // A wait is over when the other sets the key, or at its time.
  std::thread other([&] { theirs.set("late", "here"); });
  mine.wait({"late", "a"}, std::chrono::seconds(60));
  other.join();
  EXPECT_THROW(mine.wait({"a", "never"}, milliseconds(20)), c10::DistStoreError);
  {
    c10d::StoreTimeoutGuard guard(mine, milliseconds(20));
    EXPECT_EQ(mine.getTimeout(), milliseconds(20));
    const std::string said = error_of([&] { (void)mine.get("never"); });
    EXPECT_EQ(said.substr(0, said.find(" (")), "[get] wait timeout after 20ms, keys: never");
  }
  EXPECT_EQ(mine.getTimeout(), c10d::Store::kDefaultTimeout);

  in_threads(2, [&](int r) { (r ? mine : theirs).barrier("met", 2); });
  EXPECT_EQ(mine.add("met", 0), 2);
}

TEST(C10dStore, HashStore) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  store_cases(*store, *store->clone());
}

TEST(C10dStore, PrefixStore) {
  c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
  auto prefixed = c10::make_intrusive<c10d::PrefixStore>("p", store);
  auto deeper = c10::make_intrusive<c10d::PrefixStore>("q", prefixed);
  store_cases(*prefixed, *prefixed->clone());
  deeper->set("k", "v");
  EXPECT_EQ(store->get_to_str("p/q/k"), "v");
  EXPECT_EQ(deeper->getUnderlyingStore(), prefixed);
  EXPECT_EQ(deeper->getUnderlyingNonPrefixStore(), store);
  deeper->setTimeout(milliseconds(5));
  EXPECT_EQ(store->getTimeout(), milliseconds(5));
}

TEST(C10dStore, TcpStore) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.numWorkers = 2;
  options.waitWorkers = false;
  auto server = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  EXPECT_GT(server->getPort(), 0);
  c10::intrusive_ptr<c10d::TCPStore> client;
  in_threads(2, [&](int r) {
    if (r == 0) server->waitForWorkers();
    else client = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", server->getPort(), 2, false);
  });
  store_cases(*server, *client);

  options.port = server->getPort();
  options.timeout = milliseconds(2000);
  EXPECT_NE(error_of([&] { c10d::TCPStore("127.0.0.1", options); }).find("cannot serve"),
            std::string::npos);
}

TEST(C10dStore, TcpStoresOfOneProcessShareAServer) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = options.multiTenant = true;
  c10d::TCPStore first("127.0.0.1", options);
  options.port = first.getPort();
  c10d::TCPStore second("127.0.0.1", options);
  first.set("k", "v");
  EXPECT_EQ(second.get_to_str("k"), "v");
}

TEST(C10dStore, FileStore) {
  const std::string path = ::testing::TempDir() + "/c10d_file_store";
  {
    c10d::FileStore mine(path, 2), theirs(path, 2);
    EXPECT_EQ(mine.getPath(), path);
    store_cases(mine, theirs);
    EXPECT_TRUE(std::ifstream(path).good());
  }
  EXPECT_FALSE(std::ifstream(path).good());  // the last has removed it
}

TEST(C10dGroup, EveryOperationBetweenThreads) {
  for (int n : {1, 2, 3}) {
    c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::HashStore>();
    in_threads(n, [&](int r) {
      c10d::ProcessGroupGloo pg(store, r, n);
      EXPECT_EQ(pg.getRank(), r);
      EXPECT_EQ(pg.getSize(), n);
      EXPECT_EQ(pg.getBackendName(), "gloo");
      c10d_cases::all(pg);
      pg.barrier()->wait();
    });
  }
}

TEST(C10dGroup, ThatHoldsABackend) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  in_threads(2, [&](int r) {
    auto pg = c10::make_intrusive<c10d::ProcessGroup>(store, r, 2);
    std::vector<torch::Tensor> t = {c10d_cases::ramp(r)};
    EXPECT_EQ(error_of([&] { (void)pg->allreduce(t); }),
              "[allreduce] the process group has no backend, or was shut down");
    auto gloo = c10::make_intrusive<c10d::ProcessGroupGloo>(store, r, 2);
    pg->setBackend(torch::kCPU, c10d::ProcessGroup::BackendType::GLOO, gloo);
    EXPECT_EQ(pg->getBackend(torch::kCPU), gloo);
    EXPECT_EQ(pg->getDefaultBackend(), gloo);
    EXPECT_EQ(pg->getBackendName(), "gloo");
    std::shared_ptr<c10d::Backend> held = gloo;
    held->allreduce(t)->wait();
    pg->allreduce(t)->wait();
    EXPECT_EQ(c10d_cases::list(t[0]), (std::vector<float>{6, 10, 14}));
    pg->barrier()->wait();
  });
}

// Ranks that do different things, and one that does not come: every rank gets the error.
TEST(C10dGroup, ErrorsComeFromWait) {
  auto store = c10::make_intrusive<c10d::HashStore>();
  in_threads(2, [&](int r) {
    c10d::ProcessGroupGloo pg(store, r, 2);
    std::vector<torch::Tensor> t = {torch::ones({2 + r})};
    auto work = pg.allreduce(t);
    EXPECT_THROW(work->wait(), c10::Error);
    EXPECT_TRUE(work->isCompleted());
    EXPECT_FALSE(work->isSuccess());
    EXPECT_NE(work->exception(), nullptr);
  });
  auto options = c10d::ProcessGroupGloo::Options::create(milliseconds(500));
  auto other = c10::make_intrusive<c10d::PrefixStore>("late", store);
  in_threads(2, [&](int r) {
    c10d::ProcessGroupGloo pg(other, r, 2, options);
    if (r == 0) EXPECT_THROW(pg.barrier()->wait(), c10::Error);
    else std::this_thread::sleep_for(milliseconds(800));
  });
}

}  // namespace
