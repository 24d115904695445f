#pragma once
#include <string>
#include <string_view>

namespace retrograd {

/// The page of the `explore` format around its data: what comes before the title, between title and data, and after the
/// data. The data is a JavaScript object named `graph`, as explore.cpp writes it; the script draws it as SVG, of which
/// only what is in sight exists. Nothing is loaded from elsewhere.
std::string_view exploreHead();
std::string_view exploreBody();
std::string_view exploreScript();

/// Text for HTML: markup, quotes, control characters and bytes that are not UTF-8 are made harmless, in an attribute as
/// well.
std::string htmlText(std::string_view text);

/// What is before and after the traces of the HTML export: style for light and dark, no script, nothing loaded from
/// elsewhere.
std::string_view htmlHead();
std::string_view htmlTail();

}  // namespace retrograd
