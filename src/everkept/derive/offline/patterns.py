"""What the deterministic extractor looks for: sentences of the first person, as data, for five languages.

A rule is precise before it is broad: what it matches must be a statement about the speaker. Predicates, and so the
sentences made of them, stay in the language in which they were said (D08).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from everkept.domain.facts import EntityType, FactKind

NAME = r"(?-i:[A-ZÀ-ÖØ-Þ][\w'’-]+(?:\s[A-ZÀ-ÖØ-Þ][\w'’-]+){0,2})"
REST = r"(?P<object>[^,;:!?()\"“”\n]+)"
ROLE = r"(?P<object>[^,;:!?()\"“”\n]+?)(?=\s(?:at|for|in|bei|na|no|en)\s|[,;]|$)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One kind of statement. Groups: `object`; `topic` fills the predicate; `who` is another entity."""

    pattern: re.Pattern[str]
    predicate: str
    """`{topic}` in it is replaced by that group."""
    says: str = ""
    """How the sentence puts it, where that differs from the predicate ("sold", "no longer lives in")."""
    object: str = ""
    """The object where the words are not it."""
    closes: bool = False
    event: bool = False
    """Tells of a change: a date in the sentence is its date. Of a state, only `since` and `until` are."""
    needs: str = ""
    """`since`, `until` or `on`: counts only together with such a date."""
    listed: bool = False
    """Several objects may be listed."""
    possessive: bool = False
    """Reads "Ana's <predicate> is <object>"."""
    verb_last: bool = False
    """Reads "<entity>は<object><predicate>"."""
    taste: bool = False
    """What is liked must be a thing of the world: not "the second option", not "to hear that"."""
    confidence: float = 0.9
    kind: FactKind = "literal"
    object_type: EntityType = "other"


def _rule(pattern: str, predicate: str, **fields: object) -> Rule:
    return Rule(pattern=re.compile(pattern, re.IGNORECASE), predicate=predicate, **fields)  # type: ignore[arg-type]


_ADV = r"(?:(?:currently|now|still|also|just|recently|actually|really|finally|absolutely|only|always|never did,?)\s)*"
_I = r"\bI\s" + _ADV
_IM = r"\bI(?:'m|\sam)\s" + _ADV
_IVE = r"\bI(?:'ve|\shave)?\s" + _ADV
_WE = r"\b(?:I|we)(?:'ve|\shave)?\s" + _ADV
_PET = "dog|cat|puppy|kitten|rabbit|horse|parrot|hamster"
_KIN = (
    "sister|brother|son|daughter|mother|father|mom|mum|dad|wife|husband|partner|girlfriend|boyfriend|cousin|"
    "best friend|boss"
)
_PERSON: dict[str, object] = {"kind": "entity", "object_type": "person"}
_PLACE: dict[str, object] = {"kind": "entity", "object_type": "place"}
_ORG: dict[str, object] = {"kind": "entity", "object_type": "organisation"}
_DIETS = "vegetarian|vegan|pescatarian|pescetarian|lactose intolerant|gluten-free|keto"

ENGLISH: tuple[Rule, ...] = (
    _rule(rf"\bmy\sname(?:'s|\sis)\s(?P<object>{NAME})", "is named", **_PERSON),
    _rule(rf"\b(?:please\s)?call\sme\s(?P<object>{NAME})", "prefers to be called"),
    _rule(rf"{_I}(?:live|reside)\sin\s{REST}", "lives in", **_PLACE),
    _rule(rf"{_IM}(?:living|based)\sin\s{REST}", "lives in", **_PLACE),
    _rule(rf"{_IVE}(?:lived|been\sliving)\sin\s{REST}", "lives in", needs="since", **_PLACE),
    _rule(rf"{_I}lived\sin\s{REST}", "lives in", says="lived in", needs="until", **_PLACE),
    _rule(rf"{_WE}(?:moved|relocated)\s(?:back\s)?(?:from\s[\w\s]+?\s)?to\s(?P<object>{NAME})", "lives in",
          says="moved to", event=True, **_PLACE),
    _rule(rf"{_I}work\s(?:at|for)\s{REST}", "works at", **_ORG),
    _rule(rf"{_IM}working\s(?:at|for)\s{REST}", "works at", **_ORG),
    _rule(rf"{_IVE}(?:started|got|began|accepted|took|landed)\s(?:a|my)\s(?:new\s)?(?:job|position|role)\s(?:at|with)\s{REST}",
          "works at", event=True, **_ORG),
    _rule(rf"{_IVE}(?:started|began)\sworking\s(?:at|for)\s{REST}", "works at", event=True, **_ORG),
    _rule(rf"{_I}work\sas\s(?:an?\s)?{ROLE}", "works as"),
    _rule(rf"{_IM}working\sas\s(?:an?\s)?{ROLE}", "works as"),
    _rule(rf"{_IM}(?:\w+ly\s)?allergic\sto\s{REST}", "is allergic to", listed=True),
    _rule(rf"{_I}(?:love|like|enjoy|adore)\s{REST}", "likes", taste=True),
    _rule(rf"{_I}(?:hate|dislike|detest|can't\sstand|cannot\sstand|don't\slike|do\snot\slike)\s{REST}",
          "dislikes", taste=True),
    _rule(rf"\bmy\s(?:all-time\s)?favou?rite\s(?P<topic>[\w\s]{{2,25}}?)\s(?:is|are)\s{REST}",
          "favourite {topic}", possessive=True),
    _rule(rf"\b(?:I|we)(?:'ve)?\s(?:have|got|adopted)\s(?:an?\s)?(?:[\w-]+\s){{0,3}}?(?P<topic>{_PET})\s(?:named|called)\s(?P<object>{NAME})",
          "has {topic} named", kind="entity", object_type="animal"),
    _rule(rf"\bmy\s(?P<topic>{_PET})(?:'s\sname\sis|\sis\s(?:named|called)|,)?\s(?P<object>{NAME})",
          "has {topic} named",
          kind="entity", object_type="animal"),
    _rule(rf"\b(?:I|we)(?:'ve)?\s(?:have|got)\s(?:an?\s)?(?:[\w-]+\s){{0,2}}?(?P<topic>{_KIN}|baby|child)\s(?:named|called)\s(?P<object>{NAME})",
          "has {topic} named", **_PERSON),
    _rule(rf"\bmy\s(?P<topic>{_KIN})(?:'s\sname\sis|\sis\s(?:named|called)|,)?\s(?P<object>{NAME})",
          "has {topic} named", **_PERSON),
    _rule(rf"\bmy\s(?:{_KIN})\s(?P<who>{NAME})\s(?:lives|is\sliving)\sin\s{REST}", "lives in", **_PLACE),
    _rule(rf"\bmy\s(?:{_KIN})\s(?P<who>{NAME})\s(?:works|is\sworking)\s(?:at|for)\s{REST}", "works at", **_ORG),
    _rule(rf"\bmy\s(?:{_KIN})\s(?P<who>{NAME})\s(?:just\s)?moved\sto\s(?P<object>{NAME})",
          "lives in", says="moved to",
          event=True, **_PLACE),
    _rule(rf"{_IM}married\sto\s(?P<object>{NAME})", "is married to", **_PERSON),
    _rule(rf"{_IM}engaged\sto\s(?P<object>{NAME})", "is engaged to", **_PERSON),
    _rule(rf"{_IM}(?P<object>married|engaged|single|divorced|widowed)\b(?!\sto\b)",
          "relationship status", possessive=True),
    _rule(rf"{_WE}got\s(?P<object>married|engaged|divorced)\b", "relationship status", event=True, possessive=True),
    _rule(rf"{_IM}(?:dating|seeing|in\sa\srelationship\swith)\s(?P<object>{NAME})", "is together with", **_PERSON),
    _rule(r"\bmy\sbirthday\sis\s(?:on\s)?(?P<object>[\w\s]+)", "has birthday on"),
    _rule(rf"{_IM}(?P<object>\d{{1,3}})\s(?:years\sold|years\sof\sage)", "is aged"),
    _rule(rf"{_I}(?:turned|turn)\s(?P<object>\d{{1,3}})\b", "is aged", says="turned", event=True),
    _rule(rf"{_IM}(?:an?\s)?(?P<object>{_DIETS})\b(?!\s(?:any\s?more|restaurant|place|cafe))", "follows the diet"),
    _rule(rf"{_IVE}(?:went|gone|became|become|turned)\s(?P<object>{_DIETS})\b", "follows the diet", event=True),
    _rule(rf"\bI(?:\scan)?\s{_ADV}speak\s(?:fluent\s)?{REST}", "speaks", listed=True),
    _rule(rf"{_IM}studying\s{REST}", "studies"),
    _rule(rf"{_I}study\s{REST}", "studies"),
    _rule(rf"{_I}own\s(?:an?\s){REST}", "owns"),
    _rule(rf"{_IVE}(?:bought|purchased)\s(?:an?\s|my\s(?:own|first)\s){REST}", "owns", says="bought", event=True),
    _rule(rf"{_I}play\s(?:the\s)?{REST}", "plays"),
    _rule(rf"{_IM}(?:going\sto|gonna)\s{REST}", "plans to", event=True, needs="on", confidence=0.7),
    _rule(rf"{_IM}(?:planning|hoping)\sto\s{REST}", "plans to", event=True, confidence=0.7),
    _rule(rf"\bplease\salways\s{REST}", "asks to always", confidence=0.8),
    _rule(rf"\bplease\s(?:never|don't\sever)\s{REST}", "asks to never", confidence=0.8),
    _rule(rf"{_I}prefer\s{REST}", "prefers", confidence=0.8),
    _rule(rf"{_WE}sold\s(?:my|our|the)\s{REST}", "owns", says="sold", closes=True, event=True),
    _rule(rf"{_I}no\slonger\slive\sin\s{REST}", "lives in", says="no longer lives in", closes=True, event=True),
    _rule(rf"{_I}(?:don't|do\snot)\slive\sin\s(?P<object>[^,;]+?)\sany\s?more", "lives in", says="no longer lives in",
          closes=True, event=True),
    _rule(rf"{_I}no\slonger\swork\s(?:at|for)\s{REST}",
          "works at", says="no longer works at", closes=True, event=True),
    _rule(rf"{_I}(?:don't|do\snot)\swork\s(?:at|for)\s(?P<object>[^,;]+?)\sany\s?more",
          "works at", says="no longer works at",
          closes=True, event=True),
    _rule(rf"{_IVE}(?:left|quit|lost)\s(?:my\sjob\s(?:at|with)|working\s(?:at|for))\s{REST}", "works at",
          says="no longer works at", closes=True, event=True),
    _rule(rf"{_IVE}(?:left|quit|lost)\smy\s(?P<object>job)\b(?!\s(?:at|with)\b)",
          "works at", says="left the", closes=True, event=True),
    _rule(rf"{_I}broke\sup\swith\s(?P<object>{NAME})",
          "is together with", says="broke up with", closes=True, event=True),
    _rule(rf"{_WE}(?:broke|split|have\sbroken)\sup\b(?!\swith\s)", "is together with", says="broke up with the",
          object="partner", closes=True, event=True),
    _rule(rf"{_IM}(?:not|no\slonger)\s(?:an?\s)?(?P<object>{_DIETS})(?:\sany\s?more)?", "follows the diet",
          says="is no longer", closes=True, event=True),
)  # fmt: skip

GERMAN: tuple[Rule, ...] = (
    _rule(rf"\bich\sheiße\s(?P<object>{NAME})", "heißt", **_PERSON),
    _rule(rf"\bmein\sname\sist\s(?P<object>{NAME})", "heißt", **_PERSON),
    _rule(rf"\bich\s(?:wohne|lebe)\s(?:jetzt\s|seit\s(?:\d{{4}}|\w+\s\d{{4}})\s)?in\s(?P<object>{NAME})",
          "wohnt in", **_PLACE),
    _rule(rf"\bich\sbin\s(?:[\w\s]+?\s)?nach\s(?P<object>{NAME})\s(?:um)?gezogen",
          "wohnt in", says="ist gezogen nach",
          event=True, **_PLACE),
    _rule(rf"\bich\sarbeite\s(?:jetzt\s)?bei\s(?P<object>{NAME})", "arbeitet bei", **_ORG),
    _rule(rf"\bich\sarbeite\s(?:jetzt\s)?als\s{ROLE}", "arbeitet als"),
    _rule(rf"\bich\sbin\sallergisch\sgegen\s{REST}", "ist allergisch gegen", listed=True),
    _rule(rf"\bich\s(?:mag|liebe)\s(?!nicht\b|es\b|dich\b|kein){REST}", "mag"),
    _rule(rf"\bich\shasse\s{REST}", "mag nicht"),
    _rule(rf"\bich\sspreche\s{REST}", "spricht", listed=True),
    _rule(r"\bich\sbin\s(?P<object>vegetarier(?:in)?|veganer(?:in)?|vegan|vegetarisch)\b", "ernährt sich"),
    _rule(rf"\bmein(?:e)?\s(?P<topic>hund|katze|sohn|tochter|schwester|bruder|frau|mann)\s(?:heißt\s)?(?P<object>{NAME})",
          "hat {topic}", kind="entity"),
    _rule(r"\bich\shabe\smein(?:e|en)?\s(?P<object>[\w\s-]+?)\sverkauft",
          "besitzt", says="hat verkauft:", closes=True, event=True),
    _rule(rf"\bich\swohne\snicht\smehr\sin\s(?P<object>{NAME})",
          "wohnt in", says="wohnt nicht mehr in", closes=True, event=True),
    _rule(rf"\bich\sarbeite\snicht\smehr\sbei\s(?P<object>{NAME})", "arbeitet bei", says="arbeitet nicht mehr bei",
          closes=True, event=True),
)  # fmt: skip

PORTUGUESE: tuple[Rule, ...] = (
    _rule(rf"\b(?:o\s)?meu\snome\sé\s(?P<object>{NAME})", "se chama", **_PERSON),
    _rule(rf"\b(?:eu\s)?me\schamo\s(?P<object>{NAME})", "se chama", **_PERSON),
    _rule(rf"(?:^|\beu\s)(?:moro|vivo)\s(?:em|no|na)\s(?P<object>{NAME})", "mora em", **_PLACE),
    _rule(rf"\b(?:eu\s)?me\smudei\s(?:[\w\s]+?\s)?para\s(?:o\s|a\s)?(?P<object>{NAME})",
          "mora em", says="mudou-se para", event=True, **_PLACE),
    _rule(rf"(?:^|\beu\s)trabalho\s(?:na|no|em)\s(?P<object>{NAME})", "trabalha em", **_ORG),
    _rule(rf"(?:^|\beu\s)trabalho\scomo\s{ROLE}", "trabalha como"),
    _rule(rf"\bsou\salérgic[oa]\sa\s{REST}", "é alérgico a", listed=True),
    _rule(rf"(?:^|\beu\s)(?:gosto\sde|adoro|amo)\s{REST}", "gosta de"),
    _rule(rf"(?:^|\beu\s)(?:não\sgosto\sde|odeio|detesto)\s{REST}", "não gosta de"),
    _rule(rf"(?:^|\beu\s)falo\s{REST}", "fala", listed=True),
    _rule(r"\bsou\s(?P<object>vegetarian[oa]|vegan[oa])\b", "dieta"),
    _rule(r"\b(?:o\smeu|a\sminha|meu|minha)\s(?P<topic>cachorro|cão|gata|gato|filho|filha|irmã|irmão|marido|esposa|mulher)\s"
          rf"(?:se\schama\s|chama-se\s)?(?P<object>{NAME})", "tem {topic}", kind="entity"),
    _rule(rf"(?:^|\beu\s)vendi\s(?:o\smeu|a\sminha|meu|minha|o|a)\s{REST}",
          "tem", says="vendeu", closes=True, event=True),
    _rule(rf"\bnão\s(?:moro|vivo)\smais\s(?:em|no|na)\s(?P<object>{NAME})",
          "mora em", says="não mora mais em", closes=True, event=True),
    _rule(rf"\bnão\strabalho\smais\s(?:em|no|na)\s(?P<object>{NAME})",
          "trabalha em", says="não trabalha mais em", closes=True, event=True),
)  # fmt: skip

SPANISH: tuple[Rule, ...] = (
    _rule(rf"\bmi\snombre\ses\s(?P<object>{NAME})", "se llama", **_PERSON),
    _rule(rf"\bme\sllamo\s(?P<object>{NAME})", "se llama", **_PERSON),
    _rule(rf"(?:^|\byo\s)vivo\sen\s(?P<object>{NAME})", "vive en", **_PLACE),
    _rule(rf"\bme\smudé\s(?:[\w\s]+?\s)?a\s(?P<object>{NAME})", "vive en", says="se mudó a", event=True, **_PLACE),
    _rule(rf"(?:^|\byo\s)trabajo\s(?:en|para)\s(?P<object>{NAME})", "trabaja en", **_ORG),
    _rule(rf"(?:^|\byo\s)trabajo\scomo\s{ROLE}", "trabaja como"),
    _rule(rf"\bsoy\salérgic[oa]\sa\s{REST}", "es alérgico a", listed=True),
    _rule(rf"(?<!no\s)\bme\s(?:gusta|gustan|encanta|encantan)\s{REST}", "le gusta"),
    _rule(rf"\b(?:no\sme\sgustan?|odio|detesto)\s{REST}", "no le gusta"),
    _rule(rf"(?:^|\byo\s)hablo\s{REST}", "habla", listed=True),
    _rule(r"\bsoy\s(?P<object>vegetarian[oa]|vegan[oa])\b", "dieta"),
    _rule(rf"\bmi\s(?P<topic>perro|gato|gata|hijo|hija|hermana|hermano|marido|esposa|mujer)\s(?:se\sllama\s)?(?P<object>{NAME})",
          "tiene {topic}", kind="entity"),
    _rule(rf"\bvendí\s(?:mi|el|la)\s{REST}", "tiene", says="vendió", closes=True, event=True),
    _rule(rf"\bya\sno\svivo\sen\s(?P<object>{NAME})", "vive en", says="ya no vive en", closes=True, event=True),
    _rule(rf"\bya\sno\strabajo\s(?:en|para)\s(?P<object>{NAME})",
          "trabaja en", says="ya no trabaja en", closes=True, event=True),
)  # fmt: skip

_JA = r"(?P<object>[^、。！？\s\"「」はがをにで]{1,20})"
_ME = r"(?:^|(?:私|僕|俺|わたし)は、?)"
JAPANESE: tuple[Rule, ...] = (
    _rule(rf"(?:私の)?名前は{_JA}です", "の名前", says="という名前", verb_last=True, **_PERSON),
    _rule(rf"{_ME}(?:今、?)?{_JA}に住んでい(?:ます|る)", "に住んでいる", verb_last=True, **_PLACE),
    _rule(rf"(?:^|(?:私|僕|俺)は|に、?|、){_JA}(?:に|へ)引っ越し(?:ました|た)",
          "に住んでいる", says="に引っ越した", verb_last=True, event=True, **_PLACE),
    _rule(rf"{_ME}{_JA}で働いてい(?:ます|る)", "で働いている", verb_last=True, **_ORG),
    _rule(rf"{_ME}{_JA}アレルギー(?:です|があります|がある)", "のアレルギーがある", verb_last=True),
    _rule(rf"{_ME}{_JA}が(?:大)?好き(?:です|だ)?$", "が好き", verb_last=True),
    _rule(rf"{_ME}{_JA}が(?:大)?嫌い(?:です|だ)?$", "が嫌い", verb_last=True),
    _rule(rf"{_ME}{_JA}を話し(?:ます)", "を話す", verb_last=True),
    _rule(rf"{_ME}{_JA}を勉強してい(?:ます|る)", "を勉強している", verb_last=True),
    _rule(rf"{_ME}(?P<object>ベジタリアン|ビーガン|ヴィーガン)です", "の食生活", says="である", verb_last=True),
)  # fmt: skip

RULES: tuple[Rule, ...] = (*ENGLISH, *GERMAN, *PORTUGUESE, *SPANISH, *JAPANESE)

NOT_MEANT = re.compile(
    r"\b(?:if|wish|would|could|might|maybe|perhaps|imagine|suppose|pretend|unless|hypothetically|used\sto|not\ssure|"
    r"I\s(?:think|guess|suppose|doubt)|wenn|falls|würde|könnte|vielleicht|angenommen|se\seu|talvez|gostaria|ojalá|quizás?|si\syo|tal\svez)\b"
    r"|\b(?:he|she|they|friend|someone|people)\s(?:say|says|said|told|thinks?|claims?)\b|もし|たら|なら|かもしれ|でしょう",
    re.IGNORECASE,
)
"""A sentence with one of these is a hypothesis, a doubt or somebody else's word: it says nothing of the speaker."""

ENDS_OBJECT = re.compile(
    r"\s(?:and|but|because|since|with|when|while|so|where|which|who|that|until|till|although|though|as|after|before|if|"
    r"these\sdays|at\sthe\smoment|right\snow|now|too|again|as\swell|already|any\s?more|lately|not|instead|by\sthe\sway|"
    r"und|aber|weil|seit|jetzt|mit|mas|porque|desde|com|agora|y|pero|ahora|con)\b.*$",
    re.IGNORECASE | re.DOTALL,
)
SPLITS_LIST = re.compile(r"\s*(?:,|\band\b|\bund\b|\be\b|\by\b)\s*")
NO_OBJECT = frozenset(
    "it that this them those these him her you me us there here one some something anything everything nothing what "
    "how to your his their the a an es das dich dir isso isto ele ela você eso esto lo la él ella".split()
)
"""Words that name nothing by themselves."""
NOT_A_TASTE = re.compile(
    r"^(?:(?:all\s)?the\s(?-i:[a-z])|(?:is|are|was|were|so|more|being\s(?:around|with))\b|spending\stime$|to\s(?:see|hear|know|have|be|get|think|help|learn)\b|(?:working|seeing|hearing)\b)",
    re.IGNORECASE,
)
NOT_A_DEED = re.compile(r"^(?:an?|the|my|our|his|her|their|this|bed|sleep|work|school|lunch|dinner)\b", re.IGNORECASE)
NOT_A_PLACE = re.compile(r"^(?:an?|my|our|his|her|their|the\s(?-i:[a-z]))\b", re.IGNORECASE)
"""A flat, my dreams, the countryside: where one lives within a place, or no place at all."""
LEADS_CORRECTION = re.compile(r"^\W*(?:no|nope|sorry|correction|actually|oops|i\smeant?|wait)\b", re.IGNORECASE)
NAMES_WRONG = re.compile(r",?\s(?:and\s)?not\s(?:in\s|at\s|to\s)?(?P<wrong>[\w\s'-]{2,40})$", re.IGNORECASE)
MEANT = re.compile(rf"\bI\smeant?\s(?P<object>{NAME}|[\w-]+)", re.IGNORECASE)
