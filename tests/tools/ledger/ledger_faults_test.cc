// Ledgers that were cut, changed or lost, and runs that cannot match: each is an error that says
// so.
#include <sys/resource.h>

#include <csignal>

#include "tests/error_text.h"
#include "tests/tools/ledger/ledger_job.h"
#include "tools/ledger/ledger_file.h"

namespace ramet::ledger {
namespace {

class LedgerFaults : public LedgerTest {
 protected:
  LedgerFaults() { record(); }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    std::ifstream in(path());
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  void write(const std::string& text) const { std::ofstream(path(), std::ios::binary) << text; }
  void write(const std::vector<std::string>& lines) const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write(text);
  }
};

TEST_F(LedgerFaults, ALastLineThatIsCut) {
  const std::string whole = contents(path());
  write(whole.substr(0, whole.size() - 20));
  EXPECT_TRUE(verify(11).same);
  EXPECT_ERROR_TEXT(
      verify(12),
      "got step 12, expected one that it has: those from 1 to 11 (its last line is cut)");
  // A resumed run writes it again.
  Job job(path());
  job.parts.load(path() + ".checkpoints/10");
  EXPECT_EQ(job.train(12, {}, job.step), 0);
  EXPECT_EQ(contents(path()), whole);
}

TEST_F(LedgerFaults, ALineThatWasChangedOrLost) {
  const std::vector<std::string> whole = lines();
  std::vector<std::string> changed = whole;
  char& digit = changed[4][20];
  digit = digit == '1' ? '2' : '1';
  write(changed);
  EXPECT_ERROR_TEXT(verify(9), "line 5 of \"" + path() + "\" does not follow the line before it");
  std::vector<std::string> fewer = whole;
  fewer.erase(fewer.begin() + 6);
  write(fewer);
  EXPECT_ERROR_TEXT(verify(9), "line 7 of \"" + path() + "\" does not follow the line before it");
  fewer = whole;
  fewer.erase(fewer.begin());
  write(fewer);
  EXPECT_ERROR_TEXT(verify(9), "line 1 of \"" + path() + "\" does not follow the line before it");
}

TEST_F(LedgerFaults, WhatIsNoLedger) {
  for (const char* text : {"{}\n", "\n", "step 1\n", "{\"a\":1,\"chain\":\"00\"}\n"}) {
    write(std::string(text));
    EXPECT_ERROR_TEXT(verify(1), "[ledger] line 1 of \"" + path() + "\"");
  }
  write(std::string());
  EXPECT_ERROR_TEXT(verify(1), "got a first line that is no header, expected a ledger");
  shell("rm '" + path() + "'");
  EXPECT_ERROR_TEXT(verify(1), "[ledger] cannot read \"" + path() + "\" (No such file");
}

TEST_F(LedgerFaults, ACheckpointThatIsMissing) {
  const std::string folder = path() + ".checkpoints/";
  shell("rm '" + folder + "5'");
  EXPECT_EQ(verify(7).checkpoint, 0);
  EXPECT_TRUE(verify(7).same);
  shell("rm '" + folder + "0'");
  EXPECT_ERROR_TEXT(verify(7), "no checkpoint before step 7: \"" + folder + "5\" is missing");
  // Another run's.
  shell("cp '" + folder + "10' '" + folder + "5'");
  EXPECT_ERROR_TEXT(verify(7), "\" is not what \"" + path() + "\" records: parameter 0.weight");
}

TEST_F(LedgerFaults, AStepThatIsNotThere) {
  EXPECT_ERROR_TEXT(verify(13), "got step 13, expected one that it has: those from 1 to 12");
  const Variable asked("RAMET_LEDGER_VERIFY", "0:" + path());
  EXPECT_ERROR_TEXT(Job(""),
                    "[RAMET_LEDGER_VERIFY] got \"0\", expected the number of a step, from 1");
  for (const char* bad : {"x", "1", "-1:a", "1.5:a", "9999999999999999999:a"}) {
    const Variable other("RAMET_LEDGER_VERIFY", bad);
    EXPECT_ERROR_TEXT(Job(""), "[RAMET_LEDGER_VERIFY] got \"");
  }
}

TEST_F(LedgerFaults, ARunThatCannotMatch) {
  const Variable asked("RAMET_LEDGER_VERIFY", "7:" + path());
  LedgerOptions o = Job::options("");
  o.order = "fixed over 3";
  Job other_order(o, 1);
  EXPECT_ERROR_TEXT(other_order.ledger.begin(),
                    "order of sums: got fixed over 3, expected tree:4, as recorded");
  o = Job::options("");
  o.settings = "lr 0.5";
  Job other_settings(o, 1);
  EXPECT_ERROR_TEXT(other_settings.ledger.begin(), "settings: got lr 0.5, expected , as");
  Job other_model("");
  const nn::Linear more(2, 2);
  other_model.ledger.watch(*more, "more.");
  EXPECT_ERROR_TEXT(other_model.ledger.begin(),
                    "parameter number 6: got more.weight, expected none, as recorded");
}

TEST_F(LedgerFaults, CallsInAnotherOrder) {
  Job job(path());
  EXPECT_ERROR_TEXT(job.ledger.batch({}), "batch() was called before begin() or run()");
  job.ledger.begin();
  EXPECT_ERROR_TEXT(job.ledger.gradients(), "step 1: gradients() was called before batch()");
  EXPECT_ERROR_TEXT(job.ledger.end_step(), "step 1: batch() was not called");
  job.ledger.batch({});
  EXPECT_ERROR_TEXT(job.ledger.batch({}), "step 1: batch() was called twice");
  EXPECT_ERROR_TEXT(job.ledger.begin(), "begin() was called twice");
  EXPECT_ERROR_TEXT(job.ledger.watch(*job.net), "watch() was called after begin()");
  LedgerOptions o = Job::options(path());
  o.checkpoint_every = -1;
  EXPECT_ERROR_TEXT(Job(o, 1), "checkpoint_every: got -1, expected at least 0");
}

// A limit of the file's size stands for a full disk.
TEST_F(LedgerFaults, ADiskThatTakesNoMore) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  LedgerOptions o = Job::options(path());
  o.checkpoint_every = 0;
  Job job(o, 1);
  job.ledger.begin();
  const rlimit small{contents(path()).size() + 1500, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto train = [&] {
    for (int i = 0; i < 9; ++i) {
      job.one_step();
      job.ledger.end_step();
    }
  };
  EXPECT_ERROR_TEXT(train(), "[ledger] cannot write a line to \"" + path() + "\" (");
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, before);
  // What was written before is whole.
  EXPECT_GE(ReadLedger(path()).steps().size(), 1u);
}

}  // namespace
}  // namespace ramet::ledger
