"""How much does a memory matter? From 1, mundane, to 10, what changes a life (Park 2023, 4.1); and the rule."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mindstream.caches import remember
from mindstream.errors import ReplyInvalid
from mindstream.models.model import JsonSchema
from mindstream.models.prompt import Prompt, rule


class Importance(BaseModel):
    """A rating for each memory, in their order."""

    model_config = ConfigDict(frozen=True)

    ratings: list[Annotated[int, Field(ge=1, le=10)]] = Field(max_length=1_000)


class RateImportance(Prompt[Importance]):
    """How much do these memories matter to who has them?"""

    role: ClassVar[str] = "importance"

    who: str
    memories: tuple[str, ...]

    def reply_schema(self) -> JsonSchema:
        """Return a schema of as many ratings as there are memories."""
        schema = deepcopy(super().reply_schema() or {})
        schema["properties"]["ratings"] |= dict.fromkeys(("minItems", "maxItems"), len(self.memories))
        return schema

    def parse(self, text: str) -> Importance:
        reply = super().parse(text)
        if len(reply.ratings) != len(self.memories):
            raise ReplyInvalid(
                f"There are {len(self.memories)} memories and {len(reply.ratings)} ratings: rate each once."
            )
        return reply


WORDS: dict[int, str] = {
    10: r"die[ds]?|death|dead|suicid\w*|miscarriage|divorc\w*|broke up|break-?up|cancer|stroke",
    9: r"married|marry|wedding|gave birth|born|pregnan\w*|murder\w*|funeral|heart attack",
    8: r"fired|laid off|hired|promoted|accident|hospital\w*|graduat\w*|surgery|diagnos\w*|in love|proposed|moved to"
    r"|elected",
    7: r"allerg\w*|afraid|depress\w*|panic|anxi\w*|insomnia|addict\w*|desperate|betray\w*|secret",
    6: r"pain\w*|doctor|medic\w*|pills?|worr\w*|argu\w*|cry|cried|crying|angry|lonely|exam|promise\w*|decid\w*"
    r"|election",
    5: r"my name is|i am called|years old|birthday|my (?:wife|husband|partner|son|daughter|mother|father|boss)|work as"
    r"|goal|plan(?:s|ned|ning)?|want\w*|hate\w*|love\w*|party|invit\w*|talk(?:s|ed|ing)?|convers\w*|discuss\w*"
    r"|news|celebrat\w*|decorat\w*|excit\w*|proud|leak\w*|broken|burning",
    4: r"i|my|me|always|never|every|like\w*|prefer\w*|need\w*|usually|habit"
    r"|friends?|neighbou?rs?|colleagues?|guests|customers|visitors|patients|pupils|students|help(?:s|ed|ing)?|greet\w*"
    r"|welcom\w*|teach\w*|research\w*|stud(?:y|ies|ied|ying)|writ(?:es?|ing)|learn\w*|lectures?|class(?:es)?"
    r"|project|paper|essay|thesis|compos\w*|perform\w*",
}
EVERYDAY = (
    r"wak(?:es?|ing)|getting (?:up|ready|dressed|out of bed)|bed|wash\w*|shower\w*|bath\w*|clean\w*|tid(?:y|ies|ying)"
    r"|eat(?:s|ing)?|breakfast|lunch|dinner|supper|snacks?|cook\w*|dishes|laundry|walk\w*|wait\w*|pack\w*|driv\w*"
    r"|commut\w*|rest(?:s|ing)?|relax\w*|sitting|in use"
)
"""What everybody does every day: a little less than what has no word here."""
CHINESE: dict[int, str] = {
    10: "去世|自杀|离婚|癌",
    9: "结婚|怀孕|出生|葬礼",
    8: "住院|手术|事故|毕业|失业|恋爱",
    7: "过敏|抑郁|焦虑|失眠|害怕",
    6: "药|医生|担心|吵架|孤独|决定|考试",
    5: "我叫|生日|妻子|丈夫|儿子|女儿|讨厌|喜欢|计划",
    4: "我|总是|从不|每天|习惯",
}
"""What words weigh; the heaviest counts."""
MUNDANE = (
    r"\b(is|are) (idle|asleep|sleeping|empty|closed|off|being used)\b|\bbrush\w* (his|her|their|my) teeth\b"
    r"|^\W*(hi|hello|hey|thanks|thank you|ok|okay|yes|no|bye|goodbye|你好|谢谢|好的|再见)\W*$"
)
"""What is mundane on its face, unless a heavy word stands beside it."""
_WEIGHTS = [
    (weight, re.compile(rf"\b(?:{WORDS[weight]})\b|{CHINESE[weight]}", re.IGNORECASE)) for weight in sorted(WORDS)[::-1]
]
_MUNDANE, _EVERYDAY = re.compile(MUNDANE, re.IGNORECASE), re.compile(rf"\b(?:{EVERYDAY})\b", re.IGNORECASE)


@rule(RateImportance)
def rate_by_words(ask: RateImportance) -> Importance:
    """Rate by the heaviest word; what has none is a little more than mundane."""
    return Importance(ratings=[_weight(memory) for memory in ask.memories])


@remember(4_096)
def _weight(memory: str) -> int:
    heaviest = next((weight for weight, words in _WEIGHTS if words.search(memory)), 0)
    if heaviest <= 4 and _MUNDANE.search(memory):
        return 1
    return heaviest or (2 if _EVERYDAY.search(memory) else 3)
