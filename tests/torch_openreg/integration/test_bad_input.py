# SPDX-License-Identifier: BSD-3-Clause
"""Each kind of bad input raises one clear error, and the process continues to
compute."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn

from support.programs import Program
from support.versions import MINOR


@pytest.fixture(autouse=True)
def process_goes_on(device: str) -> Iterator[None]:
    """Computes correct results on every device after the error."""
    yield
    for index in range(torch.accelerator.device_count()):
        x = torch.arange(6.0, device=f"{device}:{index}").view(2, 3)
        assert (x @ x.T + 1).tolist() == [[6, 15], [15, 51]]


@pytest.mark.parametrize("index", [2, 7, 127])
def test_device_index_past_the_count_names_the_valid_range(
    device: str, index: int
) -> None:
    current = torch.accelerator.current_device_index()
    with pytest.raises(RuntimeError, match="invalid device ordinal") as caught:
        torch.ones(2, device=f"{device}:{index}")
    assert str(index) in str(caught.value)
    assert "0" in str(caught.value)
    assert "1" in str(caught.value)
    assert torch.accelerator.current_device_index() == current


@pytest.mark.parametrize("index", [2, 1000])
def test_set_device_refuses_an_unknown_index(index: int) -> None:
    with pytest.raises(RuntimeError, match=f"{index}.*invalid device ordinal"):
        torch.openreg.set_device(index)
    assert torch.openreg.current_device() == 0


@pytest.mark.parametrize("move", ["to", "empty_like", "zeros", "module", "stream"])
def test_every_path_refuses_an_unknown_device(device: str, move: str) -> None:
    target = f"{device}:5"
    paths: dict[str, Callable[[], object]] = {
        "to": lambda: torch.ones(2).to(target),
        "empty_like": lambda: torch.empty_like(torch.ones(2), device=target),
        "zeros": lambda: torch.zeros(2, device=target),
        "module": lambda: nn.Linear(2, 2).to(target),
        "stream": lambda: torch.Stream(target),
    }
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        paths[move]()


@pytest.mark.parametrize("name", ["openregg", "openreg:x", "openreg:-3"])
def test_unknown_device_name_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"[Dd]evice"):
        torch.ones(2, device=name)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENREG_DEVICE_COUNT", "65"),
        ("OPENREG_DEVICE_MEMORY", "16GB"),
        ("OPENREG_LAUNCH_BLOCKING", "yes"),
        ("OPENREG_ISOLATION", "subprocess"),
    ],
)
def test_wrong_environment_value_is_named_at_every_use(
    run_script: Program, variable: str, value: str
) -> None:
    """Importing torch works; using the device fails each time; the CPU works."""
    source = """
    import torch
    print("imported")
    for _ in range(2):
        try:
            torch.ones(2, device="openreg")
        except RuntimeError as error:
            print("error:", error)
    assert torch.ones(3).sum() == 3
    print("continues")
    """
    result = run_script(source, **{variable: value})
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "imported"
    assert lines[-1] == "continues"
    errors = [line for line in lines if line.startswith("error:")]
    assert len(errors) == 2
    for error in errors:
        assert variable in error
        assert value in error


def test_too_little_memory_gives_torch_out_of_memory_error(
    fork_script: Program,
) -> None:
    result = fork_script(
        """
        import torch
        held = torch.ones(8 << 20, dtype=torch.uint8, device="openreg")
        for size in (24 << 20, 1 << 45):
            try:
                torch.ones(size, dtype=torch.uint8, device="openreg")
            except torch.OutOfMemoryError as error:
                print("error:", str(error).splitlines()[0])
        # Existing memory is intact, and remaining memory and the other device work.
        assert held.all().item()
        fits = torch.ones(4 << 20, dtype=torch.uint8, device="openreg")
        assert fits.all().item()
        other = torch.ones(20 << 20, dtype=torch.uint8, device="openreg:1")
        assert other[-1].item() == 1
        del held, fits
        whole = torch.ones(28 << 20, dtype=torch.uint8, device="openreg")
        assert whole[-1].item() == 1
        print("continues")
        """,
        OPENREG_DEVICE_MEMORY="32MiB",
    )
    assert result.returncode == 0, result.stderr
    *errors, last = result.stdout.splitlines()
    assert last == "continues"
    assert len(errors) == 2
    for error, asked in zip(errors, ("24.00 MiB", "32768.00 GiB"), strict=True):
        assert asked in error
        assert "32.00 MiB" in error


def test_more_than_the_default_memory_is_refused(device: str) -> None:
    with pytest.raises(torch.OutOfMemoryError, match="GiB"):
        torch.empty(1 << 36, dtype=torch.uint8, device=device)


# Kernels that throw on the CPU, depending on the data.
BAD_KERNELS: dict[str, Callable[[str], Tensor]] = {
    "index": lambda device: torch.ones(4, device=device)[
        torch.tensor([9], device=device)
    ],
    "index_select": lambda device: torch.ones(4, device=device).index_select(
        0, torch.tensor([9], device=device)
    ),
    "index_put": lambda device: torch.ones(4, device=device).index_put_(
        (torch.tensor([9], device=device),), torch.ones(1, device=device)
    ),
    "embedding": lambda device: nn.functional.embedding(
        torch.tensor([7], device=device), torch.ones(3, 2, device=device)
    ),
    "label": lambda device: nn.functional.cross_entropy(
        torch.ones(2, 3, device=device), torch.tensor([0, 3], device=device)
    ),
    "cholesky": lambda device: torch.linalg.cholesky(-torch.eye(3, device=device)),
    "probability": lambda device: torch.multinomial(
        torch.tensor([-1.0, 1.0], device=device), 1
    ),
}


@pytest.mark.parametrize("kernel", BAD_KERNELS)
def test_kernel_that_throws_reports_the_error(device: str, kernel: str) -> None:
    """The error is raised by the call or, as on other devices, by a wait."""
    errors = (RuntimeError, IndexError)
    with pytest.raises(errors) as expected:
        BAD_KERNELS[kernel]("cpu")
    with pytest.raises(errors) as caught:  # noqa: PT012  either line may report it
        result = BAD_KERNELS[kernel](device)
        torch.accelerator.synchronize(device)
        del result
    reason = str(expected.value).splitlines()[0]
    assert reason in str(caught.value)
    # The error was reported once and is not kept for later work.
    torch.accelerator.synchronize(device)


def test_tensors_of_two_devices_are_refused(device: str) -> None:
    here = torch.ones(2, 2, device=device)
    for other in (torch.ones(2, 2), torch.ones(2, 2, device=f"{device}:1")):
        for combine in (torch.add, torch.matmul, torch.mul):
            with pytest.raises(RuntimeError, match=r"same device|two devices"):
                combine(here, other)
        with pytest.raises(RuntimeError, match=r"same device|two devices"):
            torch.cat([here, other])


def test_shapes_that_do_not_fit_are_refused_as_on_the_cpu(device: str) -> None:
    def fail(place: str) -> str:
        with pytest.raises(RuntimeError) as caught:
            torch.ones(2, 3, device=place) @ torch.ones(2, 3, device=place)
        return str(caught.value)

    assert fail(device) == fail("cpu")


def test_numpy_view_of_device_memory_is_refused(device: str) -> None:
    with pytest.raises(TypeError, match=device):
        torch.ones(2, device=device).numpy()


def test_exception_in_backward_leaves_the_device_usable(device: str) -> None:
    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(_ctx: object, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(_ctx: object, _gradient: Tensor) -> Tensor:
            raise ValueError("no gradient today")

    x = torch.ones(3, device=device, requires_grad=True)
    with pytest.raises(ValueError, match="no gradient today"):
        Refuses.apply(x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3, 3, 3]


@pytest.mark.parametrize("package", ["openreg_aten", "openreg_amp"])
def test_torch_of_another_version_is_refused_with_both_versions(
    run_script: Program, package: str
) -> None:
    result = run_script(
        f"""
        from importlib import metadata
        import torch
        installed = metadata.version
        metadata.version = lambda name: "2.99.1" if name == "torch" else installed(name)
        try:
            import {package}
        except RuntimeError as error:
            print(error)
        assert torch.ones(3).sum() == 3
        print("continues")
        """,
        TORCH_DEVICE_BACKEND_AUTOLOAD="0",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.endswith("continues\n")
    name = package.replace("_", "-")
    for part in (name, "2.99.1", MINOR, "pip install"):
        assert part in result.stdout


def test_autocast_error_names_the_package_to_install(run_script: Program) -> None:
    result = run_script(
        """
        import sys
        sys.modules["openreg_amp"] = None  # simulates a missing package
        import torch
        try:
            with torch.autocast("openreg"):
                pass
        except Exception as error:
            print(type(error).__name__, error)
        x = torch.ones(3, device="openreg")
        assert (x + x).sum().item() == 6
        print("continues")
        """
    )
    assert result.returncode == 0, result.stderr
    assert "pip install openreg-amp" in result.stdout
    assert result.stdout.endswith("continues\n")
