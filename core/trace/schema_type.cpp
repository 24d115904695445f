#include "core/trace/schema_type.h"

#include "core/base/number_text.h"

namespace retrograd {

SchemaType parseSchemaType(std::string_view text) {
  SchemaType type;
  if (text.ends_with('?')) {
    type.optional = true;
    text.remove_suffix(1);
  }
  if (text.ends_with(']')) {
    const auto open = text.rfind('[');
    if (open != std::string_view::npos) {
      type.list = true;
      type.length =
          numberIn<decltype(type.length)>(text.substr(open + 1, text.size() - open - 2)).value_or(type.length);
      text = text.substr(0, open);
      if (text.ends_with('?')) {
        type.optionalElement = true;
        text.remove_suffix(1);
      }
    }
  }
  type.element = text;
  return type;
}

}  // namespace retrograd
