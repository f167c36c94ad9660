"""Japanese sentences that say something durable of the speaker."""

from __future__ import annotations

from everkept.derive.offline.rule import ANIMAL, ORGANISATION, PERSON, PLACE, Rule, rule

_THING = r"(?P<object>[^、。！？\s\"「」はがをにで]{1,20})"
_ME = r"(?:^|(?:私|僕|俺|わたし)(?:は、?|、))"
_MY = r"(?:^|(?:私|僕|俺|わたし|うち)の)"
_SAYS = "{entity}は{object}{predicate}"

JAPANESE: tuple[Rule, ...] = (
    rule(rf"{_MY}名前は{_THING}です", "の名前", text="{entity}は{object}という名前", **PERSON),
    rule(rf"{_MY}(?P<topic>犬|猫)の名前は{_THING}です", "の{topic}の名前",
         text="{entity}の{topic}の名前は{object}", **ANIMAL),
    rule(rf"{_ME}(?:今、?)?{_THING}に住んでい(?:ます|る)", "に住んでいる", text=_SAYS, **PLACE),
    rule(rf"(?:^|(?:私|僕|俺)は|に、?|、){_THING}(?:に|へ)引っ越し(?:ました|た)", "に住んでいる",
         text="{entity}は{object}に引っ越した", event=True, **PLACE),
    rule(rf"{_ME}{_THING}で働いてい(?:ます|る)", "で働いている", text=_SAYS, **ORGANISATION),
    rule(rf"{_ME}{_THING}アレルギー(?:です|なの|なんだ|なんです|があります|がある)", "のアレルギーがある", text=_SAYS),
    rule(rf"{_ME}{_THING}が(?:大)?好き(?:です|だ)?$", "が好き", text=_SAYS),
    rule(rf"{_ME}{_THING}が(?:大)?嫌い(?:です|だ)?$", "が嫌い", text=_SAYS),
    rule(rf"{_ME}{_THING}を話し(?:ます)", "を話す", text=_SAYS),
    rule(rf"{_ME}{_THING}を勉強してい(?:ます|る)", "を勉強している", text=_SAYS),
    rule(r"(?:^|から|に、|、)(?P<object>(?:(?!から)[^、。！？\s]){1,20}?)(?:に|へ)引っ越す(?:ことにし|予定|つもり)",
         "に引っ越す予定", text="{entity}は{object}に引っ越す予定"),
    rule(rf"(?:^|(?:私|僕|俺|うち)の){_THING}[はを]売(?:った|りました)", "を持っている",
         text="{entity}は{object}を売った", closes=True,
         event=True),
    rule(rf"{_ME}(?P<object>ベジタリアン|ビーガン|ヴィーガン)です", "の食生活", text="{entity}は{object}である"),
)  # fmt: skip
