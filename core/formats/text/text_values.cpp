// Names, and the values they stand for.
#include "core/base/error.h"
#include "core/formats/text/text_reader.h"
#include "core/trace/implied.h"
#include "core/trace/print/printer_comments.h"
#include "core/trace/python_text.h"

namespace retrograd::text {

ValueId TextReader::newValue(std::string_view name) {
  Value value;
  value.name = document_.intern(name);
  const auto id = document_.addValue(value);
  described_.push_back(0);
  tensors_.push_back(0);
  producers_.push_back({});
  derivedProducers_.push_back({});
  values_.insert(document_.text(value.name), id);
  return id;
}

/// `name`, or where something has it already name_1, name_2, ...
std::string TextReader::freshName(std::string_view name) {
  if (!reserved_) collectNames();
  std::string fresh(name);
  for (int& suffix = suffixes_[fresh]; values_.contains(fresh) || reserved_->contains(fresh);)
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
  meaning = {isBody ? newValue(freshName(name)) : namedAnywhere(name), place.line};
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
  const auto* known = values_.find(name);
  return known ? *known : newValue(name);
}

bool TextReader::isDescribed(ValueId id) const { return described_[id] != 0; }

bool TextReader::standsForTensor(ValueId id) const { return document_.isTensor(id) || tensors_[id] != 0; }

void TextReader::setType(ValueId id, const ValueNote& note) {
  if (note.type == ValueNote::Type::none) return;
  const bool isTensor = note.type == ValueNote::Type::tensor;
  auto& value = document_.value(id);
  if (isDescribed(id)) {
    const bool wasTensor = standsForTensor(id);
    if (isTensor != wasTensor || (value.meta && !(document_.meta(value.meta) == note.meta)))
      fail(source_, note.place,
           "expected the type that '" + std::string(note.name) + "' had above, \"" +
               (value.meta ? typeText(document_.meta(value.meta)) : "number") + "\"");
  }
  if (!isTensor) {
    if (!note.size.empty()) document_.setSizeExpression(id, note.size);
    return;
  }
  value.meta = document_.internMeta(note.meta);
  tensors_[id] = 1;
  for (std::size_t i = 0; i < note.meta.symbols.size(); ++i)
    if (isPythonName(note.meta.symbols[i])) metSizes_.emplace(note.meta.symbols[i], note.meta.sizes[i]);
}

/// Where a value lies: as the note says, else in `base`'s storage, else in its own. What a later trace says of a value
/// that is known joins the storages of both.
void TextReader::setStorage(ValueId id, const ValueNote* note, ValueId base, const Scope& scope) {
  auto& value = document_.value(id);
  if (!value.meta) return;
  auto with = note && note->ownStorage ? ValueId() : base;
  if (note && !note->shares.empty()) {
    with = find(note->shares, scope);  // or a value inside a body
    if (const auto* known = values_.find(note->shares); !with && known) with = *known;
    if (!with || !document_.value(with).storage)
      fail(source_, note->place, "expected a tensor above to share storage with, found '" + note->shares + "'");
  }
  const auto shared = with ? document_.value(with).storage : StorageId();
  if (value.storage) {
    if (shared && shared != value.storage) joinStorages(shared, value.storage);
    return;
  }
  if (shared) {
    value.storage = shared;
  } else {
    const auto bytes = note && note->storageBytes ? *note->storageBytes : document_.meta(value.meta).storageBytes();
    const bool external = note && note->external ? *note->external : implied::external(value.kind);
    value.storage = document_.addStorage(bytes, id, external);
    members_.resize(document_.storageCount());
  }
  members_[value.storage].push_back(id);
}

void TextReader::joinStorages(StorageId from, StorageId to) {
  auto& moved = members_[from];
  auto& all = members_[to];
  for (auto id : moved) document_.value(id).storage = to;
  all.insert(all.end(), moved.begin(), moved.end());
  moved.clear();
}

}  // namespace retrograd::text
