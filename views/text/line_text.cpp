#include "views/text/line_text.h"

#include <QObject>
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
        add(source.mid(i, end - i), TokenKind::literal);
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
        add(source.mid(i, end - i), TokenKind::plain);
        i = end;
      }
    }
    return std::move(line_);
  }

  void add(const QString& text, TokenKind kind, ValueId value = {}) {
    line_.tokens.push_back({static_cast<int>(line_.text.size()), static_cast<int>(text.size()), kind, value});
    line_.text += text;
  }

 private:
  static bool exponentSign(const QString& source, int begin, int at) {
    return (source[at] == QLatin1Char('-') || source[at] == QLatin1Char('+')) && source[at - 1] == QLatin1Char('e') &&
           source[begin].isDigit();
  }

  void word(const QString& text, const QString& callName, bool keyword) {
    if (text == callName) return add(shortNames_ ? shortOpName(document_, op_) : text, TokenKind::op);
    if (keyword) return add(text, TokenKind::plain);
    if (const auto value = valueNamed(text)) return add(text, TokenKind::value, value);
    add(text, TokenKind::literal);
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

/// What is said of an op next to its call: `parts` in words, `origin` short.
struct Comment {
  QStringList shapes, parts, origin;
  QString saved;  ///< bytes
  int tensors = 0;
};

Comment commentOf(const Document& document, BoundSymbolId op, const SavedValues* saved) {
  const auto& bound = document.boundSymbol(op);
  Comment comment;
  std::int64_t savedBytes = 0;
  bool isSaved = false;
  for (auto value : document.outputs(op)) {
    if (!value || !document.isTensor(value)) continue;
    const auto& meta = document.meta(document.value(value).meta);
    ++comment.tensors;
    if (comment.shapes.size() < 4) comment.shapes << typeText(meta);
    if (!saved || !saved->contains(value)) continue;
    isSaved = true;
    savedBytes += saved->costOf(value);
  }
  // A view of a parameter, or of memory that counts elsewhere, is saved for nothing.
  if (savedBytes > 0) comment.saved = bytesText(savedBytes);
  if (isSaved) comment.parts << (savedBytes > 0 ? QObject::tr("saved %1").arg(comment.saved) : QObject::tr("saved"));
  if (bound.origin.role != Role::none && bound.origin.op) {
    const auto from = operationName(document, bound.origin.op);
    const auto word = isBackwardRole(bound.origin.role) ? QObject::tr("forward") : QObject::tr("of");
    comment.parts << QStringLiteral("%1: %2").arg(word, from);
    const auto outputs = document.outputs(op);
    const bool isItself = std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) {
      return v && QString::fromStdString(document.displayName(v)) == from;
    });
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

QString shortOpName(const Document& document, BoundSymbolId op) {
  auto name = toQt(document.symbol(document.boundSymbol(op).symbol).name);
  if (name.endsWith(QLatin1String(".default"))) name.chop(8);
  return name;
}

QString operationName(const Document& document, BoundSymbolId op) {
  const auto& bound = document.boundSymbol(op);
  if (bound.name) return toQt(document.text(bound.name));
  const auto outputs = document.outputs(op);
  return outputs.empty() ? shortOpName(document, op) : QString::fromStdString(document.displayName(outputs.front()));
}

QString modulePath(const Document& document, const OutlineHeader& header) {
  const auto parts = toQt(document.text(header.module)).split(QLatin1Char('.'));
  return parts.mid(0, header.moduleParts).join(QLatin1Char('.'));
}

LineText lineOf(const Document& document, BoundSymbolId op, const SavedValues* saved, bool shortNames, bool comments) {
  Lexer lexer(document, op, shortNames);
  auto line = lexer.run(QString::fromStdString(printCall(document, op)));
  if (!comments) return line;
  const auto comment = commentOf(document, op, saved);
  line.codeLength = static_cast<int>(line.text.size());
  line.shape = comment.shapes.join(gap);
  line.shapes = comment.tensors;
  line.origin = comment.origin.join(gap);
  line.saved = comment.saved;
  if (comment.shapes.isEmpty() && comment.parts.isEmpty()) return line;
  const auto text = QStringLiteral("  # ") + (comment.shapes + comment.parts).join(gap);
  line.tokens.push_back({line.codeLength, static_cast<int>(text.size()), TokenKind::comment, {}});
  line.text += text;
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
  shown.shape = line.shape;
  shown.shapes = line.shapes;
  shown.origin = line.origin;
  shown.saved = line.saved;
  const auto add = [&](const Token& token, const QString& text) {
    if (text.isEmpty()) return;
    shown.tokens.push_back(
        {static_cast<int>(shown.text.size()), static_cast<int>(text.size()), token.kind, token.value});
    shown.text += text;
  };
  const auto addPart = [&](const Token& token, qsizetype begin, qsizetype partEnd) {
    begin = std::max<qsizetype>(begin, token.begin);
    partEnd = std::min<qsizetype>(partEnd, token.begin + token.length);
    if (begin < partEnd) add(token, line.text.mid(begin, partEnd - begin));
  };
  for (const auto& token : line.tokens) {
    addPart(token, 0, comma);
    if (token.begin <= comma && comma < token.begin + token.length) add({0, 0, TokenKind::plain, {}}, more);
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
    if (begin >= end) return;
    shown.tokens.push_back({static_cast<int>(shown.text.size()), end - begin, token.kind, token.value});
    shown.text += line.text.mid(begin, end - begin);
  };
  for (const auto& token : line.tokens) add(token, token.begin, std::min(token.begin + token.length, head));
  if (head < tail) {
    shown.tokens.push_back({static_cast<int>(shown.text.size()), 1, TokenKind::comment, {}});
    shown.text += ellipsis;
    for (const auto& token : line.tokens)
      add(token, std::max(token.begin, tail), std::min(token.begin + token.length, length));
  }
  return shown;
}

}  // namespace

LineText codeWithin(const LineText& line, int characters) {
  return cutInTheMiddle(line.code() > characters ? withOneResult(line) : line, characters);
}

namespace {

/// The first shape, with how many more there are: `f32[2, 8] +2`.
QString firstShape(const LineText& line) {
  const auto end = line.shape.indexOf(QStringLiteral("  "));
  return end < 0 ? line.shape : QStringLiteral("%1 +%2").arg(line.shape.left(end)).arg(line.shapes - 1);
}

}  // namespace

QString shapeWithin(const LineText& line, int characters) {
  if (line.shape.size() <= characters) return line.shape;
  const auto first = firstShape(line);
  return first.size() <= characters ? first : first.left(characters - 1) + ellipsis;
}

int leastShape(const LineText& line) { return static_cast<int>(firstShape(line).size()); }

LineText lineOfHeader(const Document& document, const OutlineHeader& header, std::int32_t passing) {
  LineText line;
  const auto add = [&](const QString& text, TokenKind kind) {
    line.tokens.push_back({static_cast<int>(line.text.size()), static_cast<int>(text.size()), kind, {}});
    line.text += text;
  };
  const auto all = opsText(static_cast<std::size_t>(header.ops));
  const auto ops = passing < 0 || passing >= header.ops ? all : QObject::tr("%1 of %2").arg(passing).arg(all);
  if (header.operation) {
    if (header.recompute) add(QObject::tr("recompute of "), TokenKind::comment);
    else if (header.backward) add(QObject::tr("backward of "), TokenKind::comment);
    add(operationName(document, header.operation), TokenKind::header);
    add(QStringLiteral("  ") + shortOpName(document, header.operation), TokenKind::comment);
    const auto module = document.boundSymbol(header.operation).module;
    if (module) add(QStringLiteral("  ") + toQt(document.text(module)), TokenKind::comment);
  } else if (header.section) {
    add(toQt(header.title), TokenKind::header);
  } else if (header.subgraph >= 0) {
    add(toQt(document.subgraph(SubgraphId(header.subgraph)).name), TokenKind::header);
  } else {
    add(modulePath(document, header), TokenKind::header);
  }
  add(QStringLiteral("  ") + ops, TokenKind::comment);
  return line;
}

}  // namespace retrograd::views
