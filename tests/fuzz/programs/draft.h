#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/programs/interpreter.h"
#include "tests/fuzz/programs/oracle.h"
#include "tests/fuzz/programs/program.h"
#include "tests/fuzz/programs/random.h"

namespace retrograd::fuzz {

using Sizes = std::vector<std::int64_t>;

/// Which values fit an argument.
struct Want {
  enum Kinds : unsigned { real = 1, complex = 2, integer = 4, boolean = 8, floating = real | complex, any = 15 };
  unsigned kinds = floating;
  std::int64_t least = 0, most = 9;                   ///< dimensions
  std::function<bool(const at::Tensor&)> where = {};  ///< what more must hold
};

/// A program as it grows. Each call is run as soon as it is added, on real tensors with autograd on, so that shapes,
/// memory and contents are known, and what LibTorch refuses is not added.
class Draft {
 public:
  Draft(std::uint64_t seed, DType main, bool dynamic);

  Random random;
  Program program;
  const DType main;  ///< floating dtype of the inputs
  bool allowNonFinite = false;
  bool inBranch = false;  ///< in a body that keeps shapes and writes nothing

  const at::Tensor& tensor(int id) const { return run_.value(id).toTensor(); }

  /// Adds a call and runs it. False, and nothing added, where LibTorch refuses or what comes out is too large or not
  /// finite.
  bool call(const std::string& op, std::vector<Arg> args);
  /// The same; the first output that is a tensor, -1 where it was refused.
  int make(const std::string& op, std::vector<Arg> args);
  /// The outputs of the last call that was added.
  const std::vector<int>& made() const { return made_; }

  /// A visible value that fits, the later ones rather; -1 where there is none.
  int pick(const Want& want);
  /// Whether it can be written in place: no leaf that has a gradient, no element reached twice.
  bool writable(int id);
  std::vector<int> visible() const { return visible_; }

  /// A new input; -1 where there are enough.
  int input(Input::Kind kind, DType dtype, const Sizes& sizes, bool noGrad = false, bool symbolic = false);
  bool isDynamic() const { return program.size > 0; }
  /// A floating tensor of these sizes: an input, or made of a value. dtype of `like` where that is a value.
  int shaped(const Sizes& sizes, int like = -1);
  /// The same made of a value, by flattening, repeating, narrowing and viewing.
  int resized(int value, const Sizes& sizes);
  /// A value whose elements all lie in a range, by ops where none does: "p" above 0.05, "u" within 0.95, "g"
  /// above 1.05.
  int inRange(char range, const Want& want);
  /// An int64 tensor with elements in [0, below).
  int indices(std::int64_t below, const Sizes& sizes);
  /// A bool tensor that broadcasts with `value`.
  int truths(int value);
  /// A tensor that broadcasts with `value` and has its dtype (unless `anyType`): itself or another.
  int partner(int value, bool sameShape, char range = 'f');

  Sizes sizes(std::int64_t dims);  ///< small ones
  std::int64_t dim(int value) {
    return static_cast<std::int64_t>(
        random.below(static_cast<std::size_t>(std::max<std::int64_t>(tensor(value).dim(), 1))));
  }
  double scalar() { return static_cast<double>(random.between(-20, 20)) / 8.0 + (random.chance(0.5) ? 0 : 0.0625); }
  /// A body with calls of its own; values of the outside are seen through `inputs` alone.
  class Scope {
   public:
    Scope(Draft& draft, const std::vector<c10::IValue>& arguments);
    ~Scope();
    Body body;
    /// Takes the calls made so far into `body`.
    void finish(std::vector<Arg> results);

   private:
    Draft& draft_;
    std::vector<Call> calls_;
    std::vector<int> visible_;
    bool finished_ = false;
  };
  /// Adds a higher-order call whose results are these; its bodies ran already.
  void bindCall(const std::string& op, std::vector<Arg> args, const std::vector<c10::IValue>& results);
  int addBody(Body body) {
    program.bodies.push_back(std::move(body));
    return static_cast<int>(program.bodies.size()) - 1;
  }
  int newValue(c10::IValue content);
  Interpreter& interpreter() { return run_; }

  /// Whether the program wrote to this input.
  bool wasWritten(int input) const;
  /// Whether a dimension is the same at the other size.
  bool isFixed(int id, std::int64_t dim) const {
    return !other_ || other_->value(id).toTensor().size(dim) == tensor(id).size(dim);
  }
  bool isViewed(int id) const;  ///< shares memory with an earlier value
  bool isReadAsOtherNumbers(int id) const;
  /// Whether it fills its memory without holes, at the other size too: eager's as_strided forgets gradients of what its
  /// operand does not hold. Literal offsets and sizes of as_strided have to stay within it there.
  bool isDense(int id) const;
  /// Whether no two of its elements are equal, for all sizes that the program runs with.
  bool isDistinct(int id) const;
  /// Whether the elements of each row of a matrix differ by more than a thousandth of the largest, for all sizes that
  /// the program runs with.
  bool isVaried(int id) const;
  void consumed(int id) { used_.insert(id); }
  bool isUsed(int id) const { return used_.contains(id); }
  std::size_t writesThroughViews = 0, writes = 0;

 private:
  friend class Scope;
  bool fits(const at::Tensor& tensor) const;
  bool fits(const Want& want, const at::Tensor& tensor) const;
  void inTermsOfSize(Call& call) const;

  Interpreter run_;
  std::unique_ptr<Interpreter> other_;  ///< the same at another s0, where there is one
  InputDraw draw_, otherDraw_;
  std::vector<Call>* calls_;
  std::vector<int> visible_, made_;
  std::set<int> used_;
  int depth_ = 0;  ///< of bodies
  std::vector<int>
      unsafeViews_;  ///< share memory behind autograd's back: who writes to it leaves eager's own gradients undefined
  std::vector<std::uint32_t> versions_;  // of inputs as drawn
};

}  // namespace retrograd::fuzz
