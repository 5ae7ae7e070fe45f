// The frame around curves: axes with their ticks, titles.
#pragma once
#include <string>
#include <vector>

#include "tools/see/pictures/axis.h"
#include "tools/see/pictures/picture.h"
#include "tools/see/plot.h"

namespace ramet {
namespace see {

/// The axes of the points that can be drawn, or of the ends that the options give.
struct Axes {
  Axis x, y;
  bool empty;  // no point at all
};
Axes axes_of(const Panel& panel, int x_ticks, int y_ticks);

/// An Error of `plot` unless curves, axes and labels fit together.
void check_panels(const std::vector<Panel>& panels);
/// "time (ms)"; without a label the unit stands after each number.
std::string with_unit(const AxisOptions& o);
/// Can this point be drawn on these axes?
bool drawable(const Panel& panel, double x, double y);

/// The height of title and legend. Their last rows are left out where it would be more than `most`.
double head_height(const Picture& measure, const Panel& panel, double width, double most);
/// Draws title, legend, grid and ticks in the slot, the first two `head` high. Returns the area
/// that is left for the numbers. `axes` gets the panel's axes with as many ticks as fit.
Area draw_frame(Picture& picture, Area slot, double head, const Panel& panel, Axes& axes,
                bool dark);

}  // namespace see
}  // namespace ramet
