# SPDX-License-Identifier: BSD-3-Clause
"""The outputs of a run: pages, XML, comparisons, the ranking."""

from __future__ import annotations

import copy
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from openreg_conformance import comparing, expectations, html, junit, ranking, summary
from openreg_conformance.mechanisms import MECHANISMS
from openreg_conformance.texts import explain
from support.programs import ROOT

from .conftest import Command


class Page(HTMLParser):
    """Counts the tags of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: dict[str, int] = {}
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.links += [v or "" for k, v in attrs if k in ("src", "href")]


def many(report: dict[str, Any], count: int) -> dict[str, Any]:
    failed = report["cases"][-1]
    cases = [
        {**failed, "name": f"operators/op{i}/float32/forward", "subject": f"op{i}"}
        for i in range(count)
    ]
    return {**report, "cases": [*report["cases"], *cases]}


def test_page_shows_every_failure_and_needs_no_other_file(
    report: dict[str, Any],
) -> None:
    text = html.page(many(report, 3000))
    page = Page(text)
    assert page.tags["details"] >= 3001
    assert page.links == []
    assert page.tags["script"] == 1, "a case added a script to the page"
    assert page.tags["svg"] > 2
    assert "Acme &amp; &lt;Sons&gt;" in text


def test_junit_has_a_test_for_each_case(report: dict[str, Any]) -> None:
    report["cases"][-1]["message"] += "\x00\x1b"
    root = ElementTree.fromstring(junit.document(report))
    assert {suite.get("name") for suite in root} == {"device", "rng", "operators"}
    (failure,) = root.iter("failure")
    assert "import torch" in (failure.text or "")
    (skipped,) = root.iter("skipped")
    assert skipped.get("message") == "the CPU is not an accelerator"


def test_summary_counts_and_explains(report: dict[str, Any]) -> None:
    text = "\n".join(summary.lines(report))
    assert "skipped 1: the CPU is not an accelerator" in text
    assert "bit-equal to the CPU: 1 of 2" in text
    assert "1. operators: values: add" in text
    assert "docs/operators.md" in text


def test_share_of_less_than_all_is_not_100_percent() -> None:
    assert summary.percent(0.99999) == "99.9%"
    assert summary.percent(1.0) == "100.0%"


def test_comparison_lists_fixed_and_broken_cases(report: dict[str, Any]) -> None:
    after = copy.deepcopy(report)
    after["cases"][-1].update(outcome="passed", message="")
    text, worse = comparing.compare(report, after)
    assert not worse
    assert "fixed: 1" in text
    text, worse = comparing.compare(after, report)
    assert worse
    assert "broken: 1" in text
    assert "operators/add/float32/forward: passed -> failed" in text
    assert "all outcomes are the same" in comparing.compare(report, report)[0]


def test_compare_has_status_1_for_a_regression(
    command: Command, report: dict[str, Any], tmp_path: Path
) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(json.dumps(report))
    report["cases"][0]["outcome"] = "crashed"
    other.write_text(json.dumps(report))
    assert command("compare", one, one).status == 0
    assert command("compare", one, other).status == 1
    other.write_text("[]")
    done = command("compare", one, other)
    assert done.status == 2
    assert "is not the JSON report of a run" in done.errors


def test_reports_are_made_of_the_json_of_a_run(
    command: Command, report: dict[str, Any], tmp_path: Path
) -> None:
    path, page, xml = (tmp_path / each for each in ("run.json", "run.html", "run.xml"))
    path.write_text(json.dumps(report))
    done = command("report", path, "--html", page, "--junit", xml)
    assert done.status == 1
    assert "operators: values: add" in done.output
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert ElementTree.parse(xml).getroot().tag == "testsuites"


def failed(name: str, mechanism: str, subject: str, users: float, **facts: Any) -> Any:
    return {
        "name": name,
        "mechanism": mechanism,
        "subject": subject,
        "users": users,
        "title": "",
        "outcome": "failed",
        "message": "wrong",
        **facts,
    }


def test_what_most_users_need_comes_first() -> None:
    cases = [
        failed("operators/rare/float32/forward", "operators", "rare", 0.01),
        failed("operators/add/float32/forward", "operators", "add", 1.0),
        failed("modules/nn.Linear/float32/train", "modules", "nn.Linear", 1.0),
    ]
    found = ranking.rank({"cases": cases})
    assert [each.subject for each in found] == ["add", "rare", "nn.Linear"]
    assert found[2].doubtful


def test_gradients_come_after_the_operators_that_they_consist_of() -> None:
    cases = [
        failed("operators/mul/float32/backward", "gradients", "mul", 1.0),
        failed("operators/sum/float32/forward", "operators", "sum", 0.8),
    ]
    found = ranking.rank({"cases": cases})
    assert [each.subject for each in found] == ["sum", "mul"]
    (alone,) = ranking.rank({"cases": cases[:1]})
    assert not alone.doubtful


def test_a_missing_kernel_is_one_finding() -> None:
    text = "NotImplementedError: Could not run 'aten::gelu' with arguments from"
    cases = [
        failed("operators/a/float32/forward", "operators", "a", 0.1, message=text),
        failed(
            "modules/nn.GELU/float32/train", "modules", "nn.GELU", 0.5, message=text
        ),
    ]
    (found,) = ranking.rank({"cases": cases})
    assert found.subject == "aten::gelu has no kernel"
    assert found.users == 0.5


def test_many_operators_that_fail_alike_are_one_finding() -> None:
    cases = [
        failed(f"operators/op{i}/float32/version", "versions", f"op{i}", 0.1)
        for i in range(20)
    ]
    (found,) = ranking.rank({"cases": cases})
    assert found.subject == "many operators"


def test_every_mechanism_has_its_page_in_the_guide() -> None:
    for mechanism in MECHANISMS.values():
        assert (ROOT / mechanism.page).is_file(), mechanism.page


@pytest.mark.parametrize(
    ("text", "mechanism"),
    [
        ("ModuleNotFoundError: No module named 'torch.acme'", "device_module"),
        ("Could not run 'aten::foo' with arguments from the 'PrivateUse1'", "fallback"),
        ("Could not run 'aten::relu', 'QuantizedPrivateUse1' backend", "quantized"),
        ("PyTorch is not linked with support for acme devices", None),
    ],
)
def test_texts_of_errors_are_explained(text: str, mechanism: str | None) -> None:
    known = explain(text)
    found = known[0] if known else None
    assert found == (mechanism or found)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[expected]]\ncases = ["x"]\n', "entry 1 has no reason"),
        ('[[expected]]\ncases = []\nreason = "y"\n', r"cases is \[\], not a list"),
        ('[[expected]]\ncases = "x"\nreason = "y"\n', "cases is 'x'"),
        ('[[expected]]\ncases = ["x"]\nreason = "y"\nwhy = 1\n', "has why"),
        ("expectd = 1\n", "unknown key expectd"),
        ("[", "known.toml"),
    ],
)
def test_expectations_that_are_wrong_are_named(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "known.toml"
    path.write_text(text)
    with pytest.raises(expectations.ExpectationError, match=words):
        expectations.read(path)
