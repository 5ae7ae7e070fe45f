#include "tools/see/pictures/picture.h"

#include <cairo/cairo-svg.h>
#include <cairo/cairo.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "nn/formats/tensorboard/png_internal.h"
#include "runtime/base/error.h"

#ifdef __SANITIZE_ADDRESS__
// Fontconfig keeps what it has read until the program ends. It stores pointers to it as distances,
// which LeakSanitizer cannot follow.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();
const char* __lsan_default_suppressions() { return "leak:libfontconfig.so\n"; }
#endif

namespace ramet::see {

struct Picture::Surface {
  Format format;
  std::string svg;
  cairo_surface_t* surface = nullptr;
  cairo_t* cairo = nullptr;

  ~Surface() {
    cairo_destroy(cairo);
    cairo_surface_destroy(surface);
  }
  void color(Color c) const {
    cairo_set_source_rgba(cairo, c.r / 255.0, c.g / 255.0, c.b / 255.0, c.alpha);
  }
  void font(const Font& f) const {
    cairo_select_font_face(cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           f.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(cairo, f.size);
  }
};

namespace {

void check(cairo_status_t status) {
  RAMET_CHECK(status == CAIRO_STATUS_SUCCESS, "see", "Cairo cannot draw: got \"",
              cairo_status_to_string(status), "\", expected success");
}

cairo_status_t append(void* out, const unsigned char* data, unsigned size) {
  static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(data), size);
  return CAIRO_STATUS_SUCCESS;
}

// How many bytes a character of UTF-8 has that begins at `at`; 0 where none does (RFC 3629).
size_t character(const std::string& s, size_t at) {
  const auto byte = [&](size_t i) { return i < s.size() ? static_cast<uint8_t>(s[i]) : 0u; };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const size_t n = first >= 0xc2 && first < 0xe0   ? 2
                   : first >= 0xe0 && first < 0xf0 ? 3
                   : first >= 0xf0 && first < 0xf5 ? 4
                                                   : 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  const unsigned second = byte(at + 1);
  const bool odd = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                   (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return odd ? 0 : n;
}

// Text that Cairo takes.
std::string clean(const std::string& s) {
  std::string out;
  for (size_t at = 0; at < s.size();) {
    const size_t n = character(s, at);
    const auto first = static_cast<uint8_t>(s[at]);
    if (n == 0) out += "\xef\xbf\xbd";
    else if (n == 1 && (first < 0x20 || first == 0x7f)) out += ' ';
    else out.append(s, at, n);
    at += std::max<size_t>(n, 1);
  }
  return out;
}

// Cairo numbers what it writes by a counter of the whole process. Here the numbers begin anew in
// each picture, so a picture's bytes do not depend on pictures drawn before. Also, blocks of pixels
// get sharp edges however large the picture is shown.
std::string settled(const std::string& svg) {
  const std::string image = "<image";
  std::map<std::string, std::string> names;
  std::string out;
  const auto begins = [&](size_t at, const std::string& part) {
    return svg.compare(at, part.size(), part) == 0;
  };
  for (size_t at = 0; at < svg.size();) {
    bool named = false;
    for (const std::string before : {" id=\"", "href=\"#", "url(#"}) {
      if (!begins(at, before)) continue;
      at += before.size();
      const size_t end = std::min(svg.find_first_of("\")", at), svg.size());
      const auto name =
          names.emplace(svg.substr(at, end - at), "i" + std::to_string(names.size())).first;
      out += before + name->second;
      at = end, named = true;
      break;
    }
    if (named) continue;
    if (begins(at, image)) {
      out += image + " style=\"image-rendering:pixelated\"", at += image.size();
    } else {
      out += svg[at++];
    }
  }
  return out;
}

}  // namespace

Format format_of(const char* op, const std::string& path) {
  const auto ends = [&](const char* ending) { return path.size() > 4 && path.ends_with(ending); };
  RAMET_CHECK(ends(".png") || ends(".svg"), op, "path: got \"", path,
              "\", expected a name that ends in .png or .svg");
  return ends(".png") ? Format::kPng : Format::kSvg;
}

Picture::Picture(int width, int height, Color paper, Format format)
    : surface_(new Surface), width_(width), height_(height) {
  surface_->format = format;
  if (format == Format::kPng) {
    surface_->surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
  } else {
    surface_->surface = cairo_svg_surface_create_for_stream(append, &surface_->svg, width, height);
    cairo_svg_surface_set_document_unit(surface_->surface, CAIRO_SVG_UNIT_PX);
  }
  check(cairo_surface_status(surface_->surface));
  surface_->cairo = cairo_create(surface_->surface);
  check(cairo_status(surface_->cairo));
  // Letters are drawn the same at every position, and with every setting of the desktop.
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_SLIGHT);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  cairo_set_font_options(surface_->cairo, options);
  cairo_font_options_destroy(options);
  cairo_set_line_cap(surface_->cairo, CAIRO_LINE_CAP_ROUND);
  cairo_set_line_join(surface_->cairo, CAIRO_LINE_JOIN_ROUND);
  box(0, 0, width, height, paper);
}

Picture::~Picture() = default;

void Picture::line(const Points& points, double line_width, Color color, double dash) {
  if (points.empty()) return;
  cairo_t* c = surface_->cairo;
  surface_->color(color);
  cairo_set_line_width(c, line_width);
  if (dash > 0) cairo_set_dash(c, &dash, 1, 0);
  cairo_move_to(c, points[0].first, points[0].second);
  for (size_t i = 1; i < points.size(); ++i) cairo_line_to(c, points[i].first, points[i].second);
  cairo_stroke(c);
  cairo_set_dash(c, nullptr, 0, 0);
}

void Picture::rule(double x0, double y0, double x1, double y1, Color color) {
  const double left = std::floor(std::min(x0, x1)), top = std::floor(std::min(y0, y1));
  box(left, top, std::max(1.0, std::floor(std::max(x0, x1)) - left),
      std::max(1.0, std::floor(std::max(y0, y1)) - top), color);
}

void Picture::box(double x, double y, double w, double h, Color color) {
  surface_->color(color);
  cairo_rectangle(surface_->cairo, x, y, w, h);
  cairo_fill(surface_->cairo);
}

void Picture::dot(double x, double y, double radius, Color color) {
  surface_->color(color);
  cairo_new_sub_path(surface_->cairo);
  cairo_arc(surface_->cairo, x, y, radius, 0, 2 * M_PI);
  cairo_fill(surface_->cairo);
}

void Picture::text(double x, double y, const std::string& s, Color color, Font font) {
  cairo_t* c = surface_->cairo;
  const double width = text_width(s, font), shift = font.align == Align::kLeft     ? 0
                                                    : font.align == Align::kCenter ? width / 2
                                                                                   : width;
  surface_->color(color);
  surface_->font(font);
  cairo_save(c);
  cairo_translate(c, x, y);
  if (font.upwards) cairo_rotate(c, -M_PI / 2);
  cairo_move_to(c, -shift, 0);
  cairo_show_text(c, clean(s).c_str());
  cairo_restore(c);
  cairo_new_path(c);
}

double Picture::text_width(const std::string& s, Font font) const {
  surface_->font(font);
  cairo_text_extents_t extents;
  cairo_text_extents(surface_->cairo, clean(s).c_str(), &extents);
  return extents.x_advance;
}

std::string Picture::fitted(const std::string& s, double room, Font font) const {
  if (text_width(s, font) <= room) return s;
  const std::string whole = clean(s);
  // By bisection: a width grows with the text.
  std::vector<size_t> ends = {0};
  while (ends.back() < whole.size()) ends.push_back(ends.back() + character(whole, ends.back()));
  size_t low = 0, high = ends.size() - 1;
  while (low < high) {
    const size_t middle = (low + high + 1) / 2;
    if (text_width(whole.substr(0, ends[middle]) + "…", font) <= room) low = middle;
    else high = middle - 1;
  }
  return low == 0 ? "" : whole.substr(0, ends[low]) + "…";
}

void Picture::pixels(double x, double y, double w, double h, const std::vector<uint8_t>& rgb,
                     int rows, int columns) {
  cairo_surface_t* block = cairo_image_surface_create(CAIRO_FORMAT_RGB24, columns, rows);
  check(cairo_surface_status(block));
  cairo_surface_flush(block);
  unsigned char* to = cairo_image_surface_get_data(block);
  const int stride = cairo_image_surface_get_stride(block);
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < columns; ++i) {
      const uint8_t* from = &rgb[3 * (static_cast<size_t>(r) * static_cast<size_t>(columns) +
                                      static_cast<size_t>(i))];
      const uint32_t pixel =
          static_cast<uint32_t>(from[0]) << 16 | static_cast<uint32_t>(from[1]) << 8 | from[2];
      std::memcpy(to + r * stride + 4 * i, &pixel, 4);
    }
  }
  cairo_surface_mark_dirty(block);
  cairo_t* c = surface_->cairo;
  cairo_save(c);
  cairo_translate(c, x, y);
  cairo_scale(c, w / columns, h / rows);
  cairo_set_source_surface(c, block, 0, 0);
  cairo_pattern_set_filter(cairo_get_source(c), CAIRO_FILTER_NEAREST);
  cairo_rectangle(c, 0, 0, columns, rows);
  cairo_fill(c);
  cairo_restore(c);
  cairo_surface_destroy(block);
}

void Picture::clip(double x, double y, double w, double h) {
  cairo_save(surface_->cairo);
  cairo_rectangle(surface_->cairo, x, y, w, h);
  cairo_clip(surface_->cairo);
}

void Picture::unclip() { cairo_restore(surface_->cairo); }

std::string Picture::bytes() {
  check(cairo_status(surface_->cairo));
  if (surface_->format == Format::kSvg) {
    cairo_surface_finish(surface_->surface);
    check(cairo_surface_status(surface_->surface));
    return settled(surface_->svg);
  }
  cairo_surface_flush(surface_->surface);
  const unsigned char* from = cairo_image_surface_get_data(surface_->surface);
  const int stride = cairo_image_surface_get_stride(surface_->surface);
  std::vector<uint8_t> rgb;
  rgb.reserve(3 * static_cast<size_t>(width_) * static_cast<size_t>(height_));
  for (int y = 0; y < height_; ++y) {
    for (int x = 0; x < width_; ++x) {
      uint32_t pixel;
      std::memcpy(&pixel, from + y * stride + 4 * x, 4);
      rgb.insert(rgb.end(), {static_cast<uint8_t>(pixel >> 16), static_cast<uint8_t>(pixel >> 8),
                             static_cast<uint8_t>(pixel)});
    }
  }
  // The library's own writer: no time of day, no text, no version inside.
  return formats::png(rgb.data(), height_, width_, 3);
}

}  // namespace ramet::see
