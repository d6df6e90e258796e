#include "exec/mpi/rank_record.hpp"

#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace rubato::exec {
namespace {

template <class T>
void put(std::string& out, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get(std::string_view& in) {
    if (in.size() < sizeof(T)) throw std::logic_error("a rank's record is cut off");
    T value;
    std::memcpy(static_cast<void*>(&value), in.data(), sizeof value);
    in.remove_prefix(sizeof value);
    return value;
}

template <class Row>
void put_rows(std::string& out, const std::vector<Row>& rows) {
    put(out, rows.size());
    for (const Row& row : rows) put(out, row);
}

template <class Row>
std::vector<Row> get_rows(std::string_view& in) {
    std::vector<Row> rows;
    for (auto left = get<std::size_t>(in); left > 0; --left) rows.push_back(get<Row>(in));
    return rows;
}

}  // namespace

std::string to_bytes(const RankRecord& record) {
    std::string out;
    for (const auto number :
         {record.messages, record.control_messages, record.bytes, record.bytes_in, record.clock_residual_ns})
        put(out, number);
    put_rows(out, record.gradients);
    put_rows(out, record.workers);
    put_rows(out, record.relays);
    return out;
}

RankRecord record_from_bytes(std::string_view in) {
    RankRecord record;
    for (auto* number :
         {&record.messages, &record.control_messages, &record.bytes, &record.bytes_in, &record.clock_residual_ns})
        *number = get<std::int64_t>(in);
    record.gradients = get_rows<GradientRow>(in);
    record.workers = get_rows<WorkerRow>(in);
    record.relays = get_rows<trace::ServerRow>(in);
    if (!in.empty()) throw std::logic_error("a rank's record has more than it should");
    return record;
}

}  // namespace rubato::exec
