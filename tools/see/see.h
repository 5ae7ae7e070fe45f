// All of the library "see", in one. Installed this is <ramet/see.h>, and what it includes its
// public headers: ramet/see/recording.h and so on.
#pragma once
#include "tools/see/explain_anomalies.h"
#include "tools/see/explore.h"
#include "tools/see/findings.h"
#include "tools/see/plot.h"
#include "tools/see/recording.h"
#include "tools/see/recording_file.h"
#include "tools/see/show.h"
#include "tools/see/stepper.h"
