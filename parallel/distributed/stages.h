// Moved. This name stays for one release.
#pragma once
#include "parallel/distributed/stages/stages.h"
