#pragma once
#include <QString>
#include <QStringList>
#include <vector>

#include "core/base/enum_array.h"
#include "views/text/trace_index.h"

namespace retrograd::views {

/// What a stretch of a line is, which decides its colour.
enum class TokenKind : std::uint8_t {
  plain,
  op,
  value,
  literal,
  comment,
  header,
  ownName,  ///< a value by the name that a person gave it
  note      ///< a person's comment
};

/// A stretch of a line in one colour.
struct Token {
  int begin = 0;
  int length = 0;
  TokenKind kind = TokenKind::plain;
  ValueId value;  ///< of a value's name
};

/// A column of words next to the code of a listing, from left to right.
enum class TextColumn : std::uint8_t {
  shape,  ///< "f32[32, 64]"
  saved,  ///< what the op saves: "8 KiB"
  origin  ///< "← linear"
};
inline constexpr std::size_t textColumnCount = 3;

/// What is said of an op besides its call.
struct OpWords {
  QStringList shapes;  ///< of its results, four at most
  QStringList parts;   ///< in sentences
  QStringList origin;  ///< short
  std::int64_t savedBytes = 0;
  int tensors = 0;  ///< among its results
};

/// All that listings, their titles, menus and settings know of a column: a new one is an entry of listingColumns().
struct ListingColumn {
  TextColumn column;
  const char *id, *title, *tip;  ///< as settings and commands call it; as people read it
  /// Characters. Of a number `most` is the most that a column has for all its lines: a longer one is not said there.
  int least, most;
  bool isNumber;  ///< it is never cut, and has its room before code is in several lines
  QString (*text)(const OpWords& words);
};
const EnumArray<TextColumn, ListingColumn, textColumnCount>& listingColumns();

/// What a listing shows of a line in columns.
struct LineColumns {
  EnumArray<TextColumn, QString, textColumnCount> words;
  int shapes = 0;  ///< tensors among the results, of which the column of shapes names the first four
};

/// A row of a listing; tokens cover the text in order without overlap.
struct LineText : LineColumns {
  QString text;
  std::vector<Token> tokens;
  int codeLength = -1;      ///< characters before the comment, which listings show as columns; -1: all
  std::vector<int> breaks;  ///< where in the text a line begins, after the first

  /// At the end.
  void add(const QString& words, TokenKind kind, ValueId value = {}) {
    tokens.push_back({static_cast<int>(text.size()), static_cast<int>(words.size()), kind, value});
    text += words;
  }

  /// A stretch of the text within one line, and where it is painted, in lines and characters.
  struct Part {
    int line = 0, column = 0, begin = 0, length = 0;
  };
  std::vector<Part> parts(int begin, int length) const;
  /// The place in the text that is painted there; -1: none is.
  int at(int line, int column) const;

  int code() const { return codeLength < 0 ? static_cast<int>(text.size()) : codeLength; }
};

/// The code in lines of at most this many characters. Where one does not fit, several results are first shown as `(t5,
/// +2)`; then operands go on in further lines; a call for which `lines` do not suffice is cut in its middle, where an
/// ellipsis is, so that name, op and last operand stay.
LineText codeWithin(const LineText& line, int characters, int lines = 1);
/// A header in at most this many characters: without the op, whose name says it; then without the number of its ops;
/// then cut in its middle.
LineText headerWithin(const LineText& line, int characters);
/// What a column says of a line in at most this many characters. Of shapes: all of them, else the first and how many
/// more there are (`f32[2, 8] +2`), else `f32[…]`; a number whole or not at all; words as much as fits.
QString wordWithin(const LineText& line, TextColumn column, int characters);
/// The characters in which wordWithin() says what cannot be cut.
int leastWord(const LineText& line, TextColumn column);

/// The line of an op. Short: `t6 = aten.mm(t1, t5)` for `torch.ops.aten.mm.default`; long: as in the printed trace.
/// `comments` appends shape, module and origin.
LineText lineOf(const Document& document, BoundSymbolId op, const SavedValues* saved, bool shortNames,
                bool comments = true);
/// The line of a header row: "linear  aten.linear  lin1  3 ops", or "2 of 3 ops" where fewer pass a filter.
LineText lineOfHeader(const Document& document, const OutlineHeader& header, std::int32_t passing = -1);
/// The name of an op without "torch.ops." and ".default".
QString shortOpName(const Document& document, BoundSymbolId op);
/// The display name of a computation op: its name in the file, else its first output.
QString operationName(const Document& document, BoundSymbolId op);
/// The path a module header represents.
QString modulePath(const Document& document, const OutlineHeader& header);

}  // namespace retrograd::views
