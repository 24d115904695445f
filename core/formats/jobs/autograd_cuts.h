#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::jobs {

/// A node that autograd recorded or not: the graphs do not show.
struct Doubt {
  std::size_t node = 0;
  std::string text;  ///< "sum_1 (/job/train.py:8: s = x.sum())"
};

/// What autograd did with the ops of a forward. A graph of ATen ops does not show it: a region under no_grad leaves no
/// mark, `.data` and detach() look like the detach that autograd itself puts around saved tensors, and a backward that
/// its author wrote is not there at all. Dynamo's graph of the same compile shows it.
struct AutogradCuts {
  std::vector<char> unrecorded;               ///< by node: no gradient flows through it
  std::vector<char> passing;                  ///< by node: a detach of autograd's own, which gradients pass
  std::vector<std::size_t> perhaps;           ///< aliases that gradients pass here and that may have been a detach, and
                                              ///< detaches that cut here and that may be a torch function's own
  std::map<std::size_t, std::size_t> writes;  ///< a node, and the value that it overwrites unseen by autograd: what
                                              ///< reads the node has the gradient history of that value
  std::vector<std::string> ownBackwards;      ///< places of autograd.Functions and hooks: "/job/train.py:12: return g"
  std::vector<std::string> innerBackwards;    ///< those of them that a gradient within the function passes
  std::vector<Doubt> doubts;
  bool differ = false;  ///< the gradients of the ops alone are not those of the program, or may not be

  /// Whether a gradient of the ops alone needs a second look.
  bool matter() const { return differ || !ownBackwards.empty() || !doubts.empty(); }
};

/// Finds what autograd did with the first `forwardNodes` nodes of a joint or forward graph: they are aligned with the
/// ops of Dynamo's graph. `differentiated`: by input of the graph, whether it requires a gradient.
/// Only nodes on the way of a gradient count.
AutogradCuts autogradCuts(const fx::Graph& graph, std::size_t forwardNodes, const std::vector<char>& differentiated,
                          const fx::Graph& dynamo);

/// Makes autograd's own detach an alias, which gradients pass, and one that may be: an alias that was not recorded cuts
/// as well.
void letPass(fx::Graph& graph, const AutogradCuts& cuts);

}  // namespace retrograd::jobs
