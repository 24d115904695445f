#include "views/text/line_text.h"

#include <algorithm>
#include <optional>

#include <QStringList>

#include "core/trace/print/printer.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

bool isNameChar(QChar c) { return c.isLetterOrNumber() || c == QLatin1Char('_') || c == QLatin1Char('.'); }

/// Splits a printed call into tokens. The printed form is ours, so the few rules here are all of its grammar.
class Lexer {
 public:
  Lexer(const Document& document, BoundSymbolId op, bool shortNames)
      : document_(document), op_(op), shortNames_(shortNames) {}

  LineText run(const QString& source) {
    const auto callName = toQt(document_.opName(op_));
    for (int i = 0; i < source.size();) {
      const auto c = source[i];
      if (c == QLatin1Char('\'') || c == QLatin1Char('"')) {
        int end = i + 1;
        while (end < source.size() && source[end] != c) end += source[end] == QLatin1Char('\\') ? 2 : 1;
        end = std::min<int>(end + 1, static_cast<int>(source.size()));
        line_.add(source.mid(i, end - i), TokenKind::literal);
        i = end;
      } else if (isNameChar(c) || (c == QLatin1Char('-') && i + 1 < source.size() && source[i + 1].isDigit())) {
        int end = i + 1;
        while (end < source.size() && (isNameChar(source[end]) || exponentSign(source, i, end))) ++end;
        word(source.mid(i, end - i), callName, end < source.size() && source[end] == QLatin1Char('='));
        i = end;
      } else {
        int end = i + 1;
        while (end < source.size() && !isNameChar(source[end]) && source[end] != QLatin1Char('\'') &&
               source[end] != QLatin1Char('"') && source[end] != QLatin1Char('-'))
          ++end;
        line_.add(source.mid(i, end - i), TokenKind::plain);
        i = end;
      }
    }
    return std::move(line_);
  }

 private:
  static bool exponentSign(const QString& source, int begin, int at) {
    return (source[at] == QLatin1Char('-') || source[at] == QLatin1Char('+')) && source[at - 1] == QLatin1Char('e') &&
           source[begin].isDigit();
  }

  void word(const QString& text, const QString& callName, bool keyword) {
    if (text == callName) return line_.add(shortNames_ ? shortOpName(document_, op_) : text, TokenKind::op);
    if (keyword) return line_.add(text, TokenKind::plain);
    if (const auto value = valueNamed(text)) return line_.add(text, TokenKind::value, value);
    line_.add(text, TokenKind::literal);
  }

  ValueId valueNamed(const QString& text) const {
    const auto name = text.toStdString();
    for (auto value : document_.outputs(op_))
      if (value && document_.displayName(value) == name) return value;
    for (auto value : document_.operands(op_))
      if (value && document_.displayName(value) == name) return value;
    return {};
  }

  const Document& document_;
  BoundSymbolId op_;
  bool shortNames_;
  LineText line_;
};

OpWords wordsOf(const Document& document, BoundSymbolId op, const SavedValues* saved) {
  const auto& bound = document.boundSymbol(op);
  OpWords comment;
  bool isSaved = false;
  for (auto value : document.outputs(op)) {
    if (!value || !document.isTensor(value)) continue;
    const auto& meta = document.meta(value);
    ++comment.tensors;
    if (comment.shapes.size() < 4) comment.shapes << typeText(meta);
    if (!saved || !saved->contains(value)) continue;
    isSaved = true;
    comment.savedBytes += saved->costOf(value);
  }
  // A view of a parameter, or of memory that counts elsewhere, is saved for nothing.
  if (isSaved)
    comment.parts << (comment.savedBytes > 0 ? tr("saved %1").arg(bytesText(comment.savedBytes)) : tr("saved"));
  if (bound.origin.role != Role::none && bound.origin.op) {
    const auto from = operationName(document, bound.origin.op);
    const auto word = isBackwardRole(bound.origin.role) ? tr("forward") : tr("of");
    comment.parts << QStringLiteral("%1: %2").arg(word, from);
    const auto outputs = document.outputs(op);
    const bool isItself =
        std::ranges::any_of(outputs, [&](ValueId v) { return v && toQt(document.displayName(v)) == from; });
    if (!isItself) comment.origin << QStringLiteral("\u2190 %1").arg(from);
  }
  if (bound.origin.role == Role::accumulation || bound.origin.role == Role::zero ||
      bound.origin.role == Role::recompute) {
    comment.parts << toQt(name(bound.origin.role));
    comment.origin << toQt(name(bound.origin.role));
  }
  return comment;
}

constexpr QChar ellipsis(0x2026);
const QString gap = QStringLiteral("  ");  ///< between the parts of a column

}  // namespace

const EnumArray<TextColumn, ListingColumn, textColumnCount>& listingColumns() {
  static const EnumArray<TextColumn, ListingColumn, textColumnCount> all{
      {{TextColumn::shape, "shape", "Shape", "Type and shape of what the op makes", 8, 30, true,
        [](const OpWords& words) { return words.shapes.join(gap); }},
       {TextColumn::saved, "saved", "Saved", "What the op saves for the backward", 5, 12, true,
        [](const OpWords& words) { return words.savedBytes > 0 ? bytesText(words.savedBytes) : QString(); }},
       {TextColumn::origin, "origin", "Comes From", "The operation of the model that the op is of", 8, 18, false,
        [](const OpWords& words) { return words.origin.join(gap); }}}};
  return all;
}

QString shortOpName(const Document& document, BoundSymbolId op) {
  auto name = toQt(document.symbol(op).name);
  if (name.endsWith(QLatin1String(".default"))) name.chop(8);
  return name;
}

QString operationName(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  if (bound.name) return toQt(document.text(bound.name));
  const auto outputs = document.outputs(op);
  return outputs.empty() ? shortOpName(document, op) : toQt(document.displayName(outputs.front()));
}

QString modulePath(const Document& document, const OutlineHeader& header) {
  const auto parts = toQt(document.text(header.module)).split(QLatin1Char('.'));
  return parts.mid(0, header.moduleParts).join(QLatin1Char('.'));
}

LineText lineOf(const Document& document, BoundSymbolId op, const SavedValues* saved, bool shortNames, bool comments) {
  Lexer lexer(document, op, shortNames);
  auto line = lexer.run(toQt(printCall(document, op)));
  if (!comments) return line;
  const auto comment = wordsOf(document, op, saved);
  line.codeLength = static_cast<int>(line.text.size());
  for (const auto& column : listingColumns()) line.words[column.column] = column.text(comment);
  line.shapes = comment.tensors;
  if (comment.shapes.isEmpty() && comment.parts.isEmpty()) return line;
  line.add(QStringLiteral("  # ") + (comment.shapes + comment.parts).join(gap), TokenKind::comment);
  return line;
}

namespace {

/// `(t5, t6, t7) = ...` as `(t5, +2) = ...`: people know a call by its first result.
LineText withOneResult(const LineText& line) {
  const bool several = line.text.startsWith(QLatin1Char('(')) || line.text.startsWith(QLatin1Char('['));
  const auto end = several ? line.text.indexOf(QStringLiteral(" = ")) - 1 : -1;
  const auto comma = line.text.indexOf(QLatin1Char(','));
  if (end < 0 || comma < 0 || comma >= end) return line;
  const auto more = QStringLiteral(", +%1").arg(line.text.left(end).count(QLatin1Char(',')));
  LineText shown;
  static_cast<LineColumns&>(shown) = line;
  const auto addPart = [&](const Token& token, qsizetype begin, qsizetype partEnd) {
    begin = std::max<qsizetype>(begin, token.begin);
    partEnd = std::min<qsizetype>(partEnd, token.begin + token.length);
    if (begin < partEnd) shown.add(line.text.mid(begin, partEnd - begin), token.kind, token.value);
  };
  for (const auto& token : line.tokens) {
    addPart(token, 0, comma);
    if (token.begin <= comma && comma < token.begin + token.length) shown.add(more, TokenKind::plain);
    addPart(token, end, line.text.size());
  }
  if (line.codeLength >= 0) shown.codeLength = line.codeLength - static_cast<int>(line.text.size() - shown.text.size());
  return shown;
}

LineText cutInTheMiddle(const LineText& line, int characters) {
  const int length = line.code();
  const int head = length <= characters ? length : std::max(0, characters - 1) * 2 / 3;
  const int tail = length <= characters ? length : std::max(head, length - std::max(0, characters - 1 - head));
  LineText shown;
  const auto add = [&](const Token& token, int begin, int end) {
    if (begin < end) shown.add(line.text.mid(begin, end - begin), token.kind, token.value);
  };
  for (const auto& token : line.tokens) add(token, token.begin, std::min(token.begin + token.length, head));
  if (head < tail) {
    shown.add(ellipsis, TokenKind::comment);
    for (const auto& token : line.tokens)
      add(token, std::max(token.begin, tail), std::min(token.begin + token.length, length));
  }
  return shown;
}

constexpr int hanging = 4;  ///< characters before each line but the first

/// Where a line of a call may begin: after "=", the bracket that opens its operands, and the comma after each operand;
/// with `inLists`, also after a comma within one.
std::vector<int> openings(const QString& code, bool inLists) {
  std::vector<int> found;
  const auto equals = code.indexOf(QStringLiteral(" = "));
  if (equals >= 0) found.push_back(static_cast<int>(equals) + 3);
  const auto call = code.indexOf(QLatin1Char('('), std::max<qsizetype>(0, equals));
  if (call < 0) return found;
  found.push_back(static_cast<int>(call) + 1);
  int depth = 0;
  QChar quote;
  for (auto i = call; i + 1 < code.size(); ++i) {
    const auto c = code[i];
    if (!quote.isNull()) {
      if (c == QLatin1Char('\\')) ++i;
      else if (c == quote) quote = QChar();
    } else if (c == QLatin1Char('\'') || c == QLatin1Char('"')) {
      quote = c;
    } else if (c == QLatin1Char('(') || c == QLatin1Char('[')) {
      ++depth;
    } else if (c == QLatin1Char(')') || c == QLatin1Char(']')) {
      --depth;
    } else if (c == QLatin1Char(',') && code[i + 1] == QLatin1Char(' ') && (depth == 1 || inLists)) {
      found.push_back(static_cast<int>(i) + 2);
    }
  }
  return found;
}

/// The end of the last part of a name that begins at `begin` and ends within these characters; -1: none does.
int endOfPart(const QString& code, int begin, int characters) {
  static const QString ends = QStringLiteral("._=");
  for (auto i = std::min<qsizetype>(begin + characters, code.size()); i > begin + 1; --i)
    if (ends.contains(code[i - 1])) return static_cast<int>(i);
  return -1;
}

/// Where lines begin so that none has more than these characters: within a name only where nothing else helps.
/// nullopt: that cannot be.
std::optional<std::vector<int>> breaksOf(const QString& code, int characters, bool inLists) {
  std::vector<int> breaks;
  const auto places = openings(code, inLists);
  int begin = 0, room = characters;
  while (code.size() - begin > room) {
    // The space at the end of a line takes none of its room.
    const auto reaches = [&](int at) { return at - begin - (code[at - 1] == QLatin1Char(' ') ? 1 : 0) <= room; };
    const auto next = std::find_if(places.rbegin(), places.rend(), reaches);
    const bool isThere = next != places.rend() && *next > begin;
    if (!isThere && !inLists) return {};
    begin = isThere ? *next : endOfPart(code, begin, room);
    if (begin < 0) return {};
    breaks.push_back(begin);
    room = characters - hanging;
  }
  return breaks;
}

/// A call in several lines, lists and names kept together where that is possible; nullopt: in more than `lines`.
std::optional<LineText> inLines(const LineText& line, int characters, int lines) {
  const auto code = line.text.left(line.code());
  for (const bool inLists : {false, true})
    if (auto breaks = breaksOf(code, characters, inLists); breaks && static_cast<int>(breaks->size()) < lines) {
      auto shown = cutInTheMiddle(line, line.code());
      shown.breaks = std::move(*breaks);
      return shown;
    }
  return {};
}

}  // namespace

std::vector<LineText::Part> LineText::parts(int begin, int length) const {
  std::vector<Part> found;
  const int end = begin + length;
  for (std::size_t line = 0; line <= breaks.size(); ++line) {
    const int from = line == 0 ? 0 : breaks[line - 1];
    const int to = line < breaks.size() ? breaks[line] : static_cast<int>(text.size());
    const int first = std::max(begin, from), last = std::min(end, to);
    if (first < last)
      found.push_back({static_cast<int>(line), first - from + (line > 0 ? hanging : 0), first, last - first});
  }
  return found;
}

int LineText::at(int line, int column) const {
  for (const auto& part : parts(0, static_cast<int>(text.size())))
    if (part.line == line && column >= part.column && column < part.column + part.length)
      return part.begin + column - part.column;
  return -1;
}

LineText codeWithin(const LineText& line, int characters, int lines) {
  if (line.code() <= characters) return cutInTheMiddle(line, characters);
  const auto brief = withOneResult(line);
  if (lines > 1 && brief.code() > characters)
    if (auto shown = inLines(brief, characters, lines)) return std::move(*shown);
  return cutInTheMiddle(brief, characters);
}

LineText headerWithin(const LineText& line, int characters) {
  auto tokens = line.tokens;
  const auto title = std::ranges::find_if(tokens, [](const auto& t) { return t.kind == TokenKind::header; });
  const auto before = title - tokens.begin() + 1;
  LineText shown = line;
  // Behind the title: op, module where it has one, and the number of ops.
  while (shown.text.size() > characters && std::ssize(tokens) > before + 1) {
    const bool isWhole = tokens.size() == line.tokens.size();
    tokens.erase(isWhole ? tokens.begin() + before : tokens.end() - 1);
    shown = {};
    for (const auto& token : tokens) shown.add(line.text.mid(token.begin, token.length), token.kind, token.value);
  }
  return cutInTheMiddle(shown, characters);
}

namespace {

/// The first shape, with how many more there are: `f32[2, 8] +2`.
QString firstShape(const LineText& line) {
  const auto& all = line.words[TextColumn::shape];
  const auto end = all.indexOf(gap);
  return end < 0 ? all : QStringLiteral("%1 +%2").arg(all.left(end)).arg(line.shapes - 1);
}

}  // namespace

QString wordWithin(const LineText& line, TextColumn column, int characters) {
  const auto& all = line.words[column];
  if (all.size() <= characters) return all;
  const auto mark = [characters](const QString& cut) { return cut.size() <= characters ? cut : QString(); };
  if (column == TextColumn::shape) {
    const auto first = firstShape(line);
    return first.size() <= characters
               ? first
               : mark(first.left(first.indexOf(QLatin1Char('[')) + 1) + ellipsis + QLatin1Char(']'));
  }
  return listingColumns()[column].isNumber ? mark(ellipsis) : all.left(characters - 1) + ellipsis;
}

int leastWord(const LineText& line, TextColumn column) {
  return static_cast<int>((column == TextColumn::shape ? firstShape(line) : line.words[column]).size());
}

LineText lineOfHeader(const Document& document, const OutlineHeader& header, std::int32_t passing) {
  LineText line;
  const auto all = opsText(static_cast<std::size_t>(header.ops));
  const auto ops = passing < 0 || passing >= header.ops ? all : tr("%1 of %2").arg(passing).arg(all);
  if (header.operation) {
    if (header.recompute) line.add(tr("recompute of "), TokenKind::comment);
    else if (header.backward) line.add(tr("backward of "), TokenKind::comment);
    line.add(operationName(document, header.operation), TokenKind::header);
    line.add(QStringLiteral("  ") + shortOpName(document, header.operation), TokenKind::comment);
    const auto module = document.boundSymbol(header.operation).module;
    if (module) line.add(QStringLiteral("  ") + toQt(document.text(module)), TokenKind::comment);
  } else if (header.section) {
    line.add(toQt(header.title), TokenKind::header);
  } else if (header.subgraph >= 0) {
    line.add(toQt(document.subgraph(SubgraphId(header.subgraph)).name), TokenKind::header);
  } else {
    line.add(modulePath(document, header), TokenKind::header);
  }
  line.add(QStringLiteral("  ") + ops, TokenKind::comment);
  return line;
}

}  // namespace retrograd::views
