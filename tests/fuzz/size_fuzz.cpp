// Expressions over sizes, as a file or its guards may hold them.
#include "core/sizes/size_expression.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto expression = retrograd::SizeExpression::parse(text);
  if (!expression) return 0;
  for (const std::int64_t value :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, std::int64_t{-3}, INT64_MAX, INT64_MIN}) {
    retrograd::SizeBindings bindings;
    for (const auto& name : expression->symbols()) bindings.emplace(name, value);
    static_cast<void>(expression->evaluate(bindings));
    if (!expression->symbols().empty())
      static_cast<void>(expression->solve(expression->symbols().front(), value, bindings));
  }
  return 0;
}
