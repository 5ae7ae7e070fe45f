// Rendezvous over files and TCP, with ranks as threads.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <thread>

#include "parallel/distributed/meet/rendezvous.h"
#include "parallel/distributed/meet/tcp_store.h"
#include "tests/error_text.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed {
namespace {

RendezvousOptions with(std::map<std::string, std::string> variables) {
  RendezvousOptions o;
  o.timeout = std::chrono::seconds(20);
  o.environment = [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  return o;
}

std::string said(const std::string& url, std::map<std::string, std::string> variables) {
  return error_of([&] { rendezvous(url, with(std::move(variables))); });
}

TEST(Rendezvous, SaysWhatIsMissing) {
  expect_part(said("env://", {}), "environment variable RANK expected, but not set");
  expect_part(said("env://", {{"RANK", "0"}}),
              "environment variable WORLD_SIZE expected, but not set");
  EXPECT_NE(said("env://", {{"RANK", "0"}, {"WORLD_SIZE", "2"}})
                .find("environment variable MASTER_ADDR expected, but not set"),
            std::string::npos);
  EXPECT_NE(said("env://", {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}})
                .find("environment variable MASTER_PORT expected, but not set"),
            std::string::npos);
  expect_part(said("env://", {{"RANK", "two"}}), "RANK: got \"two\"");
  EXPECT_NE(said("env://", {{"RANK", "2"}, {"WORLD_SIZE", "2"}})
                .find("rank: got 2 of a world of 2, expected 0 to 1"),
            std::string::npos);
  expect_part(said("env://", {{"RANK", "0"}, {"WORLD_SIZE", "0"}}), "world size: got 0");
  for (const char* wrong : {"", "-1", " 2", "2x", "99999999999"})
    EXPECT_NE(said("env://", {{"RANK", "0"}, {"WORLD_SIZE", wrong}})
                  .find("WORLD_SIZE: got \"" + std::string(wrong) +
                        "\", expected a whole number from 0 to 2147483647"),
              std::string::npos);
  expect_part(said("x://y", {}), "No rendezvous handler for x://");
  expect_part(said("nowhere", {}), "address: got \"nowhere\"");
  expect_part(said("tcp://host:1?world_size=2", {}), "rank parameter missing");
  expect_part(said("tcp://host:1?rank=0", {}), "world size parameter missing");
  expect_part(said("tcp://host?rank=0&world_size=1", {}), "port number missing");
  expect_part(said("file://?rank=0&world_size=1", {}), "path missing");
  expect_part(said("file:///x?rnk=0", {}), "got the parameter \"rnk\"");
}

TEST(Rendezvous, ByEnvironmentAndByAddress) {
  const std::string port = std::to_string(free_port());
  const TempFolder folder;
  struct Way {
    std::string url;
    std::function<std::map<std::string, std::string>(const std::string& rank)> variables;
  };
  const auto url_rank = [](const std::string& url, const std::string& rank) {
    return url == "env://" ? url : url + "?world_size=2&rank=" + rank;
  };
  const std::vector<Way> ways = {
      {"env://",
       [&](const std::string& r) {
         return std::map<std::string, std::string>{{"RANK", r},
                                                   {"WORLD_SIZE", "2"},
                                                   {"LOCAL_RANK", "7"},
                                                   {"MASTER_ADDR", "localhost"},
                                                   {"MASTER_PORT", port}};
       }},
      {"env://",
       [&](const std::string& r) {  // mpirun on one host
         return std::map<std::string, std::string>{{"OMPI_COMM_WORLD_RANK", r},
                                                   {"OMPI_COMM_WORLD_SIZE", "2"},
                                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "7"},
                                                   {"MASTER_PORT", port}};
       }},
      {"env://",
       [&](const std::string& r) {  // mpirun; its job gives the port
         return std::map<std::string, std::string>{
             {"OMPI_COMM_WORLD_RANK", r},
             {"OMPI_COMM_WORLD_SIZE", "2"},
             {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
             {"OMPI_COMM_WORLD_LOCAL_RANK", "7"},
             {"OMPI_MCA_ess_base_jobid", std::to_string(getpid() * 65536LL + 1)}};
       }},
      {"env://",
       [&](const std::string& r) {  // of Open MPI 5, on several hosts
         return std::map<std::string, std::string>{
             {"OMPI_COMM_WORLD_RANK", r},
             {"OMPI_COMM_WORLD_SIZE", "2"},
             {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
             {"OMPI_COMM_WORLD_LOCAL_RANK", "7"},
             {"MASTER_ADDR", "localhost"},
             {"PMIX_NAMESPACE", "prterun-host-" + std::to_string(getpid()) + "@1"}};
       }},
      {"env://",
       [&](const std::string& r) {  // srun
         return std::map<std::string, std::string>{{"SLURM_PROCID", r},
                                                   {"SLURM_NTASKS", "2"},
                                                   {"SLURM_STEP_NODELIST", "localhost"},
                                                   {"SLURM_LOCALID", "7"},
                                                   {"SLURM_JOB_ID", std::to_string(getpid())}};
       }},
      {"env://",
       [&](const std::string& r) {  // of several clusters, in an interactive step: large numbers
         return std::map<std::string, std::string>{
             {"SLURM_PROCID", r},
             {"SLURM_NTASKS", "2"},
             {"SLURM_STEP_NODELIST", "localhost"},
             {"SLURM_LOCALID", "7"},
             {"SLURM_JOB_ID",
              std::to_string(4290000000u + static_cast<unsigned>(getpid()) % 100000)},
             {"SLURM_STEP_ID", "4294967290"}};
       }},
      {"env://",
       [&](const std::string& r) {  // tools/launch
         return std::map<std::string, std::string>{{"RANK", r},
                                                   {"WORLD_SIZE", "2"},
                                                   {"LOCAL_RANK", "7"},
                                                   {"RAMET_STORE", "file://" + folder.path("env")}};
       }},
      {"tcp://127.0.0.1:" + port,
       [](const std::string&) -> std::map<std::string, std::string> {
         return {{"LOCAL_RANK", "7"}};
       }},
      {"file://" + folder.path("store"),
       [](const std::string&) -> std::map<std::string, std::string> {
         return {{"LOCAL_RANK", "7"}};
       }}};
  for (const Way& way : ways) {
    Rendezvous got[2];
    as_ranks(2, [&](int rank) {
      const std::string r = std::to_string(rank);
      got[rank] = rendezvous(url_rank(way.url, r), with(way.variables(r)));
      got[rank].store->set("from" + r, r);
    });
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(got[rank].rank, rank) << way.url;
      EXPECT_EQ(got[rank].world_size, 2);
      EXPECT_EQ(got[rank].local_rank, 7);
      EXPECT_EQ(got[rank].store->get("from" + std::to_string(1 - rank)), std::to_string(1 - rank));
    }
  }
}

TEST(Rendezvous, RanksThatDoNotComeAreNamed) {
  RendezvousOptions o = with({});
  o.timeout = Milliseconds(200);
  const std::string text = error_of([&] {
    rendezvous("tcp://127.0.0.1:" + std::to_string(free_port()) + "?rank=0&world_size=3", o);
  });
  expect_part(text, "of the 3 ranks of the group these did not come: ranks 1, 2");
}

// Over TCP: when rank 0 has its error, and no code of the process uses the store any more.
TEST(Rendezvous, RanksThatComeLateHearWhyItFailed) {
  const auto comes = [](const std::string& port, int rank, int world_size) {
    return error_of([&] {
      rendezvous("tcp://127.0.0.1:" + port + "?rank=" + std::to_string(rank) +
                     "&world_size=" + std::to_string(world_size),
                 with({}));
    });
  };
  for (const auto& [wrong, says] :
       {std::pair(StoreClient{1, 4, "", ""}, "world size: rank 1 was given 4, rank 0 was given 3"),
        std::pair(StoreClient{1, 3, "", "9.9"}, "different versions of the library: rank 1 has"),
        std::pair(StoreClient{0, 3, "", ""}, "rank 0 is there twice")}) {
    const std::string port = std::to_string(free_port());
    std::string told;
    std::thread zero([&] { told = comes(port, 0, 3); });
    const std::string text = error_of([&, &client = wrong] {
      TcpStore s("127.0.0.1", static_cast<uint16_t>(std::stoi(port)), client,
                 std::chrono::seconds(20));
      s.get("what nobody sets", std::chrono::seconds(20));  // of two rank 0, this may be the first
    });
    zero.join();
    expect_part(text, says);
    EXPECT_EQ(told, text);
    EXPECT_EQ(comes(port, 2, 3), text);
    // Another try at this port, though some are still to come.
    EXPECT_EQ(comes(port, 0, 1), "no error");
  }
}

// At one address, while a rank still has the store of before: the others wait for it.
TEST(Rendezvous, OneRunAfterTheOther) {
  const TempFolder folder;
  for (const std::string& address :
       {"tcp://127.0.0.1:" + std::to_string(free_port()), "file://" + folder.path("meet")}) {
    SCOPED_TRACE(address);
    for (const int slow : {0, 1})
      as_ranks(2, [&](int rank) {
        for (int run = 0; run < 3; ++run) {
          const Rendezvous r =
              rendezvous(address + "?world_size=2&rank=" + std::to_string(rank), with({}));
          const std::string mine = std::to_string(run);
          r.store->set(std::to_string(rank), mine);
          EXPECT_EQ(r.store->get(std::to_string(1 - rank)), mine);
          // Rank 0's store may end before it has answered.
          if (rank == 1) error_of([&] { r.store->set("over", ""); });
          else r.store->wait({"over"});
          if (rank == slow) std::this_thread::sleep_for(Milliseconds(150));
        }
      });
  }
}

// Nor does it matter how often a rank has tried before the others came.
TEST(Rendezvous, TriesInVainBefore) {
  const TempFolder folder;
  for (const std::string& address :
       {"tcp://127.0.0.1:" + std::to_string(free_port()), "file://" + folder.path("meet")}) {
    SCOPED_TRACE(address);
    std::promise<void> tried;
    as_ranks(3, [&](int rank) {
      const std::string url = address + "?world_size=3&rank=" + std::to_string(rank);
      RendezvousOptions soon = with({});
      soon.timeout = Milliseconds(200);
      if (rank == 1) {
        EXPECT_NE(error_of([&] { rendezvous(url, soon); }), "no error");
        EXPECT_NE(error_of([&] { rendezvous(url, soon); }), "no error");
        tried.set_value();
        std::this_thread::sleep_for(Milliseconds(100));  // the last one comes during this time
      }
      if (rank == 2) tried.get_future().wait();
      EXPECT_EQ(rendezvous(url, with({})).world_size, 3);
    });
  }
}

TEST(Rendezvous, RunsAreKeptApart) {
  using Variables = std::map<std::string, std::string>;
  const auto apart = [](const Variables& zero, const Variables& one, const std::string& expected) {
    const std::string port = std::to_string(free_port());
    std::string text;
    as_ranks(2, [&](int rank) {
      Variables v = rank ? one : zero;
      v.insert({{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}});
      RendezvousOptions o = with(v);
      o.timeout = Milliseconds(rank ? 5000 : 500);
      const std::string said = error_of([&] { rendezvous("env://", o); });
      if (rank) text = said;
    });
    expect_part(text, expected);
  };
  apart({{"RANK", "0"}, {"RAMET_RUN_ID", "a"}}, {{"RANK", "1"}, {"RAMET_RUN_ID", "b"}},
        "belongs to the run 'b', but the store here serves the run 'a'");
  // Two jobs that were given one port.
  apart({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "1"}},
        {{"SLURM_PROCID", "1"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "2"}},
        "belongs to the run 'srun 7.2', but the store here serves the run 'srun 7.1'");
  apart({{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_NAMESPACE", "x@1"}},
        {{"OMPI_COMM_WORLD_RANK", "1"}, {"PMIX_NAMESPACE", "x@2"}},
        "belongs to the run 'mpirun x@2', but the store here serves the run 'mpirun x@1'");
}

// Several steps of a job may start the ranks that a user numbered himself.
TEST(Rendezvous, StepsOfOneJob) {
  const std::string port = std::to_string(free_port());
  std::promise<void> heard;  // what rank 0 serves ends with it
  as_ranks(2, [&](int rank) {
    const std::string r = std::to_string(rank);
    const Rendezvous got = rendezvous("env://", with({{"RANK", r},
                                                      {"WORLD_SIZE", "2"},
                                                      {"MASTER_ADDR", "127.0.0.1"},
                                                      {"MASTER_PORT", port},
                                                      {"SLURM_PROCID", "0"},
                                                      {"SLURM_JOB_ID", "7"},
                                                      {"SLURM_STEP_ID", r}}));
    EXPECT_EQ(got.rank, rank);
    got.store->set("from" + r, r);
    EXPECT_EQ(got.store->get("from" + std::to_string(1 - rank)), std::to_string(1 - rank));
    if (rank == 1) heard.set_value();
    else heard.get_future().wait_for(std::chrono::seconds(20));
  });
}

}  // namespace
}  // namespace ramet::distributed
