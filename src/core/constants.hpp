// Numbers that a scenario hands by name to a policy or a rule of one's own.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace rubato {

/// It notes what is asked for, so that a name that nobody knows is found.
class Constants {
public:
    void set(const std::string& name, double value) { values_[name] = value; }
    /// `otherwise` where the scenario does not give it.
    double number(const std::string& name, double otherwise) const {
        asked_.push_back(name);
        const auto found = values_.find(name);
        return found == values_.end() ? otherwise : found->second;
    }
    /// The same for a whole number of at least `least`; throws std::invalid_argument.
    std::int64_t whole(const std::string& name, std::int64_t otherwise, std::int64_t least = 0) const {
        const double value = number(name, static_cast<double>(otherwise));
        if (value != std::floor(value) || value < static_cast<double>(least) || value > 1e15)
            throw std::invalid_argument(name + ": expected a whole number of at least " + std::to_string(least));
        return static_cast<std::int64_t>(value);
    }
    /// Throws std::invalid_argument for the first that was given and never asked for.
    void require_all_known() const {
        for (const auto& [name, value] : values_) {
            std::string known;
            bool asked = false;
            for (const auto& it : asked_) {
                asked = asked || it == name;
                known += (known.empty() ? "" : ", ") + it;
            }
            if (!asked)
                throw std::invalid_argument("unknown constant \"" + name + "\"; expected " +
                                            (known.empty() ? "none" : "one of " + known));
        }
    }

private:
    std::map<std::string, double> values_;
    mutable std::vector<std::string> asked_;
};

}  // namespace rubato
