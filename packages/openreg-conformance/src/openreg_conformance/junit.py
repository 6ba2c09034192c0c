# SPDX-License-Identifier: BSD-3-Clause
"""The report of a run as JUnit XML."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from .expectations import is_failure, is_skipped
from .hardware import classification

# Characters that XML 1.0 does not allow.
_CONTROL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def document(report: dict[str, Any]) -> str:
    """Creates the XML: one test suite per suite, and a failed test per surprise."""
    root = ElementTree.Element("testsuites", name=f"conformance of {report['device']}")
    suites: dict[str, list[dict[str, Any]]] = {}
    for case in report["cases"]:
        suites.setdefault(case["name"].partition("/")[0], []).append(case)
    for name, cases in suites.items():
        failed = sum(is_failure(case) for case in cases)
        skipped = sum(is_skipped(case) for case in cases)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=name,
            tests=str(len(cases)),
            failures=str(failed),
            skipped=str(skipped),
            errors="0",
            time=f"{sum(case.get('seconds', 0) for case in cases):.3f}",
        )
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(
            properties,
            "property",
            name="hw_classification",
            value=classification(report["device"]),
        )
        for case in cases:
            suite.append(_element(case))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _element(case: dict[str, Any]) -> ElementTree.Element:
    suite, _, rest = case["name"].partition("/")
    element = ElementTree.Element(
        "testcase", classname=suite, name=rest, time=f"{case.get('seconds', 0):.3f}"
    )
    if is_failure(case):
        message = case.get("message", "")
        if "unexpected_pass" in case:
            message = f"passes, but is expected to fail: {case['unexpected_pass']}"
        child = ElementTree.SubElement(
            element, "failure", type=case["outcome"], message=_clean(message[:500])
        )
        child.text = _clean(f"{message}\n\n{case.get('program', '')}")
    elif is_skipped(case):
        reason = case.get("expected") or case["message"]
        ElementTree.SubElement(element, "skipped", message=_clean(reason))
    return element


def _clean(text: str) -> str:
    return _CONTROL.sub("?", text)
