// Stores, with ranks as threads: they do not care.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "parallel/distributed/meet/file_store.h"
#include "parallel/distributed/meet/rendezvous.h"
#include "parallel/distributed/meet/tcp_store.h"
#include "tests/error_text.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// What all stores do. `other`: another client of the same store.
void exercise(Store& store, Store& other) {
  EXPECT_FALSE(store.check({"a"}));
  store.set("a", std::string("x\0y", 3));
  EXPECT_EQ(other.get("a"), std::string("x\0y", 3));
  EXPECT_EQ(store.add("n", 5), 5);
  EXPECT_EQ(other.add("n", -2), 3);
  EXPECT_EQ(store.get("n"), "3");
  EXPECT_EQ(store.compare_set("c", std::nullopt, "1"), std::nullopt);
  EXPECT_EQ(other.compare_set("c", std::nullopt, "2"), "1");
  EXPECT_EQ(other.compare_set("c", "1", "3"), "1");
  EXPECT_EQ(store.get("c"), "3");
  EXPECT_EQ(store.size(), 3u);
  EXPECT_TRUE(store.erase("c"));
  EXPECT_FALSE(other.erase("c"));
  EXPECT_TRUE(other.check({"a", "n"}));
  EXPECT_FALSE(other.check({"a", "c"}));
  EXPECT_ERROR_TEXT(store.add("a", 1), "no number");
  EXPECT_EQ(store.add("full", INT64_MAX), INT64_MAX);
  EXPECT_ERROR_TEXT(other.add("full", 1), "more than an int64 holds");
  EXPECT_EQ(store.get("full"), std::to_string(INT64_MAX));
  EXPECT_TRUE(store.erase("full"));
  EXPECT_EQ(store.find("never", deadline_in(Milliseconds::min())), std::nullopt);

  // A wait ends when the key comes.
  std::thread late([&] {
    std::this_thread::sleep_for(Milliseconds(30));
    other.set("late", "here");
  });
  EXPECT_EQ(store.get("late", std::chrono::seconds(20)), "here");
  late.join();

  // A missing key.
  auto fastest = steady_clock::duration::max();
  // A busy machine may delay one of them.
  for (int tries = 0; tries < 20 && fastest > Milliseconds(300); ++tries) {
    const auto begun = steady_clock::now();
    const std::string text = error_of([&] { store.get("missing", Milliseconds(100)); });
    const auto took = steady_clock::now() - begun;
    expect_part(text, "Timeout waiting for key: missing");
    EXPECT_GE(took, Milliseconds(100));
    fastest = std::min(fastest, took);
  }
  EXPECT_LE(fastest, Milliseconds(300));
  EXPECT_ERROR_TEXT(other.wait({"a", "m1", "m2"}, Milliseconds(20)), "m1, m2");

  // One failure reaches all, those that wait too.
  std::thread failing([&] {
    std::this_thread::sleep_for(Milliseconds(30));
    other.fail_all("[test] nothing goes any more");
  });
  EXPECT_EQ(error_of([&] { store.get("missing", std::chrono::seconds(20)); }),
            "[test] nothing goes any more");
  failing.join();
  EXPECT_EQ(error_of([&] { store.set("a", "b"); }), "[test] nothing goes any more");
}

TEST(Store, Memory) {
  MemoryStore store;
  exercise(store, store);
}

TEST(Store, Prefixes) {
  const auto store = std::make_shared<MemoryStore>();
  PrefixStore a(store, "a"), b(store, "b");
  a.set("k", "1");
  EXPECT_FALSE(b.check({"k"}));
  EXPECT_EQ(store->get("a/k"), "1");
  EXPECT_TRUE(a.erase("k"));
  exercise(a, a);
}

TEST(Store, Tcp) {
  const auto server =
      std::make_shared<TcpStoreServer>("127.0.0.1", 0, StoreClient{0, 2, "run", ""});
  TcpStore zero("127.0.0.1", server->port(), {0, 2, "run", ""}, kDefaultTimeout, server);
  TcpStore one("127.0.0.1", server->port(), {1, 2, "run", ""});
  EXPECT_EQ(one.local_address(), "127.0.0.1");
  exercise(zero, one);
}

TEST(Store, TcpKeepsItsConnections) {
  const auto server =
      std::make_shared<TcpStoreServer>("127.0.0.1", 0, StoreClient{0, 1, "run", ""});
  TcpStore store("127.0.0.1", server->port(), {0, 1, "run", ""}, kDefaultTimeout, server);
  const auto open_files = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  store.set("k", "v");
  const auto before = open_files();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(store.get("k"), "v");
  EXPECT_EQ(open_files(), before);
}

TEST(Store, TcpRefusesWhatDoesNotBelongToTheRun) {
  const auto server =
      std::make_shared<TcpStoreServer>("127.0.0.1", 0, StoreClient{0, 3, "run", ""});
  const uint16_t port = server->port();
  TcpStore zero("127.0.0.1", port, {0, 3, "run", ""}, kDefaultTimeout, server);
  // The store refuses another run's client, and disturbs no other client.
  EXPECT_ERROR_TEXT(TcpStore s("127.0.0.1", port, {1, 3, "other", ""}),
                    "belongs to the run 'other', but the store here serves the run 'run'");
  zero.set("k", "v");
  // The port is taken.
  const std::string taken = error_of([&] {
    TcpStoreServer second("127.0.0.1", port, {0, 3, "", ""});
  });
  expect_part(taken, "rank 0 cannot serve the store at 127.0.0.1:" + std::to_string(port));
  expect_part(taken, "the port is taken");
  // A rank twice: all ranks get the error.
  TcpStore one("127.0.0.1", port, {1, 3, "run", ""});
  const std::string twice = error_of([&] { TcpStore s("127.0.0.1", port, {1, 3, "run", ""}); });
  expect_part(twice, "rank 1 is there twice");
  EXPECT_EQ(error_of([&] { zero.get("k"); }), twice);
  EXPECT_EQ(error_of([&] { one.get("k"); }), twice);
}

// The server is still answering the one that was killed.
TEST(Store, TcpARankThatWasKilledComesAgain) {
  const uint16_t port = free_port();
  const pid_t child = fork();
  if (child == 0) {
    error_of([&] {
      TcpStore one("127.0.0.1", port, {1, 3, "", ""}, seconds(60));
      one.set("waits", "");
      one.get("what nobody sets", seconds(60));
    });
    _exit(1);
  }
  const auto server =
      std::make_shared<TcpStoreServer>("127.0.0.1", port, StoreClient{0, 3, "", ""});
  TcpStore zero("127.0.0.1", port, {0, 3, "", ""}, kDefaultTimeout, server);
  zero.get("waits", seconds(60));
  std::this_thread::sleep_for(Milliseconds(50));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  TcpStore two("127.0.0.1", port, {2, 3, "", ""}),
      one("127.0.0.1", port, {1, 3, "", ""}, seconds(5));
  two.set("k", "v");
  EXPECT_EQ(one.get("k"), "v");
}

TEST(Store, TcpComparesVersionsAndWorldSizes) {
  for (const auto& [client, says] :
       {std::pair(StoreClient{1, 2, "", "9.9"},
                  "different versions of the library: rank 1 has 9.9"),
        std::pair(StoreClient{1, 4, "", ""}, "world size: rank 1 was given 4, rank 0 was given 2"),
        std::pair(StoreClient{2, 2, "", ""}, "rank: got 2, expected 0 to 1")}) {
    const auto server = std::make_shared<TcpStoreServer>("127.0.0.1", 0, StoreClient{0, 2, "", ""});
    TcpStore zero("127.0.0.1", server->port(), {0, 2, "", ""}, kDefaultTimeout, server);
    const std::string text = error_of([&] { TcpStore s("127.0.0.1", server->port(), client); });
    expect_part(text, says);
    EXPECT_EQ(error_of([&] { zero.get("k"); }), text);
  }
}

TEST(Store, TcpSaysWhatIsNotThere) {
  uint16_t port = 0;
  {
    TcpStoreServer server("127.0.0.1", 0, {0, 2, "", ""});
    port = server.port();
    TcpStore one("127.0.0.1", port, {1, 2, "", ""});
    one.set("k", "v");
  }
  const std::string text = error_of([&] {
    TcpStore s("127.0.0.1", port, {1, 2, "", ""}, Milliseconds(150));
  });
  expect_part(text, "Timeout: no store answers at tcp://127.0.0.1:");
  // Something else listens.
  Listener stranger;
  std::thread answers(
      [&] { stranger.answer_once("HTTP/1.1 400 Bad Request\r\n\r\n............"); });
  const std::string foreign = error_of([&] {
    TcpStore s("127.0.0.1", stranger.port(), {1, 2, "", ""}, std::chrono::seconds(5));
  });
  answers.join();
  expect_part(foreign, "is no Ramet store");
}

TEST(Store, TcpServerThatEndsIsSaid) {
  auto server = std::make_shared<TcpStoreServer>("127.0.0.1", 0, StoreClient{0, 2, "", ""});
  TcpStore one("127.0.0.1", server->port(), {1, 2, "", ""});
  std::thread ends([&] {
    std::this_thread::sleep_for(Milliseconds(30));
    server.reset();
  });
  // Nothing found, or the end of the connection: it does not wait for its own deadline.
  const auto begun = steady_clock::now();
  error_of([&] { one.get("missing", std::chrono::minutes(5)); });
  ends.join();
  EXPECT_LT(steady_clock::now() - begun, std::chrono::seconds(60));
  EXPECT_NE(error_of([&] { one.set("k", "v"); }), "no error");
}

TEST(Store, File) {
  const TempFolder folder;
  const std::string path = folder.path("store");
  {
    FileStore zero(path, {0, 2, "run", ""}), one(path, {1, 2, "run", ""});
    exercise(zero, one);
  }
  // Its last rank removes it.
  struct stat info {};
  EXPECT_NE(stat(path.c_str(), &info), 0);
}

TEST(Store, FileRefusesWhatDoesNotBelongToTheRun) {
  const TempFolder folder;
  const std::string path = folder.path("store");
  EXPECT_ERROR_TEXT(FileStore s(folder.path("no/such"), {0, 1, "", ""}),
                    "cannot open the rendezvous file");
  std::ofstream(folder.path("poem")) << "Shall I compare thee to a summer's day?";
  EXPECT_ERROR_TEXT(FileStore s(folder.path("poem"), {0, 1, "", ""}),
                    "is damaged or no file of this library");
  FileStore zero(path, {0, 3, "run", ""});
  const std::string other = error_of([&] { FileStore s(path, {1, 3, "other", ""}); });
  expect_part(other, "stale rendezvous file '" + path + "': it belongs to the run 'run'");
  zero.set("k", "v");
  const std::string twice = error_of([&] { FileStore s(path, {0, 3, "run", ""}); });
  expect_part(twice, "rank 0 is there twice");
  EXPECT_EQ(error_of([&] { zero.get("k"); }), twice);
}

// Another process removes a run's file, and another run begins there.
TEST(Store, FileLeavesAnotherRunsFile) {
  const TempFolder folder;
  const std::string path = folder.path("store");
  auto first = std::make_unique<FileStore>(path, StoreClient{0, 1, "", ""});
  ASSERT_EQ(unlink(path.c_str()), 0);
  FileStore second(path, {0, 2, "", ""});
  first = nullptr;
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
}

TEST(Store, FileOfAnotherVersion) {
  const TempFolder folder;
  FileStore zero(folder.path("store"), {0, 2, "", ""});
  const std::string text = error_of([&] { FileStore s(folder.path("store"), {1, 2, "", "9.9"}); });
  expect_part(text, "different versions of the library: rank 1 has 9.9");
  EXPECT_EQ(error_of([&] { zero.get("k"); }), text);
}

// Ranks that come when earlier ones have gone get their error; of another process's run, too.
TEST(Store, FileKeepsWhyItFailed) {
  const TempFolder folder;
  const std::string path = folder.path("store");
  const auto wrong = [&] { FileStore s(path, {1, 4, "", ""}); };
  std::string text;
  {
    FileStore zero(path, {0, 3, "", ""});
    text = error_of(wrong);
    expect_part(text, "world size: rank 1 was given 4, the one that made");
    EXPECT_EQ(error_of([&] { zero.set("k", "v"); }), text);
  }
  EXPECT_EQ(error_of([&] { FileStore s(path, {2, 3, "", ""}); }), text);
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(in_child([&] {
              new FileStore(path, {0, 3, "", ""});
              return error_of(wrong) == text ? 0 : 1;
            }),
            0);
  const std::string late = error_of([&] { FileStore s(path, {2, 3, "", ""}); });
  expect_part(late, "stale rendezvous file '" + path + "': process ");
  expect_part(late, "has ended (its run failed: " + text + ")");
}

// Left by a process that ended: by a child of ours, which does not run destructors.
TEST(Store, StaleFileIsNamed) {
  const TempFolder folder;
  const std::string path = folder.path("store");
  ASSERT_EQ(in_child([&] {
              new FileStore(path, {0, 2, "", ""});
              return 0;
            }),
            0);
  for (int rank : {0, 1}) {
    const std::string text = error_of([&] { FileStore s(path, {rank, 2, "", ""}); });
    expect_part(text, "stale rendezvous file '" + path + "': process ");
    expect_part(text, "which made it, has ended");
  }
}

// By a process that was stopped, say.
TEST(Store, FileThatSomebodyKeepsLocked) {
  const TempFolder folder;
  const std::string path = folder.path("store");
  FileStore zero(path, {0, 2, "", ""});
  const int held = open(path.c_str(), O_RDWR);
  ASSERT_EQ(flock(held, LOCK_EX), 0);
  const auto begun = std::chrono::steady_clock::now();
  const std::string text =
      "Timeout: another process keeps the rendezvous file '" + path + "' locked";
  EXPECT_ERROR_TEXT(FileStore one(path, {1, 2, "", ""}, Milliseconds(200)), text);
  EXPECT_ERROR_TEXT(zero.find("k", deadline_in(Milliseconds(100))), text);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
  close(held);
  FileStore one(path, {1, 2, "", ""});
  one.set("k", "v");
  EXPECT_EQ(zero.get("k"), "v");
}

}  // namespace
}  // namespace ramet::distributed
