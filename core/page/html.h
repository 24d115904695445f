#pragma once
#include <string>
#include <string_view>

namespace retrograd {

/// Text for HTML: markup, quotes, control characters and bytes that are not UTF-8 are made harmless, in an attribute as
/// well.
std::string htmlText(std::string_view text);

/// A JSON text that may be inside <script>: ASCII alone, and no "<" that could end it.
std::string scriptText(std::string_view text);

/// The word of a Content-Security-Policy that allows the inline script or style with this content and no other:
/// 'sha256-...'.
std::string allowedContent(std::string_view content);

/// A number for people, four digits: "0.001234", "1.2e+05".
std::string numberText(double number);

/// Style and script of the page, without their tags.
std::string_view pageStyle();
std::string_view pageScript();

}  // namespace retrograd
