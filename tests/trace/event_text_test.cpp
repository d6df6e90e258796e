#include "trace/event_text.hpp"

#include "trace/support.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

using namespace rubato;
using namespace rubato::trace;
using rubato::trace_test::Randomizer;

TEST_CASE("an event reads like a sentence") {
    CHECK(to_text(Event(Taken{3, 12})) == "taken id=3 started_ns=12");
    Evaluated evaluated;
    evaluated.id = 1;
    evaluated.metrics.valid_error = 0.1;
    CHECK(to_text(Event(evaluated)) ==
          "evaluated id=1 metrics{valid_loss=- valid_error=0.1 test_loss=- test_error=- gradient_norm=- "
          "suboptimality=-}");
    Delivered delivered;
    delivered.channel = Channel::weights;
    delivered.message = Inquiry{4};
    CHECK(to_text(Event(delivered)) ==
          "delivered from=0 channel=weights message{inquiry have=4} payload{buffer=-1 first=0 count=0} sent_ns=0 "
          "started_ns=0");
    CHECK(to_text(Action(Release{5})) == "release buffer=5");
    CHECK(to_text(Part{2, 0.5, 7, 1}) == "part gradient=2 factor=0.5 read_version=7 pushes=1 worker=-1");
    CHECK(to_text(Action(Keep{7, 5})) == "keep version=7 weights=5");
    CHECK(to_text(Action(Forget{7})) == "forget version=7");
}

TEST_CASE("every event with every message comes back from its text") {
    Randomizer random(1);
    for (int round = 0; round < 400; ++round) {
        for (std::size_t kind = 0; kind < std::variant_size_v<Event>; ++kind) {
            Event event;
            random.choose(event, kind);
            if (auto* delivered = std::get_if<Delivered>(&event))
                random.choose(delivered->message, static_cast<std::size_t>(round) % std::variant_size_v<Message>);
            const std::string text = to_text(event);
            CAPTURE(text);
            CHECK(event_from_text(text) == event);
            CHECK(text.starts_with(event_kind(event)));
        }
    }
}

TEST_CASE("a field with its usual value is left out, wherever it stands") {
    Push push;
    CHECK(to_text(Event(Delivered{1, Channel::gradient, push, {}, 0, 0})).find("count=1") == std::string::npos);
    push.count = 3;
    const std::string text = to_text(Event(Delivered{1, Channel::gradient, push, {}, 0, 0}));
    CHECK(text.find(" loss=0 count=3}") != std::string::npos);
    Proceed proceed;
    proceed.onward = true;
    CHECK(to_text(Event(Delivered{0, Channel::control, proceed, {}, 0, 0})).find(" queued_ns=0 onward=true}") !=
          std::string::npos);
    CHECK_THROWS_AS(event_from_text("stepped id=1 local=2 sum=3 count=1"), std::invalid_argument);
}

TEST_CASE("values that are not finite survive") {
    GradientReady ready;
    ready.loss = -std::numeric_limits<double>::infinity();
    CHECK(std::get<GradientReady>(event_from_text(to_text(Event(ready)))).loss == ready.loss);
    ready.loss = std::numeric_limits<double>::quiet_NaN();
    const double loss = std::get<GradientReady>(event_from_text(to_text(Event(ready)))).loss;
    CHECK(loss != loss);
    ready.loss = -0.0;
    CHECK(std::signbit(std::get<GradientReady>(event_from_text(to_text(Event(ready)))).loss));
}

TEST_CASE("a text that is no event says what was expected") {
    CHECK_THROWS_WITH_AS(event_from_text("tken id=3"), "unknown kind \"tken\"", std::invalid_argument);
    CHECK_THROWS_WITH_AS(event_from_text("taken id=x"), "a whole number expected at \"x\"", std::invalid_argument);
    CHECK_THROWS_WITH_AS(event_from_text("taken id=3"), "\" \" expected at \"\"", std::invalid_argument);
    CHECK_THROWS_AS(event_from_text("taken id=3 started_ns=12 more=1"), std::invalid_argument);
    CHECK_THROWS_AS(event_from_text("taken id=99999999999999999999 started_ns=1"), std::invalid_argument);
    CHECK_THROWS_AS(event_from_text("delivered from=0 channel=mail"), std::invalid_argument);
    CHECK_THROWS_AS(event_from_text(""), std::invalid_argument);
}

TEST_CASE("cutting or garbling a text never crashes the reader") {
    Randomizer random(2);
    for (int round = 0; round < 300; ++round) {
        Event event;
        random.choose(event, static_cast<std::size_t>(round) % std::variant_size_v<Event>);
        std::string text = to_text(event);
        if (round % 2 == 0)
            text.resize(random.bits() % text.size());
        else
            text[random.bits() % text.size()] = static_cast<char>(random.bits());
        try {
            event_from_text(text);
        } catch (const std::invalid_argument&) {
        }
    }
}
