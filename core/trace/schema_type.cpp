#include "core/trace/schema_type.h"

#include <charconv>

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
      std::from_chars(text.data() + open + 1, text.data() + text.size() - 1, type.length);
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
