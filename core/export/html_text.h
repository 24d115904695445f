#pragma once
#include <string>
#include <string_view>

namespace retrograd {

/// Text for HTML: markup, quotes, control characters and bytes that are not UTF-8 are made harmless, in an attribute as
/// well.
std::string htmlText(std::string_view text);

/// What is before and after the traces of the HTML export: style for light and dark, no script, nothing loaded from
/// elsewhere.
std::string_view htmlHead();
std::string_view htmlTail();

}  // namespace retrograd
