// --ledger: any step of a run can be checked, on other devices too, and no result is touched.
#include "tests/error_text.h"
#include "tests/tools/train_support.h"
#include "tools/ledger/ledger_file.h"

namespace ramet::training {
namespace {

class TrainLedger : public TrainTest {
 protected:
  // Four steps an epoch.
  Options job(const std::string& out) {
    Options o = options(out);
    o.model = "cnn";
    o.dropout = 0.2;
    o.epochs = 2;
    o.batch = 24;
    o.reduce = "tree:4";
    o.ledger = folder_ + "/" + out + ".ledger";
    return o;
  }
  std::string verified(Options o, int64_t step, int expected_code = 0) {
    const std::string asked = std::to_string(step) + ":" + o.ledger;
    setenv("RAMET_LEDGER_VERIFY", asked.c_str(), 1);
    o.out = folder_ + "/nothing";
    const std::string text = printed(o, expected_code);
    unsetenv("RAMET_LEDGER_VERIFY");
    EXPECT_FALSE(exists(o.out));
    return text;
  }
  std::string not_verified(const Options& o, int64_t step) {
    const std::string asked = std::to_string(step) + ":" + o.ledger;
    setenv("RAMET_LEDGER_VERIFY", asked.c_str(), 1);
    const std::string text = refusal(o);
    unsetenv("RAMET_LEDGER_VERIFY");
    return text;
  }
};

TEST_F(TrainLedger, AnyStepOnAnyDevices) {
  const Options o = job("whole");
  printed(o);
  const ledger::ReadLedger read(o.ledger);
  EXPECT_EQ(read.steps(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(read.checkpoints(), (std::vector<int64_t>{0, 4, 8}));
  Options here = o;
  for (const char* devices : {"cpu:0", "cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2,cpu:3"}) {
    here.devices = devices;
    EXPECT_EQ(verified(here, 3).find("verify: step 3 is as recorded: batch, random state"), 0u);
    EXPECT_NE(verified(here, 8).find("states (from the checkpoint after step 4; devices cpu:0"),
              std::string::npos);
  }
  // From the first checkpoint the way leads through the test after the first epoch.
  shell("rm '" + o.ledger + ".checkpoints/4'");
  EXPECT_NE(verified(o, 6).find("from the checkpoint after step 0"), std::string::npos);
}

TEST_F(TrainLedger, FurtherCheckpointsAndResuming) {
  Options o = job("every");
  o.ledger_every = 3;
  printed(o);
  EXPECT_EQ(ledger::ReadLedger(o.ledger).checkpoints(), (std::vector<int64_t>{0, 3, 4, 6, 8}));
  EXPECT_NE(verified(o, 8).find("from the checkpoint after step 6"), std::string::npos);
  const std::string whole = read_file(o.ledger);
  o.resume = true;  // at its end
  printed(o);
  EXPECT_EQ(read_file(o.ledger), whole);
}

// The passes of a GAN, the scale of fp16.
TEST_F(TrainLedger, SeveralPassesAndAScaler) {
  write_images("train", 90, 28);
  write_images("t10k", 30, 28);
  Options o = job("dcgan");
  o.model = "dcgan";
  o.dropout = 0;
  o.epochs = 1;
  o.batch = 30;
  printed(o);
  EXPECT_NE(verified(o, 2).find("step 2 is as recorded"), std::string::npos);
  Options half = job("half");
  half.model = "mlp";
  half.autocast = "fp16";
  half.epochs = 1;
  printed(half);
  EXPECT_NE(verified(half, 3).find("step 3 is as recorded"), std::string::npos);
}

TEST_F(TrainLedger, WhatDiffersIsNamed) {
  const Options o = job("other");
  printed(o);
  write_images("train", 90, 14);  // other images
  EXPECT_NE(not_verified(o, 2), "not refused");
  write_images("t10k", 90);
  shell("cd '" + folder_ + "/data' && mv t10k-images-idx3-ubyte.gz train-images-idx3-ubyte.gz");
  write_images("t10k", 30);
  EXPECT_EQ(verified(o, 2, 1).find("verify: step 1: batch differs: recorded "), 0u);
}

TEST_F(TrainLedger, WhatCannotMatchIsAnError) {
  Options o = job("fixed");
  o.model = "mlp";
  o.reduce = "fixed";
  o.devices = "cpu:0,cpu:1";
  o.epochs = 1;
  printed(o);
  Options here = o;
  here.devices = "cpu:0,cpu:1,cpu:2";
  EXPECT_NE(not_verified(here, 2).find("order of sums: got fixed over 3 devices of 1 processes, "
                                       "expected fixed over 2 devices of 1 processes, as recorded"),
            std::string::npos);
  here = o;
  here.seed = 5;
  here.given = {"seed"};
  EXPECT_NE(not_verified(here, 2).find("--seed: got 5, expected 1 as in the ledger"),
            std::string::npos);
  here = o;
  here.resume = true;
  EXPECT_NE(not_verified(here, 2).find("--resume: got it for ./tools/verify"), std::string::npos);
}

// A run without one removes that of an earlier run.
TEST_F(TrainLedger, AnEarlierLedgerIsRemoved) {
  Options o = job("again");
  o.model = "mlp";
  o.epochs = 1;
  o.ledger = o.out + "/run.ledger";
  printed(o);
  EXPECT_TRUE(exists(o.ledger + ".checkpoints/0"));
  o.ledger.clear();
  printed(o);
  EXPECT_FALSE(exists(o.out + "/run.ledger"));
  EXPECT_FALSE(exists(o.out + "/run.ledger.checkpoints"));
}

}  // namespace
}  // namespace ramet::training
