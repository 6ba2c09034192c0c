# SPDX-License-Identifier: BSD-3-Clause
"""tools/release.py: reasons against a tag, and files that reach dist."""

from __future__ import annotations

import subprocess

import pytest

VERSION = "1.2.3"


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Makes a repository that can be released; returns a function that runs git."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")

    def run(*arguments: str) -> None:
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", *names, *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "VERSION").write_text(f"{VERSION}\n")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changes\n\n## {VERSION} (2026-11-27)\n")
    run("init", "--quiet")
    run("add", ".")
    run("commit", "--quiet", "-m", "Add")
    return run


@pytest.fixture
def release(load_tool, git, tmp_path, monkeypatch):
    module = load_tool("release")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def test_clean_commit_with_a_dated_heading_can_be_tagged(release):
    assert release.problems(VERSION) == []


@pytest.mark.parametrize(
    "heading",
    [
        f"## {VERSION} (unreleased)",
        f"## {VERSION}",
        "## 1.2.30 (2026-11-27)",
        "## 1a2.3 (2026-11-27)",
        f"### {VERSION} (2026-11-27)",
    ],
)
def test_heading_without_version_and_date_is_a_problem(release, git, tmp_path, heading):
    (tmp_path / "CHANGELOG.md").write_text(f"# Changes\n\n{heading}\n")
    git("commit", "--quiet", "--all", "-m", "Change")
    assert release.problems(VERSION) == [
        f"CHANGELOG.md has no heading '## {VERSION} (YYYY-MM-DD)'"
    ]


@pytest.mark.parametrize("name", ["VERSION", "new.txt"])
def test_changed_or_new_file_is_a_problem(release, tmp_path, name):
    (tmp_path / name).write_text("changed")
    assert release.problems(VERSION) == ["the working tree has changes"]


def test_existing_tag_is_a_problem(release, git):
    git("tag", "v1.2.4")
    assert release.problems(VERSION) == []
    git("tag", f"v{VERSION}")
    assert release.problems(VERSION) == [f"the tag v{VERSION} exists"]


def test_problems_end_a_release_before_its_builds(
    release, git, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(release, "build", pytest.fail)
    (tmp_path / "new.txt").write_text("")
    git("tag", f"v{VERSION}")
    assert release.main(["python"]) == 1
    assert capsys.readouterr().err == (
        f"cannot tag {VERSION}: the working tree has changes; "
        f"the tag v{VERSION} exists\n"
    )


@pytest.fixture
def built(release, tmp_path, monkeypatch):
    """Replaces the builds and the programs that check them; returns their commands."""
    commands = []
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "a.whl").write_text("")
    monkeypatch.setattr(release, "DIST", tmp_path / "dist")
    monkeypatch.setattr(release, "build", lambda pythons: None)
    monkeypatch.setattr(release.wheels_matrix, "main", lambda pythons: 0)
    monkeypatch.setattr(release, "_run", lambda *words: commands.append(words))
    return commands


def test_dry_run_creates_no_tag_and_names_the_problems(release, built, git, capsys):
    git("tag", f"v{VERSION}")
    assert release.main(["--dry-run", "python"]) == 0
    assert f"the tag v{VERSION} exists" in capsys.readouterr().out
    assert not [words for words in built if words[0] == "git"]


def test_release_checks_the_files_and_then_creates_the_tag(
    release, built, tmp_path, capsys
):
    (tmp_path / ".git" / "info" / "exclude").write_text("dist\n")
    assert release.main(["python"]) == 0
    wheel = tmp_path / "dist" / "a.whl"
    assert [words[-1] for words in built] == [wheel, wheel, f"Release {VERSION}"]
    assert f"git push origin v{VERSION}" in capsys.readouterr().out


def test_wheels_that_fail_prevent_the_tag(release, built, tmp_path, monkeypatch):
    (tmp_path / ".git" / "info" / "exclude").write_text("dist\n")
    monkeypatch.setattr(release.wheels_matrix, "main", lambda pythons: 1)
    assert release.main(["python"]) == 1
    assert not [words for words in built if words[0] == "git"]
