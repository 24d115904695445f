#pragma once
#include <string_view>

namespace retrograd {

/// The page of the `explore` format around its data: what comes before the title, between title and data, and after the
/// data. The data is a JavaScript object named `graph`, as explore.cpp writes it; the script draws it as SVG, of which
/// only what is in sight exists. Nothing is loaded from elsewhere.
std::string_view exploreHead();
std::string_view exploreBody();
std::string_view exploreScript();

}  // namespace retrograd
