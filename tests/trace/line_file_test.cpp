#include "trace/line_file.hpp"

#include "trace/recorder.hpp"
#include "trace/support.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

using namespace rubato::trace;
using namespace rubato::trace_test;

TEST_CASE("lines of every length come out whole and in order") {
    const TemporaryDirectory directory;
    std::string expected = "header\n";
    {
        LineFile file(directory.path("a.csv"), "header");
        for (std::size_t i = 0; i < 3000; ++i) {
            const std::string line(i * 7 % 900, static_cast<char>('a' + i % 26));
            if (i % 2 == 0) {
                file.append(line);
            } else {
                char* end = std::copy(line.begin(), line.end(), file.reserve());
                *end++ = '\n';
                file.commit(end);
            }
            expected += line + "\n";
        }
        const std::string huge(200'000, 'x');
        file.append(huge);
        expected += huge + "\n";
        file.append("last");
        expected += "last\n";
        file.close();
        file.close();
    }
    CHECK(read_file(directory.path("a.csv")) == expected);
}

TEST_CASE("the header is there at once, and the destructor writes what is buffered") {
    const TemporaryDirectory directory;
    {
        LineFile file(directory.path("a.csv"), "header");
        CHECK(read_file(directory.path("a.csv")) == "header\n");
        file.append("row");
        CHECK(read_file(directory.path("a.csv")) == "header\n");
        file.flush();
        CHECK(read_file(directory.path("a.csv")) == "header\nrow\n");
        file.append("another");
    }
    CHECK(read_file(directory.path("a.csv")) == "header\nrow\nanother\n");
}

TEST_CASE("a full disk is one clear line, once") {
    const TemporaryDirectory directory;
    const std::string path = directory.path("gradients.csv");
    std::filesystem::create_symlink("/dev/full", path);
    CHECK_THROWS_WITH_AS(LineFile(path, "header"), ("cannot write " + path + ": No space left on device").c_str(),
                         OutputError);
    LineFile file(path);
    file.append("row");
    CHECK_THROWS_AS(file.flush(), OutputError);
    file.append("row");  // what comes later is dropped, so that the run can still be summed up
    CHECK_NOTHROW(file.close());
}

TEST_CASE("what cannot be created is named with the reason") {
    const TemporaryDirectory directory;
    CHECK_THROWS_WITH_AS(LineFile(directory.path("no/a.csv")),
                         ("cannot write " + directory.path("no/a.csv") + ": No such file or directory").c_str(),
                         OutputError);
    LineFile(directory.path("file")).close();
    CHECK_THROWS_AS(make_directory(directory.path("file")), OutputError);
    CHECK_THROWS_AS(make_directory(directory.path("file/below")), OutputError);
    CHECK_NOTHROW(make_directory(directory.path("a/b/c")));
    CHECK_NOTHROW(make_directory(directory.path("a/b/c/")));
}

TEST_CASE("a directory without permission is one clear line" * doctest::skip(::geteuid() == 0)) {
    const TemporaryDirectory directory;
    std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_read);
    CHECK_THROWS_AS(LineFile(directory.path("a.csv")), OutputError);
    std::filesystem::permissions(directory.path(), std::filesystem::perms::owner_all);
}

TEST_CASE("a text goes into the room that was kept for it, which is never given up on the way") {
    const TemporaryDirectory directory;
    const std::string room = directory.path(".room"), path = directory.path("summary.json");
    const auto file_of = [](const std::string& name) {
        struct stat status {};
        REQUIRE(::stat(name.c_str(), &status) == 0);
        return status;
    };
    hold_room(room);
    const auto held = file_of(room);
    CHECK(held.st_blocks * 512 >= 64 * 1024);
    write_in_room(room, path, "all of it\n");
    CHECK(file_of(path).st_ino == held.st_ino);
    CHECK(file_of(path).st_size == 10);
    CHECK_FALSE(std::filesystem::exists(room));
    // Without any room, as where the disk had none at the start.
    write_in_room(room, path, "other\n");
    CHECK(file_of(path).st_size == 6);
    CHECK_THROWS_AS(write_in_room(directory.path("none/.room"), path, "text"), OutputError);
}

TEST_CASE("writing by rename leaves the whole file and no other") {
    const TemporaryDirectory directory;
    write_file_by_rename(directory.path("summary.json"), "old");
    write_file_by_rename(directory.path("summary.json"), "new");
    CHECK(read_file(directory.path("summary.json")) == "new");
    CHECK_FALSE(exists(directory.path("summary.json.part")));
    std::filesystem::create_symlink("/dev/full", directory.path("other.part"));
    CHECK_THROWS_AS(write_file_by_rename(directory.path("other"), "text"), OutputError);
    CHECK_FALSE(exists(directory.path("other")));
}
