#include <kunci/detail/per_process.hpp>
#include <kunci/detail/process_mark.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>

namespace kunci::detail {
namespace {

/// What `check` says in a forked child. It must not use what other threads may have locked.
template <typename Check>
bool in_a_child(Check check) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(check() ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ProcessMark, knows_its_own_process) {
    const ProcessMark mark;
    EXPECT_TRUE(mark.is_of_this_process());
    EXPECT_TRUE(ProcessMark{}.is_of_this_process());
}

TEST(ProcessMark, is_of_another_process_in_children_and_grandchildren) {
    const ProcessMark mark;
    EXPECT_TRUE(in_a_child([&] {
        const ProcessMark childs;
        return !mark.is_of_this_process() && childs.is_of_this_process() && in_a_child([&] {
            return !mark.is_of_this_process() && !childs.is_of_this_process() &&
                   ProcessMark{}.is_of_this_process();
        });
    }));
    EXPECT_TRUE(mark.is_of_this_process());
}

struct Counted {
    void leave_to_parent() noexcept { ++left; }
    ~Counted() { ++destroyed; }
    static inline int made = 0;
    static inline int destroyed = 0;
    static inline int left = 0;
};

TEST(PerProcess, makes_one_value_here_and_another_in_a_child_which_leaves_the_inherited_one_alone) {
    Counted::made = Counted::destroyed = Counted::left = 0;
    const auto make = [] {
        ++Counted::made;
        return std::make_unique<Counted>();
    };
    {
        PerProcess<Counted> value{make};
        const Counted* here = &value.get();
        EXPECT_EQ(&value.get(), here);
        EXPECT_TRUE(in_a_child([&] {
            const Counted* there = &value.get();
            return there != here && &value.get() == there && Counted::made == 2 && Counted::left == 1 &&
                   Counted::destroyed == 0;
        }));
        EXPECT_EQ(&value.get(), here);
    }
    EXPECT_EQ(Counted::made, 1);
    EXPECT_EQ(Counted::destroyed, 1);
    EXPECT_EQ(Counted::left, 0);
}

TEST(PerProcess, is_not_destroyed_by_a_child_that_never_used_it) {
    Counted::made = Counted::destroyed = Counted::left = 0;
    auto value = std::make_unique<PerProcess<Counted>>([] { return std::make_unique<Counted>(); });
    EXPECT_TRUE(in_a_child([&] {
        value.reset();
        return Counted::destroyed == 0 && Counted::left == 1;
    }));
}

}  // namespace
}  // namespace kunci::detail
