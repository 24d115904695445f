#include "core/formats/text/text_comments.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/base/error.h"
#include "core/formats/text/text_cursor.h"
#include "core/sizes/size_expression.h"
#include "core/trace/python_text.h"

namespace retrograd::text {
namespace {

constexpr std::array<ValueKind, 7> valueKinds{ValueKind::input,    ValueKind::parameter,  ValueKind::buffer,
                                              ValueKind::constant, ValueKind::activation, ValueKind::cotangent,
                                              ValueKind::gradient};

template <class Number>
Number number(Cursor& cursor, const std::string& what) {
  const auto value = cursor.expectInteger(what);
  if (value < 0 || value > std::numeric_limits<Number>::max()) cursor.expected(what);
  return static_cast<Number>(value);
}

/// Whether an op's name is here, in quotes: "torch.ops.aten.mm.default".
bool isOpName(std::string_view text) {
  return text.starts_with("\"torch.") || text.starts_with("\"_operator.") || text.starts_with("\"math.");
}

class NoteReader {
 public:
  NoteReader(const Source& source, const Comment& comment)
      : source_(source), cursor_(source, comment.text, comment.place) {}

  std::optional<OpNote> op(const std::vector<std::string_view>& outputs) {
    outputs_ = &outputs;
    note_.place = cursor_.place();
    skipId();
    if (cursor_.atEnd()) return std::nullopt;
    if (!startsValue() && !opPart()) return std::nullopt;
    if (!cursor_.atEnd() && note_.values.empty() && !cursor_.rest().starts_with(", "))
      return std::nullopt;  // a sentence that begins with such words
    while (!cursor_.atEnd()) {
      if (!cursor_.take(", ")) cursor_.expected("',' or the end of the comment");
      const bool known =
          startsValue() || (!note_.values.empty() && valuePart(note_.values.back(), /*isInput=*/false)) || opPart();
      if (!known) cursor_.expected("a type, an origin or another remark on this op");
    }
    return std::move(note_);
  }

  std::optional<ValueNote> input() {
    const auto name = cursor_.plainWord();
    const auto type = cursor_.rest().substr(name.size());
    if (!isPythonName(name) || !type.starts_with(": \"")) return std::nullopt;
    auto value = named();
    while (!cursor_.atEnd()) {
      cursor_.expect(", ");
      if (!valuePart(value, /*isInput=*/true)) cursor_.expected("a kind or another remark on this input");
    }
    return value;
  }

 private:
  /// "#12, " of `trace --numbers`: ids are given when the text is read.
  void skipId() {
    const auto rest = cursor_.rest();
    const auto end = rest.find_first_not_of("0123456789", 1);
    if (!rest.starts_with('#') || end == 1 || rest.size() == 1) return;
    if (end == std::string_view::npos) cursor_.skip(rest.size());
    else if (rest.substr(end).starts_with(", ")) cursor_.skip(end + 2);
  }

  /// `t6: "cpu f32[10, 10]"` of an output; a word and a colon of anything else are another part.
  bool startsValue() {
    const auto name = cursor_.plainWord();
    if (!isPythonName(name)) return false;
    const auto rest = cursor_.rest().substr(name.size());
    const bool isOutput = std::find(outputs_->begin(), outputs_->end(), name) != outputs_->end();
    if (!rest.starts_with(": \"") || isOpName(rest.substr(2))) return false;
    if (!isOutput) cursor_.expected("the type of what this line makes");
    note_.values.push_back(named());
    return true;
  }

  /// "s77*4" of "s77*4=16", "s77 > 5" of "s77 > 5 is True"; empty for a tensor's type.
  static std::string sizeOf(std::string_view text) {
    std::string_view expression;
    for (const std::string_view truth : {" is True", " is False"})
      if (text.ends_with(truth)) expression = text.substr(0, text.size() - truth.size());
    if (const auto equals = text.rfind('='); expression.empty() && equals != std::string_view::npos) {
      const auto hint = text.substr(equals + 1);
      const bool isHint = !hint.empty() && hint.find_first_not_of("-0123456789") == std::string_view::npos;
      if (isHint) expression = text.substr(0, equals);
    }
    return SizeExpression::parse(expression) ? std::string(expression) : std::string();
  }

  ValueNote named() {
    ValueNote value;
    value.place = cursor_.place();
    value.name = cursor_.plainWord();
    cursor_.skip(value.name.size());
    cursor_.expect(": ");
    auto type = cursor_.quoted();
    if (!type) cursor_.expected("a type in quotes");
    const auto is = [&](std::string_view word) { return type->rest() == word; };
    if (is("number") || is("token") || is("object")) {
      value.type = is("number")  ? ValueNote::Type::number
                   : is("token") ? ValueNote::Type::token
                                 : ValueNote::Type::object;
    } else if (auto size = sizeOf(type->rest()); !size.empty()) {
      value.type = ValueNote::Type::number;
      value.size = std::move(size);
    } else if (is("tensor")) {
      value.type = ValueNote::Type::none;
    } else {
      value.meta = readType(source_, *type);
      value.type = ValueNote::Type::tensor;
    }
    return value;
  }

  bool valuePart(ValueNote& value, bool isInput) {
    if (cursor_.take("own storage")) return value.ownStorage = true;
    if (cursor_.take("returned as it is")) return value.returnedAsItIs = true;
    if (cursor_.take("external")) return value.external = true, true;
    if (cursor_.take("internal")) return value.external = false, true;
    if (cursor_.take("requires grad")) return value.requiresGrad = true, true;
    if (cursor_.take("no grad")) return value.requiresGrad = false, true;
    if (cursor_.take("shares "))
      return value.sharesWith = cursor_.expectWord("the value whose storage it shares"), true;
    if (cursor_.take("version "))
      return value.version = number<std::int32_t>(cursor_, "the number of writes before it"), true;
    if (cursor_.take("storage of ")) {
      value.storageBytes = number<std::int64_t>(cursor_, "the bytes of its storage");
      cursor_.expect(" bytes");
      return true;
    }
    return isInput ? inputPart(value) : takeKind(value);
  }

  bool inputPart(ValueNote& value) {
    if (cursor_.take("saved for backward")) return value.saved = true;
    if (cursor_.take("not persistent")) return value.persistent = false, true;
    if (cursor_.take("also ")) return value.aliases.push_back(cursor_.expectWord("another name of it")), true;
    if (cursor_.take("target ")) return value.target = cursor_.expectWord("what it is called in the model"), true;
    if (cursor_.take("value ")) {
      const auto size = cursor_.rest().size();
      value.number = readRemark(source_, cursor_.place(), size);
      cursor_.skip(size);
      return true;
    }
    if (cursor_.take("cotangent")) return value.cotangent = true;
    if (!takeKind(value)) return false;
    if (cursor_.take(" ")) value.target = cursor_.expectWord("what it is called in the model");
    return true;
  }

  bool takeKind(ValueNote& value) {
    for (auto kind : valueKinds) {
      const auto behind = cursor_.rest().substr(std::min(name(kind).size(), cursor_.rest().size()));
      if (behind.starts_with(" of ") || !cursor_.take(name(kind))) continue;
      value.kind = kind;
      return true;
    }
    return false;
  }

  bool opPart() { return reference() || role() || state(); }

  /// `forward: t0: "torch.ops.aten.linear.default"`
  bool reference() {
    for (auto* slot : {&note_.computation, &note_.forward}) {
      const std::string key = slot == &note_.forward ? "forward" : "computation";
      if (!cursor_.rest().starts_with(key + ": ")) continue;
      cursor_.skip(key.size() + 2);
      Reference reference;
      reference.place = cursor_.place();
      if (!isOpName(cursor_.rest())) {
        reference.name = cursor_.expectWord("an op of the computation");
        if (cursor_.atEnd() || cursor_.rest().starts_with(", ")) return *slot = reference, true;
        cursor_.expect(": ");
      }
      if (!cursor_.rest().starts_with('"')) cursor_.expected("the op in quotes");
      reference.op = cursor_.expectWord("the op in quotes");
      *slot = reference;
      return true;
    }
    return false;
  }

  bool role() {
    if (cursor_.take("zeros for an unused output")) return note_.isZeros = true;
    if (cursor_.take("cotangent of an output")) return note_.isCotangent = true;
    if (cursor_.take("accumulation: gradient of ")) {
      note_.isAccumulation = true;
      note_.of = cursor_.expectWord("the value whose gradient is summed");
      for (auto sign = " = "; cursor_.take(sign); sign = " + ") note_.terms.push_back(cursor_.expectWord("a gradient"));
      return true;
    }
    if (cursor_.take("gradient of ")) return note_.of = cursor_.expectWord("the value it is the gradient of"), true;
    if (!cursor_.take("recompute")) return false;
    note_.isRecompute = true;
    if (cursor_.take(" of ")) note_.of = cursor_.expectWord("the value that is recomputed");
    return true;
  }

  bool state() {
    if (cursor_.take("recomputed")) return note_.recomputed = true;
    if (cursor_.take("draws again") || cursor_.take("draws anew")) return note_.drawsAnew = true;
    if (cursor_.take("no_grad")) return note_.gradMode = false, true;
    if (cursor_.take("grad mode")) return note_.gradMode = true, true;
    if (cursor_.take("several outputs")) return note_.output = std::int16_t{-1}, true;
    if (cursor_.take("output ")) return note_.output = number<std::int16_t>(cursor_, "the position of an output"), true;
    if (cursor_.take("operand -1")) return note_.operand = std::int16_t{-1}, true;
    if (cursor_.take("operand "))
      return note_.operand = number<std::int16_t>(cursor_, "the position of an operand"), true;
    if (cursor_.take("replays ")) return note_.replays = cursor_.expectWord("what the original makes"), true;
    if (cursor_.take("node ")) return note_.node = cursor_.expectWord("the node's name"), true;
    if (cursor_.take("effects ")) return effects(), true;
    return false;
  }

  void effects() {
    static constexpr std::array<std::pair<std::string_view, std::uint8_t>, 6> names{
        {{"none", 0},
         {"writes", effect::writes},
         {"random", effect::random},
         {"opaque", effect::opaque},
         {"view", effect::view},
         {"needs_data", effect::needsData}}};
    std::uint8_t bits = 0;
    do {
      const auto* found =
          std::find_if(names.begin(), names.end(), [&](const auto& entry) { return cursor_.take(entry.first); });
      if (found == names.end()) cursor_.expected("writes, random, opaque, view, needs_data or none");
      bits |= found->second;
    } while (cursor_.take("+"));
    note_.effects = bits;
  }

  const Source& source_;
  Cursor cursor_;
  const std::vector<std::string_view>* outputs_ = nullptr;
  OpNote note_;
};

/// "model.py:31: h = f(x)", "/job/model.py:31: h = f(x)": where the first number behind a colon ends the file's name.
/// Nothing where that is not such a text.
std::optional<SourceFrame> readFrame(std::string_view text) {
  for (auto colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':', colon + 1)) {
    const auto rest = text.substr(colon + 1);
    SourceFrame frame;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), frame.line);
    const std::size_t digits = end - rest.data();
    const auto behind = rest.substr(digits);
    const bool asPrinted = error == std::errc() && std::to_string(frame.line) == rest.substr(0, digits);
    if (!asPrinted || (!behind.empty() && (!behind.starts_with(": ") || behind.size() == 2))) continue;
    frame.file = text.substr(0, colon);
    if (!frame.file.starts_with('/') && frame.file.find('/') != std::string::npos)
      continue;  // names are printed; listings of jobs have whole paths
    if (!behind.empty()) frame.code = behind.substr(2);
    return frame;
  }
  return std::nullopt;
}

}  // namespace

std::optional<OpNote> readOpNote(const Source& source, const Comment& comment,
                                 const std::vector<std::string_view>& outputs) {
  return comment.text.empty() ? std::nullopt : NoteReader(source, comment).op(outputs);
}

std::optional<ValueNote> readInputNote(const Source& source, const Comment& comment) {
  return NoteReader(source, comment).input();
}

Heading readHeading(const Source& source, const Comment& comment) {
  Heading heading;
  Cursor cursor(source, comment.text, comment.place);
  const auto text = comment.text;
  if (text == "backward") {
    heading.kind = Heading::Kind::backward;
  } else if (text == "no module") {
    heading.kind = Heading::Kind::module;
  } else if (text == "no source") {
    heading.kind = Heading::Kind::source;
  } else if (cursor.take("module: ")) {
    heading.module = cursor.word();
    if (cursor.atEnd() && !heading.module.empty()) heading.kind = Heading::Kind::module;
  } else if (cursor.take("guard: ")) {
    heading.guard = cursor.rest();
    heading.kind = Heading::Kind::guard;
  } else if (text.find(", symbolic size") != std::string_view::npos) {
    auto& size = heading.size;
    size.name = cursor.plainWord();
    if (!isPythonName(size.name)) cursor.expected("the name of a size");
    cursor.skip(size.name.size());
    cursor.expect(": ");
    size.hint = number<std::int64_t>(cursor, "a size");
    cursor.expect(", symbolic size");
    if (cursor.take(" in [")) {
      size.least = number<std::int64_t>(cursor, "the least size");
      cursor.expect(", ");
      size.greatest = number<std::int64_t>(cursor, "the greatest size");
      cursor.expect("]");
    } else if (cursor.take(", at least ")) {
      size.least = number<std::int64_t>(cursor, "the least size");
    }
    if (!cursor.atEnd()) cursor.expected("the end of the line");
    heading.kind = Heading::Kind::symbolicSize;
  } else if (auto frame = readFrame(text)) {
    heading.frame = std::move(frame);
    heading.kind = Heading::Kind::source;
  }
  return heading;
}

std::optional<PassRecord> readPass(const Comment& comment) {
  constexpr std::string_view opening = "Constructed by ", took = " (took ", closing = " milliseconds)";
  const auto middle = comment.text.rfind(took);
  if (!comment.text.starts_with(opening) || !comment.text.ends_with(closing) || middle == std::string_view::npos ||
      middle < opening.size())
    return std::nullopt;
  const auto begin = middle + took.size(), end = comment.text.size() - closing.size();
  if (begin >= end || end - begin > 12) return std::nullopt;
  std::int64_t milliseconds = 0;
  const auto digits = comment.text.substr(begin, end - begin);
  if (std::from_chars(digits.data(), digits.data() + digits.size(), milliseconds).ptr != digits.data() + digits.size())
    return std::nullopt;
  PassRecord record;
  record.pass = comment.text.substr(opening.size(), middle - opening.size());
  record.seconds = static_cast<double>(milliseconds) / 1e3;
  return record;
}

std::map<std::size_t, ResultNote> readResultNotes(const Source& source, const Comment& comment) {
  static constexpr std::array<std::pair<std::string_view, OutputKind>, 6> meanings{
      {{"loss", OutputKind::loss},
       {"mutation of buffer", OutputKind::bufferMutation},
       {"mutation of input", OutputKind::inputMutation},
       {"mutation of parameter", OutputKind::parameterMutation},
       {"token", OutputKind::token},
       {"gradient of", OutputKind::gradient}}};
  std::map<std::size_t, ResultNote> notes;
  Cursor cursor(source, comment.text, comment.place);
  if (!comment.text.starts_with("output ")) return notes;
  do {
    cursor.expect("output ");
    const auto position = number<std::int32_t>(cursor, "the position of a result");
    cursor.expect(": ");
    const auto* found =
        std::find_if(meanings.begin(), meanings.end(), [&](const auto& entry) { return cursor.take(entry.first); });
    if (found == meanings.end()) cursor.expected("loss, token, mutation of buffer, input or parameter, or gradient of");
    auto& note = notes[position];
    note.kind = found->second;
    if (cursor.take(" ")) note.target = cursor.expectWord("what it is called in the model");
  } while (cursor.take(", "));
  if (!cursor.atEnd()) cursor.expected("',' or the end of the comment");
  return notes;
}

}  // namespace retrograd::text
