#include "views/text/python_colors.h"

#include <QSet>

namespace retrograd::views {
namespace {

const QSet<QString>& keywords() {
  static const QSet<QString> words = [] {
    QSet<QString> all;
    for (const char* word : {"False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
                             "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
                             "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
                             "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"})
      all.insert(QLatin1String(word));
    return all;
  }();
  return words;
}

bool isWordChar(QChar c) { return c.isLetterOrNumber() || c == QLatin1Char('_'); }

/// Colours one line after the other; what is open at the end of a line goes on in the next.
class PythonPainter {
 public:
  std::vector<PythonSpan> line(const QString& text) {
    spans_.clear();
    text_ = text;
    at_ = 0;
    if (!open_.isEmpty()) string(0);
    while (at_ < text_.size()) token();
    return std::move(spans_);
  }

 private:
  void add(qsizetype begin, TokenKind kind) {
    spans_.push_back({static_cast<int>(begin), static_cast<int>(at_ - begin), kind});
  }

  void token() {
    const auto c = text_[at_];
    const auto begin = at_;
    if (c == QLatin1Char('#')) {
      at_ = text_.size();
      add(begin, TokenKind::comment);
    } else if (c == QLatin1Char('"') || c == QLatin1Char('\'')) {
      const QString quote(3, c);
      open_ = QStringView(text_).sliced(at_).startsWith(quote) ? quote : QString(c);
      at_ += open_.size();
      string(begin);
    } else if (isWordChar(c)) {
      word();
    } else {
      ++at_;
    }
  }

  /// From behind the opening quotes to behind the closing ones; those of three go on to the next line.
  void string(qsizetype begin) {
    const bool isLong = open_.size() == 3;
    while (at_ < text_.size() && !QStringView(text_).sliced(at_).startsWith(open_))
      at_ += text_[at_] == QLatin1Char('\\') ? 2 : 1;
    const bool isClosed = at_ < text_.size();
    at_ = isClosed ? at_ + open_.size() : text_.size();
    if (isClosed || !isLong) open_.clear();
    add(begin, TokenKind::literal);
  }

  void word() {
    const auto begin = at_;
    const bool isNumber = text_[at_].isDigit();
    while (at_ < text_.size() && (isWordChar(text_[at_]) || (isNumber && text_[at_] == QLatin1Char('.')))) ++at_;
    const auto name = text_.sliced(begin, at_ - begin);
    const bool isDefined = definesNext_;
    definesNext_ = name == QLatin1String("def") || name == QLatin1String("class");
    if (isNumber) add(begin, TokenKind::literal);
    else if (keywords().contains(name)) add(begin, TokenKind::op);
    else if (isDefined) add(begin, TokenKind::header);
  }

  QString text_, open_;  ///< the quotes of the string that is open
  qsizetype at_ = 0;
  bool definesNext_ = false;
  std::vector<PythonSpan> spans_;
};

}  // namespace

std::vector<std::vector<PythonSpan>> pythonSpans(const QStringList& lines) {
  PythonPainter painter;
  std::vector<std::vector<PythonSpan>> all;
  all.reserve(static_cast<std::size_t>(lines.size()));
  for (const auto& line : lines) all.push_back(painter.line(line));
  return all;
}

}  // namespace retrograd::views
