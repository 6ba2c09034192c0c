# SPDX-License-Identifier: BSD-3-Clause
"""tools/check_runtime_tests.py: each gap between header and tests is found."""

from __future__ import annotations

import pytest

HEADER = """
/* "Errors:" lists the codes. */
typedef enum orError_t {
  orSuccess = 0,
  orErrorInvalidValue = 3, /* a comment */
  orErrorNotPermitted = 7,
  orErrorIllegalAddress = 11,
  orErrorDeviceLost = 12,
  orErrorAssert = 26
} orError_t;

/* Never null. */
OPENREG_EXPORT const char* orGetErrorName(orError_t error) OPENREG_NOEXCEPT;
/* Makes something of an argument (a number). Errors: InvalidValue (also: the
 * process is gone), NotPermitted. */
OPENREG_API orError_t
orMake(int* made, int argument)
    OPENREG_NOEXCEPT;
/* Errors: [device]. */
OPENREG_API orError_t orUse(void) OPENREG_NOEXCEPT;
"""

TABLE = """
  row("orMake", orMake, GIVE(&made, 1), kRejectsNull),
  row<int>("orUse", orUse, GIVE()),
  exempt("orGetErrorName", "cannot fail"),
"""

TESTS = """
TEST(orGetErrorName, IsAName) {
  EXPECT_STREQ(orGetErrorName(orSuccess), "orSuccess");
}

TEST(orMake, Makes) {
  int made = 0;
  ASSERT_OK(orMake(&made, 1'000)); // not the 'end'
}

TEST_F(orMake, InAKernelIsNotPermitted) {
  launch([&] {
    EXPECT_EQ(orMake(&made, f(1, {2, 3})), orErrorNotPermitted) << "text (";
  });
}

TEST(orUse, Works) {
  EXPECT_EQ(orUse(), orSuccess);
}

TEST(EveryFunction, NullPointerIsInvalidValue) {
  if (row.has(kRejectsNull)) {
    EXPECT_EQ(call(), orErrorInvalidValue);
  }
}

TEST(EveryFunction, OnAFailedDevice) {
  EXPECT_EQ(call(), expected(row, orErrorDeviceLost));
  EXPECT_EQ(call(), expected(row, orErrorIllegalAddress));
  EXPECT_EQ(call(), expected(row, orErrorAssert));
}
"""


@pytest.fixture
def checker(load_tool):
    return load_tool("check_runtime_tests")


@pytest.fixture
def find_gaps(checker, tmp_path, capsys):
    """Returns a function that changes the three files and returns the printed lines."""

    def find(*changes: tuple[str, str]) -> list[str]:
        texts = {
            checker.HEADERS / "openreg.h": HEADER,
            checker.TESTS / "table.cpp": TABLE,
            checker.TESTS / "some_test.cpp": TESTS,
        }
        for old, new in changes:
            assert sum(text.count(old) for text in texts.values()) == 1, old
            texts = {path: text.replace(old, new) for path, text in texts.items()}
        for path, text in texts.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        status = checker.main([], tmp_path)
        lines = capsys.readouterr().out.splitlines()
        assert status == (0 if "has a test" in lines[0] else 1)
        return [] if status == 0 else lines

    return find


def test_gaps_of_complete_tests_are_none(find_gaps):
    assert find_gaps() == []


def test_gap_is_a_function_that_never_succeeds(find_gaps):
    assert find_gaps(("EXPECT_EQ(orUse(), orSuccess)", "call()")) == [
        "orUse succeeds in no test of its suite"
    ]
    assert find_gaps(("ASSERT_OK(orMake(", "ASSERT_OK(!orMake(")) == [
        "orMake succeeds in no test of its suite"
    ]
    assert find_gaps(("TEST(orUse, Works)", "TEST(Other, Works)")) == [
        "orUse succeeds in no test of its suite"
    ]


def test_gap_is_a_function_that_is_never_called(find_gaps):
    assert find_gaps(("EXPECT_STREQ(orGetErrorName(", "EXPECT_STREQ((")) == [
        "no test in the suite orGetErrorName calls the function"
    ]


def test_gap_is_a_new_function(find_gaps):
    new = "OPENREG_API orError_t orNew(void); /* Errors: none yet. */\n"
    assert find_gaps(("/* Errors: [device]. */", new + "/* Errors: [device]. */")) == [
        "orNew has no row in the table of EveryFunction",
        "no test in the suite orNew calls the function",
    ]


@pytest.mark.parametrize(
    "change",
    [
        ("orErrorNotPermitted) <<", "orErrorInvalidValue) <<"),
        ("orMake(&made, f(1, {2, 3}))", "orMake(&made, 1) + 1"),
        ("launch([&] {", "/* launch([&] {"),
        ("TEST_F(orMake, InAKernel", "TEST_F(orUse, InAKernel"),
    ],
)
def test_gap_is_a_code_that_no_test_expects(find_gaps, change):
    changes = [change]
    if "/*" in change[1]:
        changes.append(('<< "text (";\n  });', "; }); */"))
    assert find_gaps(*changes) == ["orMake returns orErrorNotPermitted in no test"]


def test_gap_is_a_code_that_the_table_test_lacks(find_gaps):
    assert find_gaps(("row, orErrorDeviceLost)", "row, code)")) == [
        "orUse returns orErrorDeviceLost in no test"
    ]


def test_gap_is_a_row_without_the_trait_that_a_test_asks_for(find_gaps):
    assert find_gaps(("GIVE(&made, 1), kRejectsNull", "GIVE(&made, 1)")) == [
        "orMake returns orErrorInvalidValue in no test"
    ]


def test_gap_is_a_row_that_never_succeeds(find_gaps):
    change = ("orUse, GIVE()),", "orUse, GIVE())\n  .returns(orErrorNotPermitted),")
    assert find_gaps(change) == [
        "orUse returns orErrorAssert in no test",
        "orUse returns orErrorDeviceLost in no test",
        "orUse returns orErrorIllegalAddress in no test",
    ]


def test_gap_is_a_function_without_a_row(find_gaps):
    assert find_gaps(('exempt("orGetErrorName"', 'exempt("orOther"')) == [
        "the table has a row for orOther, which the header does not declare",
        "orGetErrorName has no row in the table of EveryFunction",
    ]
    assert find_gaps(('  exempt("orGetErrorName"', '  // exempt("orGetErrorName"')) == [
        "orGetErrorName has no row in the table of EveryFunction"
    ]


def test_gap_is_an_expected_code_that_is_not_documented(find_gaps):
    assert find_gaps(
        ("Errors: [device].", "Errors: IllegalAddress."),
        (
            "EXPECT_EQ(orUse(), orSuccess);",
            "EXPECT_OK(orUse());\n  ASSERT_EQ(orUse(), orErrorDeviceLost);",
        ),
    ) == [
        "tests/runtime/cpp/some_test.cpp:17: orUse.Works expects orErrorDeviceLost, "
        "which the header does not list"
    ]


def test_gap_is_a_documented_code_that_does_not_exist(find_gaps):
    assert find_gaps(("NotPermitted. */", "NotPermited. */")) == [
        "orMake documents orErrorNotPermited, which is not in orError_t",
        "orMake returns orErrorNotPermited in no test",
        "tests/runtime/cpp/some_test.cpp:11: orMake.InAKernelIsNotPermitted expects "
        "orErrorNotPermitted, which the header does not list",
    ]


def test_gap_is_a_suite_named_after_no_function(find_gaps):
    change = ("TEST(orUse, Works) {", "TEST(orUsed, Works) {}\nTEST(orUse, Works) {")
    assert find_gaps(change) == [
        "tests/runtime/cpp/some_test.cpp:17: no function of the header is called orUsed"
    ]


def test_initialization_needs_no_documentation(find_gaps):
    change = ("EXPECT_EQ(orUse(), orSuccess)", "report(orUse(), orErrorInitialization)")
    assert find_gaps(change) == ["orUse succeeds in no test of its suite"]


def test_written_codes_are_a_table_in_cpp(checker, tmp_path):
    header = tmp_path / checker.HEADERS / "openreg.h"
    header.parent.mkdir(parents=True)
    header.write_text(HEADER)
    file = tmp_path / "codes.inc"
    assert checker.main(["--write-codes", str(file)], tmp_path) == 0
    assert file.read_text().splitlines() == [
        '{"orGetErrorName", {}},',
        '{"orMake", {orErrorInvalidValue, orErrorNotPermitted}},',
        '{"orUse", {orErrorAssert, orErrorDeviceLost, orErrorIllegalAddress}},',
    ]
