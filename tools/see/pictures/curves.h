// Curves on axes that are there.
#pragma once
#include "tools/see/pictures/panel.h"

namespace ramet {
namespace see {

/// Lines, dots and labels; what is outside of the area is cut off.
void draw_curves(Picture& picture, Area area, const Panel& panel, const Axes& axes, bool dark);

}  // namespace see
}  // namespace ramet
