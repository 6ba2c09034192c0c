# SPDX-License-Identifier: BSD-3-Clause
"""Offsets are positions in the CPU's random numbers, and states can be shared."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable

import pytest
import torch

import openreg_aten

# Beyond it, setting an offset jumps: 624 numbers in each of 2^14 blocks.
FAR = 624 << 14

DRAWS: dict[str, Callable[[str, torch.Generator], torch.Tensor]] = {
    "rand": lambda d, g: torch.rand(50, device=d, generator=g),
    "rand_float64": lambda d, g: torch.rand(
        50, device=d, dtype=torch.float64, generator=g
    ),
    "randn": lambda d, g: torch.randn(50, device=d, generator=g),
    "randint": lambda d, g: torch.randint(1 << 40, (50,), device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(50, device=d, generator=g),
    "poisson": lambda d, g: torch.poisson(torch.full((9,), 3.0, device=d), generator=g),
    "bernoulli": lambda d, g: torch.full((50,), 0.3, device=d).bernoulli(generator=g),
    "multinomial": lambda d, g: torch.ones(9, device=d).multinomial(4, generator=g),
}


@pytest.fixture
def generator(device: str) -> torch.Generator:
    return torch.Generator(device).manual_seed(7)


def offset_at(draws: int) -> int:
    """Returns the documented offset after a count of 32-bit numbers."""
    return draws // 16 * 4 + (draws % 16 << 58)


def offset_keeping(draws: int, since: int) -> int:
    """The same with a cached normal that was drawn ``since`` numbers ago."""
    width = since.bit_length()
    rest = draws % 16 << (53 - width)
    return 1 << 62 | width << 57 | since << (57 - width) | rest | draws // 16 * 4


def numbers(generator: torch.Generator, count: int = 40) -> torch.Tensor:
    """Draws on the device of the generator; returns the numbers on the CPU."""
    return torch.rand(count, device=generator.device, generator=generator).cpu()


def test_offset_counts_numbers_of_32_bits(generator: torch.Generator) -> None:
    assert generator.get_offset() == 0
    numbers(generator, 5)
    assert generator.get_offset() == offset_at(5)
    DRAWS["rand_float64"](str(generator.device), generator)
    assert generator.get_offset() == offset_at(105)
    numbers(generator, 2000)
    assert generator.get_offset() == offset_at(2105)
    assert generator.manual_seed(3).get_offset() == 0


@pytest.mark.parametrize(
    "draws", [0, 1, 15, 16, 623, 624, 625, 1248, 100_003, FAR - 1, FAR, FAR + 1000]
)
def test_numbers_from_an_offset_are_those_of_the_cpu(
    generator: torch.Generator, draws: int
) -> None:
    numbers(generator, 700)
    generator.set_offset(offset_at(draws))
    assert generator.get_offset() == offset_at(draws)
    on_cpu = torch.Generator().manual_seed(7)
    torch.rand(draws, generator=on_cpu)
    assert torch.equal(numbers(generator), torch.rand(40, generator=on_cpu))


def test_four_more_are_sixteen_numbers(device: str) -> None:
    offset = offset_at(1005)
    expected = torch.rand(1200, generator=torch.Generator().manual_seed(5))
    for fours in range(3):
        generator = torch.Generator(device).manual_seed(5)
        generator.set_offset(offset + 4 * fours)
        begin = 1005 + 16 * fours
        assert torch.equal(numbers(generator), expected[begin : begin + 40])


@pytest.mark.parametrize("offset", [3 * FAR, 2**40, 2**58 - 4096])
def test_far_offset_is_where_near_ones_lead(device: str, offset: int) -> None:
    far, near = (torch.Generator(device).manual_seed(5) for _ in range(2))
    near.set_offset(offset - 400)
    skipped = numbers(near, 1600)
    far.set_offset(offset)
    assert torch.equal(numbers(far, 160), numbers(near, 160))
    assert far.get_offset() == near.get_offset() == offset + 40
    assert skipped.unique().numel() > 1590


@pytest.mark.parametrize("name", DRAWS)
def test_setting_the_offset_back_repeats_the_numbers(
    device: str, generator: torch.Generator, name: str
) -> None:
    DRAWS[name](device, generator)
    offset = generator.get_offset()
    assert offset > 0
    first = DRAWS[name](device, generator)
    assert not torch.equal(DRAWS[name](device, generator), first)
    generator.set_offset(offset)
    assert torch.equal(DRAWS[name](device, generator), first)
    other = torch.Generator(device).manual_seed(7)
    other.set_offset(offset)
    assert torch.equal(DRAWS[name](device, other), first)


def test_state_is_the_seed_and_the_offset(
    device: str, generator: torch.Generator
) -> None:
    seed = 2**64 - 3
    generator.manual_seed(seed)
    numbers(generator, 10)
    state = generator.get_state()
    assert state.dtype is torch.uint8
    assert state[:8].view(torch.uint64).item() == seed
    assert state[8:].view(torch.int64).item() == offset_at(10)
    first = numbers(generator)
    twin = torch.Generator(device)
    twin.set_state(state)
    assert twin.initial_seed() == seed
    assert twin.get_offset() == offset_at(10)
    assert torch.equal(numbers(twin), first)


def test_many_states_can_be_set_back_in_any_order(generator: torch.Generator) -> None:
    kept = [(generator.get_state(), numbers(generator, 700)) for _ in range(50)]
    for state, expected in reversed(kept):
        generator.set_state(state)
        assert torch.equal(numbers(generator, 700), expected)


# Leave a cached normal, directly behind the numbers it was computed from or not.
KEEPING: dict[str, Callable[[str, torch.Generator], object]] = {
    "float32": lambda d, g: torch.randn(3, device=d, generator=g),
    "float64": lambda d, g: torch.randn(3, device=d, dtype=torch.float64, generator=g),
    "bfloat16": lambda d, g: torch.randn(
        5, device=d, dtype=torch.bfloat16, generator=g
    ),
    "log_normal": lambda d, g: torch.empty(1, device=d).log_normal_(generator=g),
    "then_others": lambda d, g: (
        torch.randn(7, device=d, generator=g),
        torch.rand(100_003, device=d, generator=g),
    ),
    "then_many": lambda d, g: (
        torch.rand(50_001, device=d, generator=g),
        torch.randn(1, device=d, generator=g),
        torch.rand(1_000_001, device=d, generator=g),
    ),
    "gamma": lambda d, g: torch._standard_gamma(
        torch.full((5,), 0.7, device=d), generator=g
    ),
    "poisson": lambda d, g: torch.poisson(
        torch.full((3,), 30.0, device=d), generator=g
    ),
    "twice": lambda d, g: (
        torch.randn(3, device=d, generator=g),
        torch.randn(4, device=d, generator=g),
    ),
}


def restored(state: torch.Tensor, device: str) -> torch.Generator:
    generator = torch.Generator(device)
    generator.set_state(state)
    return generator


def from_offset(generator: torch.Generator) -> torch.Generator:
    other = torch.Generator(generator.device)
    other.manual_seed(generator.initial_seed())
    other.set_offset(generator.get_offset())
    return other


def saved(state: torch.Tensor) -> torch.Tensor:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file)


STATES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "itself": lambda state: state,
    "clone": torch.clone,
    "numpy": lambda state: torch.from_numpy(state.numpy().copy()),
    "bytes": lambda state: torch.frombuffer(
        bytearray(state.numpy().tobytes()), dtype=torch.uint8
    ),
    "list": lambda state: torch.tensor(state.tolist(), dtype=torch.uint8),
    "pickle": lambda state: pickle.loads(pickle.dumps(state)),
    "save": saved,
    "deepcopy": copy.deepcopy,
    "to": lambda state: state.to(openreg_aten._C.default_generator(0).device).cpu(),
    "part": lambda state: torch.cat([state, state])[state.numel() :],
}


def later_numbers(device: str, generator: torch.Generator) -> torch.Tensor:
    """Takes the cached normal, if any, and others."""
    normals = torch.randn(4, device=device, generator=generator)
    rest = torch.rand(20, device=device, generator=generator)
    return torch.cat([normals, rest]).cpu()


@pytest.mark.parametrize("copied", STATES)
@pytest.mark.parametrize("name", KEEPING)
def test_state_is_its_bytes(
    device: str, generator: torch.Generator, name: str, copied: str
) -> None:
    on_cpu = torch.Generator().manual_seed(7)
    KEEPING[name]("cpu", on_cpu)
    KEEPING[name](device, generator)
    expected = later_numbers("cpu", on_cpu)
    state = generator.get_state()
    assert state.untyped_storage().nbytes() == state.numel() == 16
    for _ in range(2):
        other = restored(STATES[copied](state), device)
        assert other.get_state().equal(state)
        assert other.get_offset() == generator.get_offset()
        assert later_numbers(device, other).equal(expected)
    assert later_numbers(device, generator).equal(expected)
    generator.set_state(STATES[copied](state))
    assert later_numbers(device, generator).equal(expected)


@pytest.mark.parametrize("name", KEEPING)
def test_offset_has_the_normal_that_is_kept(
    device: str, generator: torch.Generator, name: str
) -> None:
    on_cpu = torch.Generator().manual_seed(7)
    KEEPING[name]("cpu", on_cpu)
    KEEPING[name](device, generator)
    expected = later_numbers("cpu", on_cpu)
    other = from_offset(generator)
    assert other.get_offset() == generator.get_offset()
    generator.set_offset(generator.get_offset())
    for each in (generator, other):
        assert later_numbers(device, each).equal(expected)
    assert generator.get_offset() == other.get_offset()


def test_normal_that_is_taken_leaves_a_plain_offset(
    device: str, generator: torch.Generator
) -> None:
    torch.randn(3, device=device, generator=generator)
    assert generator.get_offset() == offset_keeping(8, since=0)
    numbers(generator, 5)
    assert generator.get_offset() == offset_keeping(13, since=5)
    torch.randn(1, device=device, generator=generator)
    assert generator.get_offset() == offset_at(13)


def test_state_in_the_middle_of_many_keeps_its_normal(
    device: str, generator: torch.Generator
) -> None:
    # Half of the positions that get_state() must find precede other draws.
    on_cpu = torch.Generator().manual_seed(7)
    kept = []
    for count in (1, 3, 700, 5, 15, 16, 17, 624, 1):
        for d, g in (("cpu", on_cpu), (device, generator)):
            torch.randn(count, device=d, generator=g)
            torch.rand(count, device=d, generator=g)
        kept.append((generator.get_state().clone(), on_cpu.get_state()))
    for state, expected in reversed(kept):
        generator.set_state(state)
        on_cpu.set_state(expected)
        assert later_numbers(device, generator).equal(later_numbers("cpu", on_cpu))


def test_state_without_room_for_an_old_normal_is_that_of_the_cpu(
    device: str, generator: torch.Generator
) -> None:
    generator.set_offset(offset_keeping((1 << 34) - 16, since=1 << 19))
    assert generator.get_offset() == offset_keeping((1 << 34) - 16, since=1 << 19)
    numbers(generator, 32)
    state = generator.get_state()
    assert state.numel() == 5056
    with pytest.raises(RuntimeError, match="has no offset"):
        generator.get_offset()
    on_cpu = torch.Generator()
    on_cpu.set_state(state)
    expected = later_numbers("cpu", on_cpu)
    assert later_numbers(device, restored(state.clone(), device)).equal(expected)
    part = torch.cat([state, state])[5056:]
    assert later_numbers(device, restored(part, device)).equal(expected)
    assert later_numbers(device, generator).equal(expected)
    assert generator.get_state().numel() == 16  # the normal has been taken


def test_offset_of_a_state_that_dtensor_moved_goes_on(
    device: str, generator: torch.Generator
) -> None:
    torch.randn(3, device=device, generator=generator)
    state = generator.get_state()
    state[8:].view(torch.int64).add_(4)  # like DTensor, but in place
    generator.set_state(state)
    uniform = torch.rand(40, device=device, generator=generator).cpu()
    expected = torch.rand(64, generator=torch.Generator().manual_seed(7))
    assert uniform.equal(expected[24:])


def test_state_of_the_cpu_has_an_offset(generator: torch.Generator) -> None:
    on_cpu = torch.Generator().manual_seed(11)
    torch.rand(12345, generator=on_cpu)
    generator.set_state(on_cpu.get_state())
    assert generator.initial_seed() == 11
    assert generator.get_offset() == offset_at(12345)
    assert generator.get_state().numel() == 16
    assert torch.equal(numbers(generator), torch.rand(40, generator=on_cpu))


def test_state_that_is_not_of_its_seed_has_no_offset(
    generator: torch.Generator,
) -> None:
    on_cpu = torch.Generator().manual_seed(11)
    torch.rand(5, generator=on_cpu)
    state = on_cpu.get_state()
    state[0] = 12  # the seed
    generator.set_state(state)
    with pytest.raises(RuntimeError, match="not reached from seed 12"):
        generator.get_offset()
    assert torch.equal(generator.get_state(), state)
    assert torch.equal(numbers(generator), torch.rand(40, generator=on_cpu))
    generator.set_offset(4)
    assert generator.get_offset() == 4


def test_copies_have_the_offset(device: str, generator: torch.Generator) -> None:
    numbers(generator, 1001)
    copies = [
        generator.clone_state(),
        copy.deepcopy(generator),
        pickle.loads(pickle.dumps(generator)),
    ]
    first = numbers(generator)
    for each in copies:
        assert each.get_offset() == offset_at(1001)
        assert torch.equal(numbers(each), first)


def test_offset_includes_numbers_that_are_still_enqueued(device: str, latch) -> None:
    generator = torch.Generator(device).manual_seed(2)
    x = torch.empty(500, device=device)
    x.uniform_(generator=generator)  # the first time, every kernel is new
    held = latch()
    x.uniform_(generator=generator)
    assert not torch.accelerator.current_stream().query()
    held.release()
    assert generator.get_offset() == offset_at(1000)


def test_offset_that_is_set_does_not_wait_for_enqueued_numbers(
    device: str, latch
) -> None:
    generator = torch.Generator(device).manual_seed(2)
    x, y = (torch.empty(500, device=device) for _ in range(2))
    x.uniform_(generator=generator)
    generator.set_offset(0)
    held = latch()
    x.uniform_(generator=generator)
    generator.set_offset(offset_at(100))
    y.uniform_(generator=generator)
    assert not torch.accelerator.current_stream().query()
    held.release()
    on_cpu = torch.rand(600, generator=torch.Generator().manual_seed(2))
    assert torch.equal(x.cpu(), on_cpu[:500])
    assert torch.equal(y.cpu(), on_cpu[100:])


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (6, "offset must be a multiple of 4, got 6"),
        (-4, r"from 0 to 2\^62 - 1, .* got -4"),
        (2**62, r"from 0 to 2\^62 - 1"),
        (offset_keeping(3, since=0), "that get_offset"),
        (offset_keeping(20, since=17), "that get_offset"),
        (offset_keeping(20, since=16) + 1, "must be a multiple of 4"),
        (2**64, "verflow"),
        ("4", "expected a long, but got str"),
        (1.5, "expected a long, but got float"),
    ],
)
def test_wrong_offset_is_refused_and_changes_nothing(
    generator: torch.Generator, offset: object, message: str
) -> None:
    numbers(generator, 6)
    with pytest.raises((RuntimeError, TypeError, ValueError), match=message):
        generator.set_offset(offset)
    assert generator.get_offset() == offset_at(6)


def test_wrong_states_are_refused_and_change_nothing(
    generator: torch.Generator,
) -> None:
    numbers(generator, 6)
    with pytest.raises(TypeError, match=r"must be a torch\.ByteTensor"):
        generator.set_state(torch.zeros(16))
    with pytest.raises(RuntimeError, match="must be contiguous"):
        generator.set_state(torch.zeros(32, dtype=torch.uint8)[::2])
    with pytest.raises(RuntimeError, match="RNG state"):
        generator.set_state(torch.zeros(8, dtype=torch.uint8))
    assert generator.get_offset() == offset_at(6)


def test_graphsafe_state_is_shared_with_the_generator(
    generator: torch.Generator,
) -> None:
    shared = generator.graphsafe_get_state()
    assert shared.device == generator.device
    first = numbers(generator, 6)
    assert shared.get_offset() == offset_at(6)
    numbers(shared, 4)
    assert generator.get_offset() == offset_at(10)
    shared.manual_seed(7)
    assert torch.equal(numbers(generator, 6), first)


def test_graphsafe_state_that_is_set_moves_with_the_numbers(
    device: str, generator: torch.Generator
) -> None:
    other = torch.Generator(device).manual_seed(9)
    expected = torch.rand(12, generator=torch.Generator().manual_seed(9))
    own = generator.graphsafe_get_state()
    numbers(generator, 3)
    generator.graphsafe_set_state(other)
    assert generator.initial_seed() == 9
    drawn = torch.cat([numbers(generator, 6), numbers(other, 6)])
    assert torch.equal(drawn, expected)
    generator.graphsafe_set_state(own)
    assert generator.initial_seed() == 7
    assert generator.get_offset() == offset_at(3)
    assert other.get_offset() == offset_at(12)


def test_default_generator_can_draw_from_another_state(device: str) -> None:
    torch.manual_seed(1)
    default = openreg_aten._C.default_generator(0)
    other = torch.Generator(device).manual_seed(9)
    own = default.graphsafe_get_state()
    default.graphsafe_set_state(other)
    try:
        drawn = torch.rand(6, device=device).cpu()
    finally:
        default.graphsafe_set_state(own)
    assert torch.equal(drawn, torch.rand(6, generator=torch.Generator().manual_seed(9)))
    assert torch.equal(torch.rand(6, device=device).cpu(), torch.rand(6))


def test_graphsafe_state_of_another_device_type_is_refused(
    generator: torch.Generator,
) -> None:
    with pytest.raises(RuntimeError, match="Expected an OpenReg Generator"):
        generator.graphsafe_set_state(torch.Generator())
    assert generator.initial_seed() == 7


@pytest.mark.parametrize(
    ("name", "use", "message"),
    [
        ("rng_offset", "g.set_offset(4)", "does not use offset: expected 0, got 4"),
        ("rng_graphsafe", "g.graphsafe_get_state()", "graphsafe_get_state is not"),
        ("rng_graphsafe", "g.graphsafe_set_state(g)", "graphsafe_set_state is not"),
    ],
)
def test_without_the_mechanism_the_generator_reports_it(
    run_python, name: str, use: str, message: str
) -> None:
    source = f"""
    import copy
    import torch
    import openreg_aten
    d = "privateuseone"
    g = torch.Generator(d).manual_seed(4)
    on_cpu = torch.Generator().manual_seed(4)
    torch.rand(5, device=d, generator=g)
    torch.rand(5, generator=on_cpu)
    try:
        {use}
    except RuntimeError as error:
        print(error)
    twin = torch.Generator(d)
    twin.set_state(g.get_state())
    expected = torch.rand(5, generator=on_cpu)
    for each in (copy.deepcopy(g), twin, g):
        print(torch.rand(5, device=d, generator=each).cpu().equal(expected))
    print(g.get_state().numel())
    """
    result = run_python(source, OPENREG_DISABLE=name)
    assert result.returncode == 0, result.stderr
    first, *rest, size = result.stdout.splitlines()
    assert message in first
    assert rest == ["True"] * 3
    assert size == ("5056" if name == "rng_offset" else "16")
