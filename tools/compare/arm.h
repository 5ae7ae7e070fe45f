// The interface between the comparison's driver and one arm of it. An arm is a list of cases. This
// library's arm is linked in. LibTorch's is the same source (cases_*.inc), compiled against
// LibTorch into a shared object and opened at run time. Only plain data crosses.
#pragma once
#include <cstdint>

extern "C" {

/// One tensor of a draw: its values as doubles or, for whole numbers and bool, as int64.
struct CompareResult {
  const char* label;
  const char* dtype;
  int stage;  // 0: values, 1: gradients, 2: gradients of gradients
  int rank;
  const int64_t* sizes;
  const int64_t* strides;  // null where they are no part of the result
  int64_t count;
  const double* reals;    // one of these two
  const int64_t* wholes;  //
};

/// The results of one draw.
struct CompareReport {
  int thrown;            // -1: nothing, otherwise the stage that threw.
  const char* message;   // the text of that error.
  const char* text;      // the draw in words
  const char* known;     // name of a deliberate difference (known.h) that this draw may show, or ""
  const char* coarsest;  // floating dtype among the inputs
  double scale;          // largest finite magnitude among inputs and results
  double slack;          // a factor on the tolerance
  int strict;            // the case's elements do not mix
  int count;
  const CompareResult* results;
};

/// The cases of one cases_*.inc. A report lives until the call of `run` after the next one.
struct CompareArm {
  int count;
  const char* (*name)(int index);
  const char* (*covers)(int index);  // names of functions, separated by spaces
  const CompareReport* (*run)(int index, uint64_t seed, uint64_t draw);
};
}
