# SPDX-License-Identifier: BSD-3-Clause
"""Device files: what is read, and what is refused with file, line and field."""

from __future__ import annotations

import pytest

from openreg_predict import DeviceFileError, device_names, load_device
from openreg_predict._devices.description import FIELDS, REQUIRED

HEAD = "schema: 1\nid: chip\nname: A chip\nvendor: me\ngeneration: new\n"
GOOD = {
    "vector_f32": "{value: 1.0e+13, unit: flop/s, kind: made-up, source: me}",
    "memory_bandwidth": "{value: 1.0e+12, unit: byte/s, kind: made-up, source: me}",
    "memory_capacity": "{value: 17179869184, unit: byte, kind: made-up, source: me}",
}


def file_with(tmp_path, head=HEAD, **fields):
    lines = [f"  {name}: {text}" for name, text in (GOOD | fields).items() if text]
    path = tmp_path / "chip.yaml"
    path.write_text(head + "fields:\n" + "\n".join(lines) + "\nsources: {me: mine}\n")
    return path


@pytest.mark.parametrize("name", device_names())
def test_each_packaged_device_has_the_required_fields_with_sources(name):
    device = load_device(name)
    assert device.id == name
    assert all(required in device.fields for required in REQUIRED)
    for field_name, field in device.fields.items():
        assert field.unit == FIELDS[field_name][0]
        assert field.source in device.sources


def test_a_file_of_a_user_is_read(tmp_path):
    device = load_device(file_with(tmp_path))
    assert device["vector_f32"] == 1e13
    assert device.fields["memory_bandwidth"].kind == "made-up"


def test_the_sheet_has_no_measured_field(tmp_path):
    measured = "{value: 1.0e-6, unit: s, kind: measured, source: me}"
    device = load_device(file_with(tmp_path, shortest_kernel=measured))
    assert device.get("shortest_kernel") == 1e-6
    assert device.sheet.get("shortest_kernel") is None
    assert device.sheet["vector_f32"] == device["vector_f32"]


@pytest.mark.parametrize(
    ("fields", "line", "words"),
    [
        ({"bandwith": GOOD["vector_f32"]}, 10, "unknown field 'bandwith'"),
        ({"vector_f32": "{value: 1e13, unit: flop/s, kind: made-up, source: me}"}, 7,
         "write 1.0e+12"),
        ({"vector_f32": "{value: -1, unit: flop/s, kind: made-up, source: me}"}, 7,
         "must be positive"),
        ({"vector_f32": "{value: 1, unit: TFLOPS, kind: made-up, source: me}"}, 7,
         "must be flop/s, got 'TFLOPS'"),
        ({"vector_f32": "{value: 1, unit: flop/s, kind: guess, source: me}"}, 7,
         "accepted are datasheet, derived, measured, made-up"),
        ({"vector_f32": "{value: 1, unit: flop/s, kind: made-up}"}, 7, "no 'source'"),
        ({"vector_f32": "{value: 1, unit: flop/s, kind: made-up, source: you}"}, 7,
         "accepted are me"),
        ({"vector_f32": ""}, 7, "vector_f32"),
        ({"vector_f32": "1.0e+13"}, 7, "must be a mapping"),
    ],
)  # fmt: skip
def test_a_bad_field_is_refused_with_its_line(tmp_path, fields, line, words):
    path = file_with(tmp_path, **fields)
    with pytest.raises(DeviceFileError) as error:
        load_device(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert words in str(error.value)


def test_an_unknown_entry_lists_what_is_accepted(tmp_path):
    path = file_with(tmp_path, head=HEAD + "price: 3\n")
    with pytest.raises(DeviceFileError, match="unknown entry 'price': accepted are"):
        load_device(path)


def test_text_that_is_no_yaml_is_refused(tmp_path):
    path = tmp_path / "chip.yaml"
    path.write_text("fields: [")
    with pytest.raises(DeviceFileError, match="not valid YAML"):
        load_device(path)


def test_an_unknown_device_names_the_closest_one():
    with pytest.raises(DeviceFileError, match="did you mean h100-sxm"):
        load_device("h100-smx")


def test_a_missing_field_is_asked_for_by_its_line():
    with pytest.raises(KeyError, match="add 'network_bandwidth: "):
        load_device("t4")["network_bandwidth"]


def test_a_device_can_be_scaled():
    device = load_device("t4").scaled(memory_bandwidth=2)
    assert device["memory_bandwidth"] == 2 * load_device("t4")["memory_bandwidth"]
    assert device.fields["memory_bandwidth"].kind == "made-up"
