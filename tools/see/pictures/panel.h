// What stands around curves: axes with their ticks, titles.
#pragma once
#include <string>
#include <vector>

#include "tools/see/pictures/axis.h"
#include "tools/see/pictures/picture.h"
#include "tools/see/plot.h"

namespace ramet {
namespace see {

/// Of the points that can be drawn, or of the ends that the options give.
struct Axes {
  Axis x, y;
  bool empty;  // no point at all
};
Axes axes_of(const Panel& panel, int x_ticks, int y_ticks);

/// An Error of `plot` unless curves, axes and labels fit together.
void check_panels(const std::vector<Panel>& panels);
/// "time (ms)"; where there is no label the unit stands behind each number.
std::string with_unit(const AxisOptions& o);
/// Can this point be drawn on these axes?
bool drawable(const Panel& panel, double x, double y);

/// Of title and legend, whose last rows are left out where it would be more than `most`.
double head_height(const Picture& measure, const Panel& panel, double width, double most);
/// Title, legend, grid and ticks in the slot, the first two `head` high; returns the area that is
/// left for the numbers, and in `axes` the panel's with as many ticks as have room.
Area draw_frame(Picture& picture, Area slot, double head, const Panel& panel, Axes& axes,
                bool dark);

}  // namespace see
}  // namespace ramet
