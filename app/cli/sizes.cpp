#include "app/cli/sizes.h"

#include "core/base/byte_size.h"
#include "core/base/number_text.h"

namespace retrograd::cli {

CLI::Option* addSize(CLI::App& app, const std::string& names, std::function<void(std::int64_t)> set, const std::string& help) {
  const auto read = [names, set = std::move(set)](const std::string& text) {
    const auto bytes = byteSizeIn(text);
    if (!bytes) throw CLI::ValidationError(names, "'" + text + "' is not a size; expected " + byteSizeForms);
    set(*bytes);
  };
  return app.add_option_function<std::string>(names, read, help)->type_name("SIZE");
}

CLI::Validator isAboveZero() {
  const auto check = [](const std::string& text) {
    const auto number = numberIn<double>(text);
    return number && *number > 0 ? std::string() : "expected a number above 0, not '" + text + "'";
  };
  return CLI::Validator(check, "POSITIVE");
}

CLI::Validator isZeroOrMore() {
  const auto check = [](const std::string& text) {
    const auto number = numberIn<double>(text);
    return number && *number >= 0 ? std::string() : "expected 0 or a number above it, not '" + text + "'";
  };
  return CLI::Validator(check, "NONNEGATIVE");
}

CLI::Validator isSeed() {
  const auto check = [](const std::string& text) -> std::string {
    return numberIn<std::uint64_t>(text) ? std::string() : "'" + text + "' is not a seed; expected a whole number from 0 to 18446744073709551615";
  };
  return CLI::Validator(check, "");
}

}  // namespace retrograd::cli
