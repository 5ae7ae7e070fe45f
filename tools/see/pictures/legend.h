// The names and colours of curves.
#pragma once
#include "tools/see/pictures/picture.h"
#include "tools/see/plot.h"

namespace ramet {
namespace see {

/// A curve's own colour, or the next one of the palette. Curves with their own colour use none of
/// the palette.
Color color_of_curve(const std::vector<Curve>& curves, size_t i, bool dark);
/// Once all colours of the palette are used curves are dashed: pixels, 0: not.
double dash_of_curve(const std::vector<Curve>& curves, size_t i);

/// The height of the names of the curves, in as many rows as fit, with the space below; 0 without
/// names.
double legend_height(const Picture& measure, const std::vector<Curve>& curves, double width,
                     double most);
void draw_legend(Picture& picture, Area area, const std::vector<Curve>& curves, bool dark);

}  // namespace see
}  // namespace ramet
