#pragma once
#include <string>
#include <vector>

#include "tests/fuzz/programs/draft.h"

namespace retrograd::fuzz {

/// An op with the way its arguments are drawn.
struct Entry {
  std::string op;
  std::vector<std::string> tokens;                          ///< by argument, see draw()
  bool (*custom)(Draft&, const std::string& op) = nullptr;  ///< instead of `tokens`
  bool keeps = false;   ///< what comes out has shape and dtype of the first operand: fit for branches and loops
  bool writes = false;  ///< in place
  bool view = false;
};

/// All ops that programs are made of.
const std::vector<Entry>& catalogue();

/// Draws arguments and adds the call; ops that prepare operands may come before it. False where it did not come about.
///
/// Tokens. First tensor: f floating or complex, r real, p positive, u within 0.95, o in (0, 1), e at most 6, g above 1,
/// c complex, i integer, b bool, a any, n integer or bool; behind it the least dimensions ("r2") or exactly so many
/// ("r=2"). "w" before it: written in place. Other tensors: "~f" broadcasts with the first, "=f" has its shape, "~n" of
/// its integer type, "~?" a number or a tensor, "m" a mask. D a dimension, D? or none, L some dimensions, K True or
/// False, S a number, P a positive one, I0..9 an integer up to that, N None, T, F, _ left out, $s a string, #1 or #0.5
/// a number, #[1,2] integers, dt the main dtype.
bool draw(Draft& draft, const Entry& entry);

class Catalogue {
 public:
  struct Flags {
    bool keeps = false, inPlace = false, view = false;
  };
  /// `names` separated by blanks, each with its overload; "aten." is understood.
  void add(const std::string& names, const std::string& tokens, Flags flags);
  void add(const std::string& names, const std::string& tokens) { add(names, tokens, Flags()); }
  void add(const std::string& names, bool (*custom)(Draft&, const std::string&), Flags flags);
  void add(const std::string& names, bool (*custom)(Draft&, const std::string&)) { add(names, custom, Flags()); }
  std::vector<Entry> entries;
};

void addElementwise(Catalogue& catalogue);
void addReductions(Catalogue& catalogue);
void addViews(Catalogue& catalogue);
void addIndexing(Catalogue& catalogue);
void addMatrices(Catalogue& catalogue);
void addNetworks(Catalogue& catalogue);
void addRandom(Catalogue& catalogue);
void addWrites(Catalogue& catalogue);

}  // namespace retrograd::fuzz
