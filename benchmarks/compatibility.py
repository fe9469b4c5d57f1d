"""Which environments of other packages can be planned in: docs/lab/compatibility.md, written by checking each.

python benchmarks/compatibility.py [ids that begin so]      (some minutes; needs minigrid and ale-py)
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import bathysphere
from bathysphere.checking.findings import WorldCheck
from bathysphere.domains.worlds import GymnasiumConfig
from bathysphere.storage.versions import collect_versions

PAGE = Path(__file__).parents[1] / "docs" / "lab" / "compatibility.md"
SURE: dict[str, Any] = {"is_slippery": False}
KINDS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "Gymnasium, toy text": [
        ("Blackjack-v1", {}),
        ("CliffWalking-v1", {}),
        ("CliffWalkingSlippery-v1", {}),
        ("FrozenLake-v1", {}),
        ("FrozenLake-v1", SURE),
        ("FrozenLake8x8-v1", {}),
        ("FrozenLake8x8-v1", SURE),
        ("Taxi-v4", {}),
    ],
    "Gymnasium, classic control": [
        ("CartPole-v1", {}),
        ("MountainCar-v0", {}),
        ("Acrobot-v1", {}),
        ("Pendulum-v1", {}),
        ("MountainCarContinuous-v0", {}),
    ],
    "MiniGrid": [
        (f"MiniGrid-{name}-v0", {})
        for name in (
            "Empty-8x8",
            "FourRooms",
            "DoorKey-6x6",
            "MultiRoom-N4-S5",
            "KeyCorridorS3R3",
            "ObstructedMaze-1Dl",
            "Unlock",
            "LavaCrossingS9N2",
            "MemoryS7",
            "Dynamic-Obstacles-6x6",
        )
    ],
    "ALE": [
        ("ALE/Freeway-v5", {}),
        ("ALE/Freeway-v5", {"obs_type": "ram"}),
        ("ALE/Freeway-v5", {"repeat_action_probability": 0.0, "obs_type": "ram"}),
    ],
}


def main() -> None:
    """Checks every environment and writes the page."""
    begin = sys.argv[1] if len(sys.argv) > 1 else ""
    lines = [
        "# Which environments work",
        "",
        "*Made by `python benchmarks/compatibility.py`; do not edit.* Each environment was checked as `bathysphere "
        "check gymnasium:ID` does, by random walks. Refused ones are refused by `train` too, with the same sentence. "
        "Worth knowing is what makes learning harder; [guide/check.md](../guide/check.md) explains the words. "
        "Worlds with chance are planned by `expectimax`: their outcomes are published by the environment, or counted "
        "in runs.",
        "",
        f"Bathysphere {collect_versions().get('bathysphere', '')}, {_packages()}.",
    ]
    for kind, environments in KINDS.items():
        rows = [_row(name, arguments) for name, arguments in environments if name.startswith(begin)]
        lines += [
            "",
            f"## {kind}",
            "",
            "| environment | accepted | worth knowing, or why it is refused |",
            "|---|---|---|",
            *rows,
        ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE}\n")


def _row(name: str, arguments: dict[str, Any]) -> str:
    given = "".join(f" {key}={value}" for key, value in arguments.items())
    found = bathysphere.check(GymnasiumConfig(name, arguments))
    sys.stdout.write(f"{name}{given}: {'accepted' if found.is_fine else 'refused'}\n")
    return f"| `{name}`{given} | {'yes' if found.is_fine else 'no'} | {_why(found)} |"


def _why(found: WorldCheck) -> str:
    told = [
        f"`{each.name}`" + (f": {each.seen}" if each.is_wrong else "") for each in found.findings if each.name != "slow"
    ]
    if (share := found.to_dict().get("chance")) is not None:
        told.insert(0, f"chance in {share:.0%} of steps" + (";" if told else ""))
    return " ".join(told).replace("|", "\\|")


def _packages() -> str:
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in ("gymnasium", "minigrid", "ale-py"))


if __name__ == "__main__":
    main()
