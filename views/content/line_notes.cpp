#include "views/content/line_notes.h"

#include "views/text/format.h"

namespace retrograd::views {

QString oneLine(const std::string& comment) {
  return toQt(comment).trimmed().replace(QLatin1Char('\n'), QStringLiteral(" \u23ce "));
}

LineText withNotes(LineText line, BoundSymbolId op, const Document& document, const NoteBook& notes) {
  if (notes.notes().empty()) return line;
  LineText noted;
  static_cast<LineColumns&>(noted) = line;
  QStringList comments;
  if (const auto* note = notes.at(op); note && !note->comment.empty()) comments << oneLine(note->comment);
  for (auto value : document.outputs(op))
    if (const auto* note = notes.at(value); note && !note->comment.empty()) comments << oneLine(note->comment);
  const auto addComments = [&] {
    if (!comments.isEmpty())
      noted.add(QStringLiteral("  ; ") + std::exchange(comments, {}).join(QStringLiteral("; ")), TokenKind::note);
  };
  for (const auto& token : line.tokens) {
    // Before what the program has to say: that is longer, and matters less. A header may begin with a comment:
    // "backward of".
    if (token.kind == TokenKind::comment && token.begin > 0) addComments();
    if (token.begin == line.codeLength) noted.codeLength = static_cast<int>(noted.text.size());
    const bool isOperation = token.kind == TokenKind::header && !document.outputs(op).empty();
    const auto value = isOperation ? document.outputs(op).front() : token.value;
    const auto own = value ? notes.nameOf(value) : QString();
    if (own.isEmpty()) noted.add(line.text.mid(token.begin, token.length), token.kind, token.value);
    else noted.add(own, TokenKind::ownName, value);
  }
  addComments();
  if (noted.codeLength < 0 && line.codeLength >= 0) noted.codeLength = static_cast<int>(noted.text.size());
  return noted;
}

}  // namespace retrograd::views
