// A sweep as its file says it, checked.
#pragma once

#include "cli/node.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rubato::cli {

/// One key of the scenario and the value that a layer of the sweep gives it.
struct Assignment {
    std::string key;  ///< dotted
    Where where;
    Node value;
};

struct Variant {
    std::string label;
    std::vector<Assignment> sets;
};

struct Axis {
    std::string key;  ///< dotted
    Where where;
    std::vector<Node> values;
};

/// Axes that advance together: one axis, or a group of `zip`.
struct Dimension {
    std::vector<std::size_t> axes;
    std::size_t size = 0;
};

struct Tuning {
    std::vector<Axis> axes;
    std::string by;  ///< valid_error | valid_loss | train_loss
    Where by_where;
    std::vector<std::int64_t> seeds;
};

struct SweepFile {
    std::string path;
    std::string name;  ///< the file's, without .json
    Node base;         ///< all layers of the base scenario, --set on top; not yet settled or checked
    std::string base_name;
    std::vector<std::int64_t> seeds;
    std::vector<Variant> variants;
    std::vector<Axis> axes;
    std::vector<Dimension> dimensions;
    std::string where;  ///< empty: all points
    Where where_place;
    std::optional<Tuning> tuning;
    std::vector<std::string> swept;  ///< every key that some layer sets, in the order of the file
    Node tree;                       ///< the file itself, for sweep.json
};

/// The JSON Schema of sweep files.
std::string_view sweep_schema_text();

/// Reads and checks the file as such; the points that it describes are not looked at. `sets`: of the base scenario, as
/// on the command line. Throws InputError (file, line, key, what was expected).
SweepFile read_sweep(const std::string& path, const std::vector<std::string>& sets);

}  // namespace rubato::cli
