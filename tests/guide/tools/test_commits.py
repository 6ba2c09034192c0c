# SPDX-License-Identifier: BSD-3-Clause
"""tools/commits.py: commit messages that break a rule are named."""

from __future__ import annotations

import subprocess

import pytest

from support.programs import ROOT

GOOD = "Add a queue\n\nWithout it a full stream blocks its caller.\n"


@pytest.fixture
def tool(load_tool):
    return load_tool("commits")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Makes an empty repository; returns a function that runs git in it."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    monkeypatch.chdir(tmp_path)

    def git(*arguments: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        command = ["git", *names, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    git("commit", "--quiet", "--allow-empty", "-m", "x" * 200)
    return git


def commit(git, message):
    git("commit", "--quiet", "--allow-empty", "--cleanup=verbatim", "-m", message)


@pytest.mark.parametrize(
    "message",
    [
        GOOD,
        "x" * 72 + "\n\n" + "y" * 100,
        "Merge branch 'a'",
        'Revert "Add a queue"',
        "fixup! Add a queue",
    ],
)
def test_message_within_the_rules_passes(tool, message):
    assert list(tool.check(message)) == []


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("", "the subject is missing"),
        (f"{'x' * 73}\n\nWhy.", "the subject has 73 columns; at most 72 are allowed"),
        ("Add a queue\nWhy.", "the line after the subject is not blank"),
        ("Add a queue", "the body is missing: write the reason for the change"),
        (
            "Add a queue\n\nSigned-off-by: a <a@example.org>",
            "the body is missing: write the reason for the change",
        ),
        (
            f"Add a queue\n\nWhy.\n{'y' * 101}",
            "line 4 has 101 columns; at most 100 are allowed",
        ),
    ],
)
def test_message_that_breaks_a_rule_is_named(tool, message, problem):
    assert list(tool.check(message)) == [problem]


def test_only_commits_after_the_base_are_checked(tool, repository, tmp_path, capsys):
    base = repository("rev-parse", "HEAD")
    assert tool.main([base], tmp_path) == 0
    commit(repository, GOOD)
    assert tool.main([base], tmp_path) == 0
    assert capsys.readouterr().out == ""
    commit(repository, "Add a queue")
    commit(repository, f"{'z' * 80}\n\nWhy.")
    assert tool.main([base], tmp_path) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert f"{'z' * 72}: the subject has 80 columns" in first
    assert "Add a queue: the body is missing" in second
    assert first.startswith(repository("rev-parse", "--short", "HEAD"))


def test_merge_commit_needs_no_body(tool, repository, tmp_path, capsys):
    base = repository("rev-parse", "HEAD")
    repository("checkout", "--quiet", "-b", "side")
    commit(repository, GOOD)
    repository("checkout", "--quiet", "main")
    repository("merge", "--quiet", "--no-ff", "side", "-m", "Join the side branch")
    assert tool.main([base], tmp_path) == 0
    repository("commit", "--quiet", "--amend", "-m", "z" * 80)
    assert tool.main([base], tmp_path) == 1
    assert "the subject has 80 columns" in capsys.readouterr().out


def test_range_begins_at_the_branch_of_origin(tool, repository, tmp_path, capsys):
    commit(repository, "Add a queue")
    assert tool.main([], tmp_path) == 0
    assert "there is no branch of origin" in capsys.readouterr().out
    repository("update-ref", "refs/remotes/origin/main", "HEAD~1")
    assert tool.main([], tmp_path) == 1
    assert "Add a queue: the body is missing" in capsys.readouterr().out
    repository("update-ref", "refs/remotes/origin/main", "HEAD")
    assert tool.main([], tmp_path) == 0


def test_new_commits_begin_at_the_fixed_commit(
    tool, repository, tmp_path, monkeypatch, capsys
):
    assert tool.main(["--new"], tmp_path) == 0
    assert f"{tool.START[:7]} is not in this history" in capsys.readouterr().out
    monkeypatch.setattr(tool, "START", repository("rev-parse", "HEAD"))
    commit(repository, "Add a queue")
    assert tool.main(["--new"], tmp_path) == 1
    assert "the body is missing" in capsys.readouterr().out


def test_base_that_does_not_exist_is_an_error(tool, repository, tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        tool.main(["gone"], tmp_path)
    assert ended.value.code == 2
    assert "gone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (GOOD + "# Please enter the commit message.\n", 0),
        (GOOD + f"# --- >8 ---\ndiff --git a b\n+{'y' * 101}\n", 0),
        ("Add a queue\n# comment\n", 1),
        ("# comment\n", 1),
    ],
)
def test_message_file_is_read_without_its_comments(tool, tmp_path, text, status):
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text(text)
    assert tool.main(["--message", str(path)]) == status


def test_hook_and_ci_use_the_tool():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert "python tools/commits.py --message" in hooks
    assert "python tools/commits.py --new" in (ROOT / ".ci" / "run").read_text()
