#include "core/cut/loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/base/error.h"

namespace retrograd {
namespace {

constexpr std::size_t deepest = 64;

Error refused(std::string message) { return Error(ErrorCode::badUse, std::move(message), "loss"); }

/// Python literals, as far as specifications have them.
class SpecParser {
 public:
  explicit SpecParser(const std::string& text) : text_(text) {}

  LossSpec parse() {
    auto spec = value(0);
    skip();
    if (at_ != text_.size()) fail("nothing more");
    return spec;
  }

 private:
  LossSpec value(std::size_t depth) {
    if (depth > deepest) throw refused("the specification is nested too deep");
    skip();
    LossSpec spec;
    if (take("True") || take("False")) {
      spec.flag = text_[at_ - 1] == 'e' && text_[at_ - 2] == 'u';
    } else if (take("None")) {
      spec.kind = LossSpec::Kind::other;
      spec.pythonType = "<class 'NoneType'>";
    } else if (take("(")) {
      sequence(spec, ')', depth);
    } else if (take("[")) {
      sequence(spec, ']', depth);
    } else if (take("{")) {
      dictionary(spec, depth);
    } else if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
      spec.kind = LossSpec::Kind::other;
      spec.pythonType = "<class 'str'>";
      string();
    } else {
      number(spec);
    }
    return spec;
  }

  void sequence(LossSpec& spec, char close, std::size_t depth) {
    spec.kind = LossSpec::Kind::sequence;
    spec.isTuple = close == ')';
    bool comma = false;
    while (!takeClose(close)) {
      spec.items.push_back(value(depth + 1));
      skip();
      comma = take(",");
      if (!comma && at_ < text_.size() && text_[at_] != close) fail("',' or the closing bracket");
    }
    if (spec.isTuple && spec.items.size() == 1 && !comma) {  // Python: (True) is True
      LossSpec inner = std::move(spec.items.front());
      spec = std::move(inner);
    }
  }

  void dictionary(LossSpec& spec, std::size_t depth) {
    spec.kind = LossSpec::Kind::dictionary;
    while (!takeClose('}')) {
      skip();
      spec.keys.push_back(string());
      skip();
      if (!take(":")) fail("':'");
      spec.items.push_back(value(depth + 1));
      skip();
      if (!take(",") && at_ < text_.size() && text_[at_] != '}') fail("',' or '}'");
    }
  }

  std::string string() {
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a quoted key");
    const auto end = text_.find(quote, at_ + 1);
    if (end == std::string::npos) fail("the closing quote");
    auto found = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return found;
  }

  void number(LossSpec& spec) {
    const auto begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' ||
                                  text_[at_] == '-' || text_[at_] == '+'))
      ++at_;
    const auto word = text_.substr(begin, at_ - begin);
    if (word.empty() || !(std::isdigit(static_cast<unsigned char>(word[0])) || word[0] == '-'))
      fail("True, False, or a tuple, list or dictionary of these");
    spec.kind = LossSpec::Kind::other;
    spec.pythonType = word.find_first_of(".eE") == std::string::npos ? "<class 'int'>" : "<class 'float'>";
  }

  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(std::string_view what) {
    if (text_.compare(at_, what.size(), what) != 0) return false;
    at_ += what.size();
    return true;
  }
  bool takeClose(char close) {
    skip();
    if (at_ == text_.size()) fail("the closing bracket");
    return take(std::string_view(&close, 1));
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw refused(fmt::format("in the specification {} at character {}: expected {}", text_, at_ + 1, expected));
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

/// What the model returns: a leaf is one of the computation's outputs.
struct OutputTree {
  std::optional<std::size_t> leaf;
  bool isDictionary = false;
  std::vector<std::string> keys;  // of a sequence: "0", "1", ...
  std::vector<OutputTree> children;

  OutputTree& child(const std::string& key) {
    const auto it = std::find(keys.begin(), keys.end(), key);
    if (it != keys.end()) return children[it - keys.begin()];
    keys.push_back(key);
    isDictionary |= !std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isdigit(c); });
    return children.emplace_back();
  }
};

bool isUser(const OutputSpec& output) { return output.kind == OutputKind::user || output.kind == OutputKind::loss; }

OutputTree treeOf(const Computation& computation) {
  OutputTree tree;
  std::size_t position = 0;
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const auto& output = computation.outputs[i];
    if (!isUser(output)) continue;
    auto path = output.target.empty() ? std::to_string(position) : output.target;
    ++position;
    auto* node = &tree;
    for (;;) {
      const auto dot = path.find('.');
      node = &node->child(path.substr(0, dot));
      if (dot == std::string::npos) break;
      path.erase(0, dot + 1);
    }
    node->leaf = i;
  }
  return tree;
}

/// Finds the first True, depth first in the specification's order.
class LossFinder {
 public:
  LossFinder(const Document& document, const Computation& computation)
      : document_(document), computation_(computation) {}

  std::optional<std::size_t> find(const OutputTree& output, const LossSpec& spec) const {
    switch (spec.kind) {
      case LossSpec::Kind::flag: return spec.flag ? std::optional(dynamic(output)) : std::nullopt;
      case LossSpec::Kind::sequence: return inSequence(output, spec);
      case LossSpec::Kind::dictionary: return inDictionary(output, spec);
      case LossSpec::Kind::other: break;
    }
    throw refused("Unsupported type " + spec.pythonType + " in loss specification");
  }

  std::string text(const OutputTree& output) const {
    if (output.leaf) {
      const auto& leaf = computation_.outputs[*output.leaf];
      if (leaf.value) return document_.displayName(leaf.value);
      return leaf.literal.kind == Argument::Kind::integer ? std::to_string(leaf.literal.integer)
             : leaf.literal.kind == Argument::Kind::real  ? fmt::format("{}", leaf.literal.real)
                                                          : "None";
    }
    std::string inner;
    for (std::size_t i = 0; i < output.children.size(); ++i) {
      inner += i == 0 ? "" : ", ";
      if (output.isDictionary) inner += "'" + output.keys[i] + "': ";
      inner += text(output.children[i]);
    }
    if (output.isDictionary) return "{" + inner + "}";
    return "(" + inner + (output.children.size() == 1 ? ",)" : ")");
  }

 private:
  std::size_t dynamic(const OutputTree& output) const {
    if (!output.leaf || !computation_.outputs[*output.leaf].value ||
        !document_.isTensor(computation_.outputs[*output.leaf].value))
      throw refused("Loss spec must specify a dynamic value but got " + text(output));
    return *output.leaf;
  }

  std::optional<std::size_t> inSequence(const OutputTree& output, const LossSpec& spec) const {
    if (output.leaf || output.isDictionary) throw mismatch(output, "type", spec);
    if (output.children.size() != spec.items.size()) throw mismatch(output, "length", spec);
    for (std::size_t i = 0; i < spec.items.size(); ++i)
      if (const auto found = find(output.children[i], spec.items[i])) return found;
    throw refused("Did not find loss value in specification " + spec.text());
  }

  std::optional<std::size_t> inDictionary(const OutputTree& output, const LossSpec& spec) const {
    if (output.leaf || !output.isDictionary) throw mismatch(output, "type", spec);
    auto wanted = spec.keys, there = output.keys;
    std::sort(wanted.begin(), wanted.end());
    std::sort(there.begin(), there.end());
    if (wanted != there) throw mismatch(output, "keys", spec);
    for (std::size_t i = 0; i < spec.items.size(); ++i) {
      const auto place = std::find(output.keys.begin(), output.keys.end(), spec.keys[i]) - output.keys.begin();
      if (const auto found = find(output.children[place], spec.items[i])) return found;
    }
    throw refused("Did not find loss value in specification " + spec.text());
  }

  Error mismatch(const OutputTree& output, const std::string& what, const LossSpec& spec) const {
    return refused("Output value " + text(output) + " must match " + what + " of loss specification " + spec.text());
  }

  const Document& document_;
  const Computation& computation_;
};

bool looksLikeSpec(const std::string& text) {
  if (text.empty()) return false;
  return text == "True" || text == "False" || text == "None" || text[0] == '(' || text[0] == '[' || text[0] == '{';
}

}  // namespace

std::string LossSpec::text() const {
  if (kind == Kind::flag) return flag ? "True" : "False";
  if (kind == Kind::other) return pythonType;
  std::string inner;
  for (std::size_t i = 0; i < items.size(); ++i)
    inner +=
        (i == 0 ? "" : ", ") + (kind == Kind::dictionary ? "'" + keys[i] + "': " : std::string()) + items[i].text();
  if (kind == Kind::dictionary) return "{" + inner + "}";
  if (!isTuple) return "[" + inner + "]";
  return "(" + inner + (items.size() == 1 ? ",)" : ")");
}

LossSpec parseLossSpec(const std::string& text) { return SpecParser(text).parse(); }

std::optional<std::size_t> findLoss(const Document& document, const Computation& computation, const LossSpec& spec) {
  auto tree = treeOf(computation);
  // A graph returns its one output in a tuple, whatever forward did: both ways of writing it are understood.
  const bool single = tree.children.size() == 1 && !tree.isDictionary && tree.children[0].leaf;
  if (single && spec.kind == LossSpec::Kind::flag) tree = OutputTree(tree.children[0]);
  return LossFinder(document, computation).find(tree, spec);
}

std::size_t lossOutput(const Document& document, const Computation& computation, const std::string& text) {
  if (looksLikeSpec(text)) {
    if (const auto found = findLoss(document, computation, parseLossSpec(text))) return *found;
    throw refused("Did not find any loss value according to output_loss_value_spec=" + text);
  }
  std::string names;
  std::size_t position = 0;
  for (std::size_t i = 0; i < computation.outputs.size(); ++i) {
    const auto& output = computation.outputs[i];
    if (!isUser(output)) continue;
    const auto place = output.target.empty() ? std::to_string(position) : output.target;
    ++position;
    const auto value = output.value ? document.displayName(output.value) : std::string();
    if (text == place || text == value) {
      if (output.value && document.isTensor(output.value)) return i;
      OutputTree leaf;
      leaf.leaf = i;
      throw refused("Loss spec must specify a dynamic value but got " + LossFinder(document, computation).text(leaf));
    }
    if (output.value) names += (names.empty() ? "" : ", ") + place + (place == value ? "" : " (" + value + ")");
  }
  throw refused("the model has no output of the name " + text + "; it returns " + names);
}

void nameOutputs(Computation& computation, const std::vector<std::string>& paths) {
  std::vector<OutputSpec*> users;
  for (auto& output : computation.outputs)
    if (isUser(output)) users.push_back(&output);
  if (users.size() != paths.size()) return;
  for (std::size_t i = 0; i < users.size(); ++i)
    if (!paths[i].empty()) users[i]->target = paths[i];
}

void requireScalarLoss(const Document& document, const Computation& computation, std::size_t output) {
  const auto id = computation.outputs[output].value;
  const auto& meta = document.meta(id);
  if (meta.elements() != 1 || !isDifferentiable(meta.dtype))
    throw refused(fmt::format("grad can be implicitly created only for scalar outputs; {} is {}",
                              document.displayName(id), typeComment(meta)));
}

std::vector<LossChoice> lossChoices(const Document& document, const Computation& computation) {
  std::vector<LossChoice> choices;
  for (const auto& output : computation.outputs) {
    if (!isUser(output)) continue;
    LossChoice choice;
    choice.place = output.target.empty() ? std::to_string(choices.size()) : output.target;
    if (output.value) choice.value = document.displayName(output.value);
    if (output.value && document.isTensor(output.value)) choice.type = typeComment(document.meta(output.value));
    try {
      requireScalarLoss(document, computation, lossOutput(document, computation, choice.place));
    } catch (const Error& error) {
      choice.refusal = error.message();
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

}  // namespace retrograd
