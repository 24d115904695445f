#include <fmt/format.h>

#include <memory>
#include <string>

#include "app/cli/command.h"
#include "views/app_window.h"

namespace retrograd::cli {
namespace {

Run setup(CLI::App& app) {
  auto paths = std::make_shared<std::pair<std::string, std::string>>();
  auto dark = std::make_shared<bool>(false);
  app.add_option("file", paths->first, "a .pt2 archive or a .retrograd session")->required();
  app.add_option("picture", paths->second, "PNG file to write")->required();
  app.add_flag("--dark", *dark, "in the dark theme");
  return [paths, dark](const Progress&) {
    if (!renderWindowToPicture(paths->first, paths->second, *dark)) throw Error(ErrorCode::io, "could not draw the window", paths->second);
    fmt::print("{}\n", paths->second);
    return allWell;
  };
}

const Registration registration("picture", "draw the window with a model into a picture; needs no display", setup);

}  // namespace
}  // namespace retrograd::cli
