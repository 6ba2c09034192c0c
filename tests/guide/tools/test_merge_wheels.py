# SPDX-License-Identifier: BSD-3-Clause
"""tools/merge_wheels.py: one wheel holds the libraries for several torches."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import pytest

NAME = "pkg-1.0-cp311-cp311-linux_x86_64.whl"
COMMON = {"pkg/__init__.py": "common"}


@pytest.fixture
def merge_wheels(load_tool):
    return load_tool("merge_wheels")


def write_wheel(folder, files, name=NAME):
    """Packs files into a wheel; ``wheel pack`` writes RECORD."""
    content = folder / "content"
    info = content / "pkg-1.0.dist-info"
    info.mkdir(parents=True)
    tag = name.removesuffix(".whl").removeprefix("pkg-1.0-")
    header = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n"
    (info / "WHEEL").write_text(header)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pkg\nVersion: 1.0\n")
    for path, text in files.items():
        (content / path).parent.mkdir(parents=True, exist_ok=True)
        (content / path).write_text(text)
    command = [sys.executable, "-m", "wheel", "pack", content, "--dest-dir", folder]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / name


@pytest.fixture
def builds(tmp_path):
    """Writes the wheels of two builds; returns them."""
    return [
        write_wheel(tmp_path / minor, {**COMMON, f"pkg/torch_{minor}/_C.so": minor})
        for minor in ("2_13", "2_14")
    ]


def contents(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_merged_wheel_has_the_folder_of_each_torch(merge_wheels, builds, tmp_path):
    merged = merge_wheels.merge(builds, tmp_path / "new" / "dist")
    assert merged == tmp_path / "new" / "dist" / NAME
    files = contents(merged)
    assert files["pkg/__init__.py"] == "common"
    assert files["pkg/torch_2_13/_C.so"] == "2_13"
    assert files["pkg/torch_2_14/_C.so"] == "2_14"


def test_record_of_the_merged_wheel_lists_all_files(merge_wheels, builds, tmp_path):
    files = contents(merge_wheels.merge(builds, tmp_path / "dist"))
    record = files["pkg-1.0.dist-info/RECORD"].splitlines()
    assert {line.split(",")[0] for line in record} == set(files)


def test_library_stays_executable(merge_wheels, tmp_path):
    program = tmp_path / "2_13" / "content" / "pkg" / "launcher"
    program.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)
    wheel = write_wheel(tmp_path / "2_13", COMMON)
    merged = merge_wheels.merge([wheel], tmp_path / "dist")
    with zipfile.ZipFile(merged) as archive:
        mode = archive.getinfo("pkg/launcher").external_attr >> 16
    assert mode & 0o111


def test_file_that_differs_is_refused_with_its_name(merge_wheels, builds, tmp_path):
    other = write_wheel(tmp_path / "2_15", {"pkg/__init__.py": "changed"})
    with pytest.raises(
        ValueError, match=r"^pkg/__init__\.py differs between "
    ) as error:
        merge_wheels.merge([builds[0], other], tmp_path / "dist")
    assert str(builds[0]) in str(error.value)
    assert str(other) in str(error.value)
    assert not list((tmp_path / "dist").iterdir())


def test_names_that_differ_are_refused(merge_wheels, builds, tmp_path):
    name = NAME.replace("cp311", "cp312")
    other = write_wheel(tmp_path / "312", COMMON, name)
    with pytest.raises(ValueError, match=f"names of the wheels differ: {NAME}, {name}"):
        merge_wheels.merge([builds[0], other], tmp_path / "dist")


def test_wheels_of_two_pythons_stay_separate(merge_wheels, builds, tmp_path, capsys):
    name = NAME.replace("cp311", "cp312")
    write_wheel(tmp_path / "312", COMMON, name)
    folders = [str(tmp_path / each) for each in ("2_13", "2_14", "312")]
    output = tmp_path / "dist"
    assert merge_wheels.main([*folders, "--output", str(output)]) == 0
    assert {wheel.name for wheel in output.iterdir()} == {NAME, name}
    assert capsys.readouterr().out.splitlines() == [
        str(output / NAME),
        str(output / name),
    ]


def test_command_line_reports_a_file_that_differs(
    merge_wheels, builds, tmp_path, capsys
):
    write_wheel(tmp_path / "2_15", {"pkg/__init__.py": "changed"})
    folders = [str(tmp_path / each) for each in ("2_13", "2_15")]
    assert merge_wheels.main([*folders, "--output", str(tmp_path / "dist")]) == 1
    assert "pkg/__init__.py differs" in capsys.readouterr().err


def test_folder_without_wheels_is_refused(merge_wheels, tmp_path, capsys):
    with pytest.raises(SystemExit):
        merge_wheels.main([str(tmp_path), "--output", str(tmp_path / "dist")])
    assert f"no wheel in {tmp_path}" in capsys.readouterr().err
