#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/model/document_builder.h"
#include "core/formats/text/text_syntax.h"
#include "core/trace/trace.h"

namespace retrograd::text {

/// What a comment says of one value: `w: "cpu f32[16, 8] strides [1, 16]", parameter l1.weight, no grad`.
struct ValueNote : GivenFacts {
  enum class Type : std::uint8_t { none, tensor, number, token, object };

  std::string_view name;  ///< as it is in the text
  Place place;
  Type type = Type::none;
  TensorMeta meta;
  std::string target;                ///< of a parameter, buffer or constant
  std::vector<std::string> aliases;  ///< "also tied.weight"
  bool persistent = true;
  bool saved = false, cotangent = false;
  bool returnedAsItIs = false;
  std::string sharesWith;            ///< a value in the same storage; `shares` is not set
  std::optional<Expression> number;  ///< "value 3"
  std::string
      size;  ///< a number that is an expression over sizes: "s77*4", of "s77*4=16"; "s77 > 5", of "s77 > 5 is True"
};

/// An op of the computation: `t0: "torch.ops.aten.linear.default"`. For what flows in, `op` is its kind: `x: "input"`.
struct Reference {
  std::string name, op;
  Place place;
};

/// What a comment says of an op and its outputs.
struct OpNote {
  std::vector<ValueNote> values;
  std::optional<Reference> computation, forward;
  bool isAccumulation = false, isRecompute = false, isZeros = false, isCotangent = false;
  std::string of;  ///< the value that is recomputed, or whose gradient is summed or led to
  std::vector<std::string> terms;
  std::optional<std::int16_t> operand, output;
  bool recomputed = false, drawsAnew = false;
  std::string replays;
  std::optional<std::uint8_t> effects;
  std::optional<bool> gradMode;
  std::string node;
  Place place;
};

/// "model.py:31: h = f(x)", "module: h.0", "s77: 4, symbolic size", "guard: L['x'].size()[0] != 1", "backward":
/// comments on lines of their own.
struct Heading {
  enum class Kind : std::uint8_t { free, module, source, symbolicSize, guard, backward };
  Kind kind = Kind::free;
  std::string module;                ///< empty: none
  std::optional<SourceFrame> frame;  ///< none: "no source"
  SizeSymbol size;
  std::string guard;
};

/// The comment behind an op that makes `outputs`; nothing for one that a person wrote to persons: it begins with
/// nothing of the above. Throws Error(badInput) where it begins so and goes on otherwise.
std::optional<OpNote> readOpNote(const Source& source, const Comment& comment,
                                 const std::vector<std::string_view>& outputs);

/// The comment in a function's head that says what a parameter or a literal inside a formula is; nothing for other
/// comments.
std::optional<ValueNote> readInputNote(const Source& source, const Comment& comment);

Heading readHeading(const Source& source, const Comment& comment);

/// "Constructed by Split (took 3 milliseconds)".
std::optional<PassRecord> readPass(const Comment& comment);

/// What a computation's results mean besides being the user's: "output 0: mutation of buffer count, output 2: loss", by
/// position.
struct ResultNote {
  OutputKind kind = OutputKind::user;
  std::string target;
};
std::map<std::size_t, ResultNote> readResultNotes(const Source& source, const Comment& comment);

}  // namespace retrograd::text
