#include "views/models/line_notes.h"

#include "views/models/format.h"

namespace retrograd::views {

QString oneLine(const std::string& comment) { return toQt(comment).trimmed().replace(QLatin1Char('\n'), QStringLiteral(" \u23ce ")); }

LineText withNotes(LineText line, BoundSymbolId op, const Document& document, const NoteBook& notes) {
  if (notes.notes().empty()) return line;
  LineText noted;
  const auto add = [&](const QString& text, TokenKind kind, ValueId value = {}) {
    noted.tokens.push_back({static_cast<int>(noted.text.size()), static_cast<int>(text.size()), kind, value});
    noted.text += text;
  };
  for (const auto& token : line.tokens) {
    const auto own = token.value ? notes.nameOf(token.value) : QString();
    if (own.isEmpty())
      add(line.text.mid(token.begin, token.length), token.kind, token.value);
    else
      add(own, TokenKind::ownName, token.value);
  }
  QStringList comments;
  if (const auto* note = notes.at(op); note && !note->comment.empty()) comments << oneLine(note->comment);
  for (auto value : document.outputs(op))
    if (const auto* note = notes.at(value); note && !note->comment.empty()) comments << oneLine(note->comment);
  if (!comments.isEmpty()) add(QStringLiteral("  ; ") + comments.join(QStringLiteral("; ")), TokenKind::note);
  return noted;
}

}  // namespace retrograd::views
