// Grades one of the answers that tools/labs/sources.py has made of a lab.
// usage: answers LAB WHICH REPORT   (WHICH: 0 the solution, 1 ... the planted mistakes, then the file with holes)
#include <cstdio>
#include <cstdlib>

#include "tools/labs/grader.h"

namespace ramet::labs {
using Answer = void(int which, Report& report);
Answer answer_01, answer_02, answer_03, answer_04, answer_05, answer_06, answer_07, answer_08,
    answer_09, answer_10, answer_11, answer_12;
}  // namespace ramet::labs

int main(int argc, char** argv) {
  using namespace ramet::labs;
  Answer* const answers[] = {answer_01, answer_02, answer_03, answer_04, answer_05, answer_06,
                             answer_07, answer_08, answer_09, answer_10, answer_11, answer_12};
  const int lab = argc == 4 ? std::atoi(argv[1]) : 0;
  if (lab < 1 || lab > 12) {
    std::fprintf(stderr, "usage: answers LAB WHICH REPORT\n");
    return 2;
  }
  const int which = std::atoi(argv[2]);
  return run(argc - 2, argv + 2, "", [&](Report& report) { answers[lab - 1](which, report); });
}
