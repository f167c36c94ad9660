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
    r"|もし|たら|なら|かもしれ|でしょう"
)
"""A sentence with one of these is a hypothesis or a doubt: it says nothing of the speaker."""
A_CLAUSE_BEGINS = _pattern(
    r"(?:^|[,;:.()\-–—\"]|\b(?:and|but|so|because|'cause|cause|since|though|although|while|that|know|then|also|"
    r"honestly|normally|"
    r"personally|usually|generally|mostly|too|yeah|yes|well|oh|now|hey|except|today|yesterday|say|mention))\s*$"
)
"""Before "I like": anything else makes it a relative clause ("a job I enjoy")."""
RELATIVE = _pattern(r"^[\w\s'-]+?\s(?:that|who|which)\b")
JOINED = _pattern(r"^[\w'-]+(?:\s[\w'-]+)?\sand\s[\w'-]+(?:\s[\w'-]+){0,2}(?=$)")
"""Two things under one head ("action and sci-fi movies"), which make one object."""
REPORTED = _pattern(
    r"\b(?:he|she|they|friend|someone|people|everyone)\s(?:say|says|said|told|thinks?|claims?)\b"
    r"|\b(?:sagt|sagte|meint|meinte|behauptet|disse|diz|dijo|dice)\b"
)
"""Somebody else's word."""
SOMEBODY_ELSES = _pattern(
    r"(?:\b(?:who|that|did|do|does|when|whether|until|before|after|because|where|why|how|dass|ob|bis|bevor|que|"
    r"quando|cuando)\s)$"
)
"""Before a clause: it hangs on another one, and may be neither stated nor present."""

ENDS_OBJECT = _pattern(
    r"\s(?:and|but|or|because|'cause|cause|since|when|while|so|where|which|who|whose|that|until|till|although|though|"
    r"as|after|before|if|even|especially|these\sdays|at\sthe\smoment|right\snow|now|too|again|as\swell|already|"
    r"any\s?more|lately|recently|not|instead|by\sthe\sway|altogether|though|tho|btw|lol|please|thanks|"
    r"so\smuch|so\sfar|a\slot|very\smuch|to\s(?:help|get|make|be|improve|keep|relieve|relax|pay)\b|most\sof\sall|"
    r"more\sthan|for\s(?:now|years|ages|(?:\w+\s){0,2}years)|"
    r"a\s(?:while|few|couple)\b.*?\b(?:ago|back)|(?:some|many|several|few)\s\w+\sago|the\sother\s(?:day|night|week)|"
    r"(?:last|next|this)\s(?:mon|tues?|wed|thurs?|fri|sat|sun|weekend)|(?:on|at|over)\s(?:the\s)?weekend|(?:every|"
    r"each)\sday|"
    r"(?:every\s)?once\sin\sa\swhile|at\s(?:\d|noon|midnight|half)|for\s(?:the\spast|over|about|almost)|"
    r"with(?!\s(?-i:[A-Z])|\s\w+$)|"
    r"und|aber|oder|weil|seit|jetzt|mit(?!\s(?-i:[A-Z]))|wieder|auch|nicht|um\s\d|gerade|dass|denn|"
    r"mas|ou|porque|desde|com(?!\s(?-i:[A-Z]))|agora|também|outra\svez|às\s\d|"
    r"y|o|pero|ahora|también|con(?!\s(?-i:[A-Z])))(?!\w).*$"
)
ENDS_NAME = _pattern(r"\s(?:with|mit|com|con|e|for|on|to)\s.*$")
"""After a place, an organisation or a person comes something else."""
ENDS_GOODS = _pattern(r"\s(?:for|to|from|on|off|para|por|no|na|em|nas?|de\sum|für|von|bei|im|am)\s.*$")
"""After a thing that was bought or sold comes why, where or from whom."""
LOOSE_END = _pattern(
    r"(?:^|\s)(?:in|on|at|from|for|to|of|with|by|the|a|an|am|im|um|den|dem|vom|zum|em|no|na|en|el|de|ab|early|late|"
    r"just|"
    r"about|around|over|like|some|morning|afternoon|evening|night|itself|o|dia)$|^(?:also|then|evening|morning)\s"
)
SPLITS_LIST = _pattern(r"\s*(?:,|\band\b|\bund\b|\be\b|\by\b)\s*")
NO_OBJECT = frozenset(
    "it that this them those these him her you me us there here one some something anything everything nothing what "
    "how to your his their the a an both all so when if and but or because while again too now not "
    "es das dich dir isso isto ele ela você eso esto lo la él ella "
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
    r"(?:working|seeing|hearing|talking|chatting|having|getting|being|knowing|watching|how|an?\s(?:good|ton|lot)|"
    r"lots|every)\b)"
    r"|\b(?:idea|ideas|sound|sounds|vibe|vibes|look|looks|feeling|way|kind\sof|sort\sof|moments?|thing|things|part|"
    r"option|one|ones|approach|plan|answer|question|version|much|bit)\b"
)
NOT_A_DEED = _pattern(
    r"^(?:an?|the|my|our|his|her|their|this|bed|sleep|work|school|lunch|dinner|be|try|see|do|"
    r"have\sto)\b"
)
NOT_A_PLACE = _pattern(
    r"^(?:an?|my|our|his|her|their|the\s(?-i:[a-z])|\d|ein\w{0,2}|um|uma|un|una)\b"
    r"|^(?-i:[a-z])(?!ao|á|a\s)[\w\s]*$|(?-i:\b(?:area|place|house|flat|apartment|city|countryside|neighbou?rhood|"
    r"town)$)"
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
NOT_A_NAME = _pattern(
    r"^(?:(?-i:[a-zäöü])\w*$|(?:Yes|No|Oh|Hey|Hi|Wow|Well|OK|Okay|Who|What|Everyone|Everybody|Nobody|Someone|Somebody|"
    r"People|Kids|Life|God|There|Here|Mum|Mom|Dad|And|But|So|Then|My|Our|Your|The|Monday|Tuesday|Wednesday|Thursday|"
    r"Friday|Saturday|Sunday|January|February|March|April|June|July|August|September|October|November|December|"
    r"Also|Now|Today|Yesterday|Since|When|Das|Der|Die|Es|Er|Wir|Was|Wer|Man|Montag|Dienstag|Mittwoch|Donnerstag|"
    r"Freitag|Samstag|Sonntag|Urlaub|Geburtstag|Zeit|Gente|Ele|Ela|Hoje|Isso|Tudo)\b)"
)
"""Begins with a capital letter for another reason than being a name."""
