// This library's arm of one file of cases (RAMET_COMPARE_FILE, see BUILD).
#define RAMET_COMPARE_API ramet
#define RAMET_COMPARE_OPS ramet
#define RAMET_COMPARE_OPTIONAL std::optional
#include "ramet.h"
#include "tools/compare/arm_source.h"

extern "C" CompareArm RAMET_COMPARE_JOINED(compare_ramet_)() { return arm_of_cases(); }
