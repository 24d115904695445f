#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/formats/fx/fx_graph.h"

namespace retrograd::fx {

/// The graph with the steps of its loops one behind the other: `higher_order.scan` and `higher_order.map_impl` over
/// tensors whose length `sizeOf` knows. A node of step 2 of "scan" is called "scan_2_mul". A loop of another
/// form, of unknown length or of more than 200,000 ops stays as it is. Values keep their names. Linear in the result.
Graph withUnrolledLoops(const Graph& graph,
                        const std::function<std::optional<std::int64_t>(const std::string&)>& sizeOf);

}  // namespace retrograd::fx
