#include "cli/spells.hpp"

#include "cli/complete.hpp"
#include "cli/node_value.hpp"

#include <set>

namespace rubato::cli {

void check_members(const Node& list, const std::string& path, std::int64_t lambda) {
    std::set<std::string> seen;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
        const Node& item = list.items[i];
        const std::string place = path + "[" + std::to_string(i) + "]";
        if (item.is_number() && item.whole() >= lambda)
            refuse(item, place, "there is no such worker: they are 0 to " + std::to_string(lambda - 1));
        const std::string name = item.is_number() ? std::to_string(item.whole()) : item.text;
        if (!seen.insert(name).second) refuse(item, place, "stands there twice");
    }
}

void check_spells(const Node& object, const std::string& path, const char* begin) {
    if (!object.find("every_s") != !object.find("for_s"))
        refuse(object, path, "expected every_s and for_s together: the mean times between spells and of spells");
    const Node* until = object.find("until_s");
    if (until && quantity(*until, Quantity::duration) <= seconds_of(object, begin))
        refuse(*until, path + ".until_s", std::string("expected an end after the begin, ") + begin);
}

double seconds_of(const Node& object, const char* key, double otherwise) {
    const Node* found = object.find(key);
    return found ? quantity(*found, Quantity::duration) : otherwise;
}

}  // namespace rubato::cli
