// inproc:// addresses, and handlers of schemes of one's own.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "tests/parallel/distributed/groups.h"

namespace ramet::distributed {
namespace {

RendezvousOptions within(Milliseconds timeout) {
  RendezvousOptions o;
  o.timeout = timeout;
  return o;
}
std::string said(const std::string& url, Milliseconds timeout = seconds(20)) {
  return error_of([&] { rendezvous(url, within(timeout)); });
}
std::string with_rank(const std::string& url, int rank) {
  return url + (url.find('?') == std::string::npos ? "?" : "&") + "rank=" + std::to_string(rank);
}

// Each rank's rank + 1, summed over a group of `n`.
void expect_group(const Group& g, int n) {
  EXPECT_STREQ(g->backend(), "inproc");
  EXPECT_EQ(g->size(), n);
  Tensor t = full({3}, g->rank() + 1.0);
  g->all_reduce(t).wait();
  EXPECT_EQ(t[1].item<double>(), n * (n + 1) / 2);
}

TEST(InprocRendezvous, GroupsOfThreads) {
  for (const std::string url : {"inproc://4", "inproc://trainers?world_size=4"})
    for (int again = 0; again < 8; ++again)  // each begins while others are still leaving
      as_ranks(4, [&](int rank) {
        const Group g = init_process_group(with_rank(url, rank));
        EXPECT_EQ(g->rank(), rank);
        expect_group(g, 4);
        const Group odd = g->subgroup({1, 3});
        if (odd) expect_group(odd, 2);
      });
}

// The ranks do not wait for each other between two runs of one name.
TEST(InprocRendezvous, OneRunAfterTheOther) {
  as_ranks(3, [&](int rank) {
    for (int again = 0; again < 50; ++again) {
      const Rendezvous r = rendezvous(with_rank("inproc://again?world_size=3", rank));
      EXPECT_TRUE(r.threads);
      EXPECT_EQ(r.rank, rank);
      EXPECT_EQ(r.local_rank, rank);
      EXPECT_EQ(r.world_size, 3);
      EXPECT_LE(r.store->add("came", 1), 3);
    }
  });
}

TEST(InprocRendezvous, NamesAreKeptApart) {
  as_ranks(4, [&](int thread) {
    const std::string name = thread % 2 ? "inproc://odd" : "inproc://even";
    RendezvousOptions o = within(seconds(20));
    o.rank = thread / 2;
    o.world_size = 2;
    const Rendezvous r = rendezvous(name, o);
    const std::string mine = std::to_string(r.rank), other = std::to_string(1 - r.rank);
    r.store->set("from" + mine, name);
    EXPECT_EQ(r.store->get("from" + other), name);
    EXPECT_EQ(r.store->size(), 2u);
  });
}

TEST(InprocRendezvous, SaysWhatIsMissing) {
  expect_part(said("inproc://"), "name missing: got \"inproc://\"");
  expect_part(said("inproc://2"), "rank parameter missing: got \"inproc://2\"");
  expect_part(said("inproc://2?rank=2"), "rank: got 2 of a world of 2, expected 0 to 1");
  expect_part(said("inproc://x?rank=0"), "world size parameter missing: got \"inproc://x?rank=0\"");
  expect_part(said("inproc://2?rank=0&world_size=3"), "world size: got both 2 and 3");
  expect_part(said("inproc://0?rank=0"), "world size: got 0");
  expect_part(said("inproc://99999999999?rank=0"), "world size: got \"99999999999\"");
  // What numbers processes numbers no threads.
  RendezvousOptions o;
  o.environment = [](const std::string&) { return std::optional<std::string>("1"); };
  expect_part(error_of([&] { rendezvous("inproc://2", o); }), "rank parameter missing");
  expect_part(error_of([&] { rendezvous("inproc://x?rank=0", o); }), "world size parameter");
}

TEST(InprocRendezvous, RanksThatDoNotComeAreNamed) {
  EXPECT_EQ(said("inproc://4?rank=2", Milliseconds(50)),
            "[rendezvous] Timeout: of the 4 ranks of inproc://4 these did not come: ranks 0, 1, 3");
  // A rank that has given up is no longer there, and may come again.
  EXPECT_EQ(said("inproc://2?rank=0", Milliseconds(50)),
            "[rendezvous] Timeout: of the 2 ranks of inproc://2 these did not come: rank 1");
  EXPECT_EQ(said("inproc://2?rank=1", Milliseconds(50)),
            "[rendezvous] Timeout: of the 2 ranks of inproc://2 these did not come: rank 0");
  as_ranks(2, [](int rank) { expect_group(init_process_group(with_rank("inproc://2", rank)), 2); });
}

TEST(InprocRendezvous, ARankThatIsThereTwice) {
  // During the rendezvous: all ranks get the error, those that come later too.
  const std::string url = "inproc://twice?world_size=3", same = "rank 1 is there twice";
  std::string texts[2];
  as_ranks(2, [&](int thread) { texts[thread] = said(with_rank(url, 1)); });
  expect_part(texts[0], same);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(said(with_rank(url, 0)), texts[0]);
  EXPECT_EQ(said(with_rank(url, 2)), texts[0]);
  // All have got the error: the name is free.
  as_ranks(3, [&](int rank) {
    const Group g = init_process_group(with_rank(url, rank));
    // Later: ranks after their rendezvous go on.
    if (rank == 1) expect_part(said(with_rank(url, 1)), same);
    if (rank == 2) expect_part(said("inproc://twice?world_size=2&rank=1"), "was given 2");
    expect_group(g, 3);
  });
}

TEST(InprocRendezvous, ComparesWorldSizes) {
  const std::string url = "inproc://sizes?world_size=";
  std::string texts[2];
  as_ranks(2,
           [&](int rank) { texts[rank] = said(with_rank(url + std::to_string(3 + rank), rank)); });
  EXPECT_EQ(texts[0], texts[1]);
  expect_part(texts[0], "[rendezvous] inproc://sizes: world size: rank ");
  expect_part(texts[0], " was given 3");
  expect_part(texts[0], " was given 4");
  // Late ranks of either size get the same error; one that comes again starts a new rendezvous.
  EXPECT_EQ(said(with_rank(url + "3", 2)), texts[0]);
  EXPECT_EQ(said(with_rank(url + "4", 3)), texts[0]);
  as_ranks(4, [&](int rank) { expect_group(init_process_group(with_rank(url + "4", rank)), 4); });
}

TEST(InprocRendezvous, WhoComesAgainAfterAFailureBeginsAnew) {
  const std::string url = "inproc://anew?world_size=";
  as_ranks(2, [&](int rank) { said(with_rank(url + std::to_string(3 + rank), rank)); });
  // Rank 2 never came; it is not waited for.
  as_ranks(2, [&](int rank) {
    const Group g = init_process_group(with_rank(url + "2", rank), {}, within(seconds(20)));
    expect_group(g, 2);
  });
}

// ---- schemes of one's own -----------------------------------------------------------------------

TEST(RendezvousHandlers, MakeGroups) {
  // A service of this process that deals out the ranks.
  struct Service {
    std::mutex mutex;
    int next = 0;
    std::shared_ptr<Store> store = std::make_shared<MemoryStore>();
    std::string url;
    Milliseconds timeout{};
  };
  const auto service = std::make_shared<Service>();
  const auto handler = [service](const std::string& url, const RendezvousOptions& options) {
    const std::lock_guard lock(service->mutex);
    service->url = url;
    service->timeout = options.timeout;
    const int rank = service->next++;
    return Rendezvous{service->store, rank, 3, rank, "", true};
  };
  EXPECT_EQ(said("my-service+1.0://x?colour=green"),
            "[rendezvous] No rendezvous handler for my-service+1.0://: expected env://, "
            "tcp://HOST:PORT, file://PATH or inproc://N, or a scheme with a registered handler");
  register_rendezvous_handler("my-service+1.0", handler);
  as_ranks(3, [&](int) {
    expect_group(init_process_group("my-service+1.0://x?colour=green", {}, within(seconds(7))), 3);
  });
  EXPECT_EQ(service->url, "my-service+1.0://x?colour=green");
  EXPECT_EQ(service->timeout, seconds(7));
}

// Ranks over Gloo, and one handler that uses another.
TEST(RendezvousHandlers, OverAnotherRendezvous) {
  const std::string port = std::to_string(free_port());
  register_rendezvous_handler("nearby", [port](const std::string& url, const RendezvousOptions& o) {
    return rendezvous("tcp://127.0.0.1:" + port + url.substr(url.find('?')), o);
  });
  as_ranks(2, [](int rank) {
    const Group g = init_process_group(with_rank("nearby://?world_size=2", rank));
    EXPECT_STREQ(g->backend(), "gloo");
    Tensor t = ones({2});
    g->all_reduce(t).wait();
    EXPECT_EQ(t[0].item<double>(), 2);
  });
}

TEST(RendezvousHandlers, WhatTheyReturnIsChecked) {
  register_rendezvous_handler("no-store", [](const auto&, const auto&) { return Rendezvous{}; });
  EXPECT_EQ(said("no-store://"), "[rendezvous] the handler for no-store:// returned no store");
  register_rendezvous_handler("no-rank", [](const auto&, const auto&) {
    return Rendezvous{std::make_shared<MemoryStore>(), 2, 2, 0, ""};
  });
  expect_part(said("no-rank://"), "the handler for no-rank:// returned rank 2 of a world of 2");
  register_rendezvous_handler("throws", [](const auto&, const auto&) -> Rendezvous {
    throw Error("[throws] nobody is at home");
  });
  EXPECT_EQ(said("throws://"), "[throws] nobody is at home");
}

TEST(RendezvousHandlers, SchemesAreChecked) {
  const RendezvousHandler handler = [](const auto&, const auto&) { return Rendezvous{}; };
  const auto refused = [&](const std::string& scheme, const RendezvousHandler& h) {
    return error_of([&] { register_rendezvous_handler(scheme, h); });
  };
  for (const char* taken : {"env", "tcp", "file", "inproc"})
    EXPECT_EQ(refused(taken, handler), "[register_rendezvous_handler] there is a handler for " +
                                           std::string(taken) + ":// already");
  for (const char* wrong : {"", "1x", "-x", "x y", "x://", "X", "x_y", "\xc3\xa4"})
    expect_part(refused(wrong, handler), "scheme: got \"" + std::string(wrong) + "\"");
  expect_part(refused("empty", {}), "the handler for empty:// is empty");
  expect_part(said("empty://"), "No rendezvous handler for empty://");
  // Of several that come at once, one is taken.
  std::atomic<int> registered{0};
  as_ranks(4, [&](int) { registered += refused("one", handler) == "no error"; });
  EXPECT_EQ(registered, 1);
}

}  // namespace
}  // namespace ramet::distributed
