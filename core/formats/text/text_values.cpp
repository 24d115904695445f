// Names, and the values they stand for.
#include "core/base/error.h"
#include "core/formats/text/text_reader.h"
#include "core/trace/implied.h"
#include "core/trace/print/printer_comments.h"
#include "core/trace/python_text.h"

namespace retrograd::text {

/// Tables by value have an entry for each.
void TextReader::grow() {
  producers_.resize(document_.valueCount());
  derivedProducers_.resize(document_.valueCount());
}

/// `name`, or where something has it already name_1, name_2, ...
std::string TextReader::freshName(std::string_view name) {
  if (!reserved_) collectNames();
  std::string fresh(name);
  for (int& suffix = suffixes_[fresh]; builder_.find(fresh) != nullptr || reserved_->contains(fresh);)
    fresh = std::string(name) + "_" + std::to_string(++suffix);
  return fresh;
}

/// The value that a line makes. Over the traces of a text a name means one value; a body that uses a name again has its
/// own.
ValueId TextReader::define(std::string_view name, Place place, Scope& scope) {
  if (!isPythonName(name)) fail(source_, place, "expected a name that a value may have, found '" + oneLine(name) + "'");
  const auto [meaning, isNew] = scope.names.insert(name);
  if (!isNew)
    fail(source_, place,
         "expected a new name: '" + std::string(name) + "' is defined in line " + std::to_string(meaning.line));
  const bool isBody = scope.outer != nullptr;
  meaning = {namedAnywhere(isBody ? freshName(name) : std::string(name)), place.line};
  return meaning.value;
}

ValueId TextReader::find(std::string_view name, const Scope& scope) const {
  for (const auto* s = &scope; s; s = s->outer)
    if (const auto* found = s->names.find(name)) return found->value;
  return {};
}

ValueId TextReader::use(std::string_view name, Place place, const Scope& scope) const {
  const auto id = find(name, scope);
  if (!id) fail(source_, place, "expected a value that is defined above, found '" + oneLine(name) + "'");
  return id;
}

/// The value of this name, in whatever trace it is; where it is in none, one that nothing more is known of.
ValueId TextReader::namedAnywhere(std::string_view name) {
  const auto id = builder_.named(name);
  grow();
  return id;
}

void TextReader::setType(ValueId id, const ValueNote& note) {
  if (note.type == ValueNote::Type::none) return;
  const bool isTensor = note.type == ValueNote::Type::tensor;
  const auto& value = document_.value(id);
  if (builder_.isDescribed(id)) {
    const bool wasTensor = builder_.standsForTensor(id);
    if (isTensor != wasTensor || (value.meta && !(document_.meta(value.meta) == note.meta)))
      fail(source_, note.place,
           "expected the type that '" + std::string(note.name) + "' had above, \"" +
               (value.meta ? typeText(document_.meta(value.meta)) : "number") + "\"");
  }
  if (!isTensor) {
    if (!note.size.empty()) document_.setSizeExpression(id, note.size);
    return;
  }
  builder_.setType(id, note.meta);
  for (std::size_t i = 0; i < note.meta.symbols.size(); ++i)
    if (isPythonName(note.meta.symbols[i])) metSizes_.emplace(note.meta.symbols[i], note.meta.sizes[i]);
}

/// What a note says, with the value that it names; that may be one inside a body.
GivenFacts TextReader::factsOf(ValueId id, const ValueNote& note, const Scope& scope) const {
  GivenFacts facts = note;
  if (note.sharesWith.empty() || !document_.isTensor(id)) return facts;
  facts.shares = find(note.sharesWith, scope);
  if (const auto* known = builder_.find(note.sharesWith); !facts.shares && known) facts.shares = *known;
  if (!facts.shares || !document_.value(facts.shares).storage)
    fail(source_, note.place, "expected a tensor above to share storage with, found '" + note.sharesWith + "'");
  return facts;
}

}  // namespace retrograd::text
