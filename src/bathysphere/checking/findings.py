"""What a check of a world found, for people and for programs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Finding:
    """Something that a world does wrong, or that is worth knowing about it."""

    name: str
    """Of this kind of mistake, short, words joined by hyphens."""
    seen: str
    """A sentence: what happened."""
    fix: str
    """A sentence: how to mend it."""
    is_wrong: bool = True
    """Whether training would be misled. Otherwise it works, only not as well as it could."""


class Fact(NamedTuple):
    """Something about a world, with a sentence that says it."""

    name: str
    value: Any  # plain data
    told: str


@dataclass(frozen=True)
class WorldCheck:
    """What a check found. Printed, it is the report that `bathysphere check` shows."""

    world: str
    """What the world is called."""
    findings: tuple[Finding, ...]
    """What is wrong, then what is worth knowing."""
    facts: tuple[Fact, ...]
    """What the world is; none if it could not be made."""

    @property
    def is_fine(self) -> bool:
        """Whether nothing is wrong."""
        return not any(finding.is_wrong for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Returns everything as plain data."""
        return {
            "world": self.world,
            "is_fine": self.is_fine,
            "findings": [asdict(finding) for finding in self.findings],
            **{fact.name: fact.value for fact in self.facts if fact.name != "found_out"},
            "found_out": [fact.value for fact in self.facts if fact.name == "found_out"],
        }

    def __str__(self) -> str:
        wrong = [finding for finding in self.findings if finding.is_wrong]
        rest = [finding for finding in self.findings if not finding.is_wrong]
        lines = [f"{self.world}: {_count(wrong)}."]
        lines += [line for finding in wrong for line in _told(finding)]
        if rest:
            lines += ["", "Worth knowing:", *(line for finding in rest for line in _told(finding))]
        if self.facts:
            width = max(len(fact.name) for fact in self.facts)
            names = (fact.name.replace("_", " ").ljust(width) for fact in self.facts)
            lines += ["", *(f"  {name}  {fact.told}" for name, fact in zip(names, self.facts, strict=True))]
        return "\n".join(lines)


def _count(wrong: list[Finding]) -> str:
    if not wrong:
        return "nothing is wrong"
    return "one thing is wrong" if len(wrong) == 1 else f"{len(wrong)} things are wrong"


def _told(finding: Finding) -> list[str]:
    return ["", f"  {finding.name}", f"    {finding.seen}", f"    {finding.fix}"]
