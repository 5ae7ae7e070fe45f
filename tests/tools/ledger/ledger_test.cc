// A run that is checked: it is as recorded on any number of devices, and whatever was changed in it
// is named.
#include "tools/ledger/ledger.h"

#include "tests/tools/ledger/ledger_job.h"

namespace ramet::ledger {
namespace {

TEST_F(LedgerTest, EveryStepIsAsRecorded) {
  record();
  for (const int64_t step : {1, 4, 5, 6, 10, 12}) {
    const Verdict v = verify(step);
    EXPECT_TRUE(v.same) << v.text;
    EXPECT_EQ(v.checkpoint, (step - 1) / 5 * 5);
    std::string expected = "step " + std::to_string(step) +
                           " is as recorded: batch, random state, 6 gradients, 6 parameters, 3 "
                           "buffers";
    if (step % 5 == 0) expected += ", 6 states";
    EXPECT_EQ(v.text, expected);
  }
}

TEST_F(LedgerTest, OnAnyNumberOfDevices) {
  record(2);
  for (const int devices : {1, 2, 4}) {
    const Verdict v = verify(8, {}, devices);
    EXPECT_TRUE(v.same) << devices << ": " << v.text;
  }
}

TEST_F(LedgerTest, OneBitIsNamed) {
  record();
  EXPECT_EQ(found(7,
                  [](Job& job, Faults& f) {
                    f.gradients = [&](int64_t step) {
                      if (step == 7) flip(job.net->parameters()[4].grad(), 3);
                    };
                  }),
            "step 7: gradient of 4.weight");
  EXPECT_EQ(found(7,
                  [](Job& job, Faults& f) {
                    f.after = [&](int64_t step) {
                      if (step == 7) flip(job.net->parameters()[2]);
                    };
                  }),
            "step 7: parameter 1.weight");
  EXPECT_EQ(found(7,
                  [](Job& job, Faults& f) {
                    f.after = [&](int64_t step) {
                      if (step == 7) flip(job.net->buffers()[1]);
                    };
                  }),
            "step 7: buffer 1.running_var");
  // States are recorded with checkpoints.
  EXPECT_EQ(found(10,
                  [](Job& job, Faults& f) {
                    f.after = [&](int64_t step) {
                      if (step != 10) return;
                      auto& state = *job.adam.state().at(job.net->parameters()[1].impl());
                      flip(static_cast<optim::AdamParamState&>(state).exp_avg());
                    };
                  }),
            "step 10: state of 0.bias");
}

// An earlier quantity comes first: what is drawn decides about all that follows.
TEST_F(LedgerTest, TheFirstQuantityIsNamed) {
  record();
  EXPECT_EQ(found(7,
                  [](Job&, Faults& f) {
                    f.before = [](int64_t step) {
                      if (step == 7) rand({1});
                    };
                  }),
            "step 7: batch");
  EXPECT_EQ(found(9,
                  [](Job& job, Faults& f) {
                    f.gradients = [&](int64_t step) {
                      if (step == 7) flip(job.net->parameters()[0].grad());
                    };
                  }),
            "step 7: gradient of 0.weight");
}

TEST_F(LedgerTest, ARandomStateThatDiffersIsNamed) {
  record();
  const Variable asked("RAMET_LEDGER_VERIFY", "6:" + path());
  Job job("");
  job.ledger.begin();
  const Tensor x = randn({16, 6});
  rand({1});
  job.ledger.batch({x});
  job.ledger.gradients();
  job.ledger.end_step();
  EXPECT_EQ(job.ledger.verdict().text.substr(0, 32), "step 6: random state differs: re");
}

TEST_F(LedgerTest, TheFirstOperationIsNamed) {
  {
    const Variable operations("RAMET_LEDGER_OPERATIONS", "7");
    record(2);
  }
  EXPECT_TRUE(verify(7, {}, 4).same);
  EXPECT_TRUE(verify(7, {}, 1).same);
  // A weight that the checkpoint's run did not have: the first product differs.
  const auto plant = [](Job& job, Faults& faults) {
    faults.before = [&job](int64_t step) {
      if (step == 7) flip(job.net->parameters()[4], 5);
    };
  };
  const std::string text = verify(7, plant, 2).text;
  EXPECT_NE(text.find("gradient of 0.weight differs"), std::string::npos) << text;
  EXPECT_NE(text.find("; the first operation that differs is number "), std::string::npos) << text;
  EXPECT_NE(text.find(", LinearBackward0"), std::string::npos) << text;
}

// Processors differ in the sign of a NaN that they make.
TEST_F(LedgerTest, ANanHasNoSign) {
  const auto plant = [](Job& job, uint32_t bits) {
    return [&job, bits](int64_t step) {
      if (step != 10) return;
      auto& state = *job.adam.state().at(job.net->parameters()[1].impl());
      *static_cast<uint32_t*>(static_cast<optim::AdamParamState&>(state).exp_avg().data_ptr()) =
          bits;
    };
  };
  Faults faults;
  {
    Job job(path());
    faults.after = plant(job, 0x7fc00000);
    EXPECT_EQ(job.train(12, faults), 0);
  }
  const Variable asked("RAMET_LEDGER_VERIFY", "11:" + path());
  Job job("");
  EXPECT_EQ(job.train(0), 0);  // from the checkpoint after step 10
  const Variable before("RAMET_LEDGER_VERIFY", "10:" + path());
  Job other("");
  faults.after = plant(other, 0xffc00000);
  EXPECT_EQ(other.train(0, faults), 0);
}

TEST_F(LedgerTest, TheExitCodeOfAProgram) {
  record();
  const auto code = [&](const std::string& step, const Faults& faults) {
    const Variable asked("RAMET_LEDGER_VERIFY", step + ":" + path());
    return Job("").train(0, faults);
  };
  EXPECT_EQ(code("7", {}), 0);
  Faults other;
  other.before = [](int64_t) { rand({1}); };
  EXPECT_EQ(code("7", other), 1);
  EXPECT_EQ(code("13", {}), 2);
}

TEST_F(LedgerTest, AResumedRunGoesOnWithTheLedger) {
  record();
  const std::string whole = contents(path());
  const std::string checkpoint = path() + ".checkpoints/10";
  {
    Job job(path());
    job.parts.load(checkpoint);
    EXPECT_EQ(job.train(12, {}, job.step), 0);
  }
  EXPECT_EQ(contents(path()), whole);
  EXPECT_TRUE(verify(12).same);
}

TEST_F(LedgerTest, WithoutAFileNothingIsWritten) {
  Job job("");
  EXPECT_FALSE(job.ledger.is_on());
  EXPECT_EQ(job.train(3), 0);
  LedgerOptions other = Job::options(path());
  other.writes = false;
  Job rank_1(other, 1);
  EXPECT_EQ(rank_1.train(3), 0);
  EXPECT_NE(::access(path().c_str(), F_OK), 0);
}

TEST_F(LedgerTest, TheEnvironmentNamesTheFile) {
  const Variable file("RAMET_LEDGER", path());
  Job job("");
  EXPECT_EQ(job.train(3), 0);
  EXPECT_TRUE(verify(3).same);
}

}  // namespace
}  // namespace ramet::ledger
