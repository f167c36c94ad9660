"""What keeps a sentence, or the object found in it, from being believed: data, for all languages together."""

from __future__ import annotations

import re

from everkept.derive.offline.rule import NAME


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


NOT_MEANT = _pattern(
    r"\b(?:if|wish|would|could|might|maybe|perhaps|imagine|suppose|pretend|unless|hypothetically|used\sto|not\ssure|"
    r"I\s(?:think|guess|suppose|doubt)|almost|nearly|as\sthough|kidding|joking|"
    r"wenn|falls|würden?|könnten?|wäre|vielleicht|angenommen|ich\sglaube|fast|hätte|"
    r"se\s(?:eu|a|o|me)|talvez|gostaria|acho\sque|quase|ojalá|quizás?|si\s(?:yo|me)|tal\svez|creo\sque|casi)\b"
    r"|\b(?:he|she|they|friend|someone|people|everyone)\s(?:say|says|said|told|thinks?|claims?)\b"
    r"|\b(?:sagt|sagte|meint|meinte|behauptet|disse|diz|dijo|dice)\b"
    r"|もし|たら|なら|かもしれ|でしょう"
)
"""A sentence with one of these is a hypothesis, a doubt or somebody else's word: it says nothing of the speaker."""
SOMEBODY_ELSES = _pattern(
    r"(?:\b(?:who|that|did|do|does|when|whether|until|before|after|because|where|why|how|dass|ob|bis|bevor|que|quando|cuando)\s)$"
)
"""Before a clause: it hangs on another one, and may be neither stated nor present."""

ENDS_OBJECT = _pattern(
    r"\s(?:and|but|or|because|'cause|cause|since|when|while|so|where|which|who|whose|that|until|till|although|though|"
    r"as|after|before|if|even|especially|these\sdays|at\sthe\smoment|right\snow|now|too|again|as\swell|already|"
    r"any\s?more|lately|recently|not|instead|by\sthe\sway|altogether|though|tho|btw|lol|please|thanks|"
    r"so\smuch|so\sfar|a\slot|very\smuch|most\sof\sall|more\sthan|for\s(?:now|years|ages|(?:\w+\s){0,2}years)|"
    r"a\s(?:while|few|couple)\b.*?\b(?:ago|back)|(?:some|many|several|few)\s\w+\sago|the\sother\s(?:day|night|week)|"
    r"(?:every\s)?once\sin\sa\swhile|at\s(?:\d|noon|midnight|half)|for\s(?:the\spast|over|about|almost)|"
    r"with(?!\s(?-i:[A-Z]))|"
    r"und|aber|oder|weil|seit|jetzt|mit(?!\s(?-i:[A-Z]))|wieder|auch|nicht|um\s\d|gerade|dass|denn|"
    r"mas|ou|porque|desde|com(?!\s(?-i:[A-Z]))|agora|também|outra\svez|às\s\d|"
    r"y|o|pero|ahora|también|con(?!\s(?-i:[A-Z])))(?!\w).*$"
)
ENDS_NAME = _pattern(r"\s(?:with|mit|com|con|e|for|on|to)\s.*$")
"""After a place, an organisation or a person comes something else."""
LOOSE_END = _pattern(
    r"(?:^|\s)(?:in|on|at|from|for|to|of|with|by|the|a|an|am|im|um|den|vom|em|no|na|en|el|de|by|back\sin|early|late|just)$"
)
SPLITS_LIST = _pattern(r"\s*(?:,|\band\b|\bund\b|\be\b|\by\b)\s*")
NO_OBJECT = frozenset(
    "it that this them those these him her you me us there here one some something anything everything nothing what "
    "how to your his their the a an both all so when if es das dich dir isso isto ele ela você eso esto lo la él ella "
    "kein keine keinen wie was que nada".split()
)
"""Words that name nothing by themselves."""
POINTS_ELSEWHERE = _pattern(
    r"(?<![\w-])(?:I|I'\w+|me|my|mine|myself|we|us|our|ours|you|your|yours|yourself|it|its|it's|this|that|these|those|"
    r"them|they|they're|their|he|him|his|she|her|here|there|someone|somebody|something|anything|everything|stuff|"
    r"what|how|why|same|such|"
    r"ich|mir|mich|mein\w{0,2}|wir|uns|unser\w{0,2}|du|dich|dir|dein\w{0,2}|es|ihn|ihm|ihr\w{0,2}|sie|sein\w{0,2}|"
    r"dies\w{0,2}|jene\w|hier|dort|"
    r"eu|mim|meus?|minhas?|nós|nosso|nossa|tu|teu|tua|você|isso|isto|ele|ela|dele|dela|seu|sua|aqui|ali|lá|"
    r"yo|mí|mis?|nuestr\w+|tú|eso|esto|él|ella|aquí|allí)(?![\w-])"
)
"""Means whoever speaks, whoever is spoken to, or something said elsewhere: nothing that a sentence alone can say."""
OWN = re.compile(r"\b(?:my|our)\b", re.IGNORECASE)
"""In a plan, what is the speaker's becomes "their"."""
NOT_A_TASTE = _pattern(
    r"^(?:(?:all\s)?the\s(?-i:[a-z])|(?:is|are|was|were|so|more|being\s(?:around|with))\b|spending\stime$|"
    r"to\s(?:see|hear|know|have|be|get|think|help|learn|say|talk|chat|share|keep|stay|try|do|go)\b|"
    r"(?:working|seeing|hearing|talking|chatting|having|getting|being|knowing|watching|how|an?\sgood)\b)"
    r"|\b(?:idea|ideas|sound|sounds|vibe|vibes|look|looks|feeling|way|kind\sof|sort\sof|moments?|thing|things|part|"
    r"option|one|ones|approach|plan|answer|question|version|much|bit)\b"
)
NOT_A_DEED = _pattern(r"^(?:an?|the|my|our|his|her|their|this|bed|sleep|work|school|lunch|dinner|be|try|see|do|have\sto)\b")
NOT_A_PLACE = _pattern(
    r"^(?:an?|my|our|his|her|their|the\s(?-i:[a-z])|\d|ein\w{0,2}|um|uma|un|una)\b"
    r"|^(?-i:[a-z])(?!ao|á|a\s)[\w\s]*$|\b(?:area|place|house|flat|apartment|city|countryside|neighbou?rhood|town)$"
)
"""A flat, my dreams, the countryside: where one lives within a place, or no place at all."""
NOT_OWNED = _pattern(
    r"\b(?:coffee|tea|drinks?|beer|wine|bread|milk|snacks?|sandwich|pizza|burger|cake|meal|lunch|dinner|breakfast|"
    r"tickets?|gift|present|card|bit|lot|few|couple|bunch|ton|round|ice\scream|kaffee|bier|brot|ticket|karte|geschenk|"
    r"café|cerveja|pão|bilhete|presente|prenda|cerveza|pan|billete|regalo)\b"
)
"""Bought, and gone again."""
NOW = _pattern(r"\b(?:now|new|currently|jetzt|nun|neu\w{0,2}|agora|nov[oa]|ahora|nuev[oa]|trabajo\snuevo)\b|今")

LEADS_CORRECTION = _pattern(
    r"^\W*(?:no|nope|sorry|correction|actually|oops|i\smeant?|wait|nein|doch|korrektur|eigentlich|ich\smeinte|"
    r"não|correção|na\sverdade|aliás|quer(?:o|ia)?\sdizer|perdón|en\srealidad|corrección)\b|^(?:いや|違)"
)
NAMES_WRONG = _pattern(
    r",?\s(?:and\s|und\s|e\s|y\s)?(?:not|nicht|não|no)\s(?:in\s|at\s|to\s|bei\s|als\s|em\s|no\s|na\s|en\s)?"
    r"(?P<wrong>[\w\s'-]{2,40})$"
)
MEANT = _pattern(
    rf"\b(?:I\smeant?|ich\smein(?:t)?e|(?:eu\s)?qu(?:is|eria)\sdizer|quise\sdecir)\s(?P<object>{NAME}|[\w-]+)"
)
REWRITTEN: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^Herrn\b"), "Herr"),
    (re.compile(r"^(?:der|die|o|a|el|la)\s(?=(?:Herr|Frau|[Dd]ona|[Ss]enhora?|Doña|[A-ZÀ-Þ]))"), ""),
    (re.compile(r"'s$"), ""),
)
"""How a name reads where it is the subject of a sentence."""
