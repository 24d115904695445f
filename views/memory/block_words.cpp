#include "views/memory/block_words.h"

#include "views/text/format.h"

namespace retrograd::views {
namespace {

QString eventText(std::int64_t event, const QString& outside) { return event < 0 ? outside : QString::number(event); }

}  // namespace

BlockWords blockWords(const RecordedMemory& recorded, std::size_t block) {
  const auto& what = recorded.history.allocations[block];
  BlockWords words{.bytes = what.size};
  words.line = toQt(recorded.places->line(what.place));
  words.made = eventText(what.from, tr("before"));
  words.freed = eventText(what.to, tr("never"));
  words.maker = toQt(retrograd::name(what.category));
  if (!recorded.join) return words;
  const auto& each = recorded.join->allocations[block];
  const auto facts = factsOf(*recorded.places, *recorded.join, each);
  words.maker = toQt(facts.maker);
  words.line = toQt(facts.line);
  words.holder = toQt(facts.holder);
  words.level = toQt(retrograd::name(each.level));
  if (each.couldBeFreed >= 0) words.could = tr("%1, after %2").arg(each.couldBeFreed).arg(toQt(facts.lastReader));
  return words;
}

QString BlockWords::sentence() const {
  auto text =
      tr("%1, %2, %3; made %4, freed %5").arg(bytesText(static_cast<std::int64_t>(bytes)), maker, line, made, freed);
  if (!holder.isEmpty()) text += tr("; %1 (%2)").arg(holder, level);
  return text;
}

}  // namespace retrograd::views
