// What is in annotations and comments: types of values, and where nodes come from.
#include <algorithm>
#include <utility>

#include "core/base/number_text.h"
#include "core/formats/fx/fx_graph.h"

namespace retrograd::fx {
namespace {

/// The text between an opening bracket and the one that closes it; `text` becomes what follows. nullopt where nothing
/// closes it.
std::optional<std::string_view> bracketed(std::string_view& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[' || text[i] == '(') ++depth;
    if (text[i] == ']' || text[i] == ')') --depth;
    if (depth == 0) {
      const auto inside = text.substr(1, i - 1);
      text.remove_prefix(i + 1);
      return inside;
    }
  }
  return std::nullopt;
}

/// "Sym(8*s13)" and "8*s13" are the same size.
std::string sizeText(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("Sym(") && text.ends_with(")")) text = trimmed(text.substr(4, text.size() - 5));
  return std::string(text);
}

std::vector<std::string> sizeTexts(std::string_view list) {
  std::vector<std::string> sizes;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && (list[i] == '(' || list[i] == '[')) ++depth;
    if (i < list.size() && (list[i] == ')' || list[i] == ']')) --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    if (const auto size = trimmed(list.substr(begin, i - begin)); !size.empty()) sizes.push_back(sizeText(size));
    begin = i + 1;
  }
  return sizes;
}

bool readTensor(std::string_view text, Type& type) {
  const auto bracket = text.find('[');
  if (bracket == std::string_view::npos) return false;
  const auto dtype = dtypeFromShortName(text.substr(0, bracket));
  if (!dtype) return false;
  text.remove_prefix(bracket);
  const auto sizes = bracketed(text);
  if (!sizes) return false;
  std::optional<std::string_view> strides;
  if (text.starts_with("[")) {
    strides = bracketed(text);
    if (!strides) return false;
  }
  if (text.find_first_of("[]() ") != std::string_view::npos) return false;
  type.kind = Type::Kind::tensor;
  type.dtype = *dtype;
  type.sizes = sizeTexts(*sizes);
  type.hasStrides = strides.has_value();
  if (strides) type.strides = sizeTexts(*strides);
  type.device = text;
  return !strides || type.strides.size() == type.sizes.size();
}

}  // namespace

Type readType(std::string_view text) {
  Type type;
  type.text = text;
  type.kind = Type::Kind::other;
  if (text.starts_with("Sym(") && text.ends_with(")")) {
    type.kind = Type::Kind::number;
    type.expression = trimmed(text.substr(4, text.size() - 5));
  } else if (text.starts_with("DTensor(")) {
    type.kind = Type::Kind::dtensor;
  } else if (Type tensor = type; readTensor(text, tensor)) {
    type = std::move(tensor);
  }
  return type;
}

namespace {

/// Takes `word` off the front of `text`, and the spaces behind it.
bool takeWord(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text = trimmed(text.substr(word.size()));
  return true;
}

/// Takes letters, digits and '_'.
std::string_view takeIdentifier(std::string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && (text[end] == '_' || (text[end] >= '0' && text[end] <= '9') ||
                               ((text[end] | 0x20) >= 'a' && (text[end] | 0x20) <= 'z')))
    ++end;
  const auto word = text.substr(0, end);
  text = trimmed(text.substr(end));
  return word;
}

/// "{...}" with its nested braces and strings; empty where nothing closes it.
std::string_view takeBraces(std::string_view& text) {
  int depth = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == '\\') ++i;
      if (c == quote) quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      const auto braces = text.substr(0, i + 1);
      text = trimmed(text.substr(i + 1));
      return braces;
    }
  }
  return {};
}

/// "P:L in F, code: ..."
void readPlace(std::string_view text, Source& source) {
  const auto codeAt = text.find(", code:");
  if (codeAt != std::string_view::npos) source.code = trimmed(text.substr(codeAt + 7));
  const auto place = text.substr(0, codeAt);
  const auto in = place.rfind(" in ");
  if (in != std::string_view::npos) source.function = trimmed(place.substr(in + 4));
  const auto path = place.substr(0, in);
  const auto colon = path.rfind(':');
  const auto line = colon == std::string_view::npos ? std::nullopt : numberIn<int>(path.substr(colon + 1));
  source.file = line ? path.substr(0, colon) : path;
  source.line = std::max(line.value_or(0), 0);
}

void readCheckpoint(std::string_view& text, Source& source) {
  if (takeWord(text, "ac_graph_id:")) {
    const auto id = takeIdentifier(text);
    source.checkpoint = numberIn<std::int64_t>(id);
    if (takeWord(text, "- ")) source.policy = takeIdentifier(text);
  } else if (takeWord(text, "recompute:")) {
    source.policy = takeIdentifier(text);
  }
}

}  // namespace

Source readSource(std::string_view comment) {
  Source source;
  source.text = comment;
  auto text = trimmed(comment);
  // "key: value# File: ..." has further notes in front.
  if (!text.starts_with("Annotation:")) {
    if (const auto hash = text.substr(0, text.find("File: ")).rfind('#'); hash != std::string_view::npos)
      text = trimmed(text.substr(hash + 1));
  }
  if (takeWord(text, "Annotation:")) source.annotation = takeBraces(text);
  readCheckpoint(text, source);
  source.backward = takeWord(text, "Backward of forward node:");
  if (takeWord(text, "File:")) {
    readPlace(text, source);
  } else if (const auto file = text.find(" File: "); file != std::string_view::npos) {
    readPlace(trimmed(text.substr(file + 7)), source);  // something unknown is before it
  }
  return source;
}

}  // namespace retrograd::fx
