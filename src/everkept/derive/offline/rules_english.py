"""English sentences that say something durable of the speaker, or of somebody the speaker names."""

from __future__ import annotations

from everkept.derive.offline.rule import (
    ANIMAL,
    NAME,
    ONE_NAME,
    ORGANISATION,
    PERSON,
    PLACE,
    PLAN,
    REST,
    ROLE,
    Rule,
    rule,
)

_ADV = (
    r"(?:(?:currently|now|still|also|just|recently|actually|really|finally|absolutely|only|always|totally|mostly|"
    r"honestly|personally|officially|already|both)\s)*"
)
_I = r"\bI\s" + _ADV
_IM = r"\bI(?:'m|\sam)\s" + _ADV
_IVE = r"\bI(?:'ve|\shave)?\s" + _ADV
_WE = r"\b(?:I|we)(?:'ve|\shave)?\s" + _ADV
_A = r"(?P<object>an?\s[^,;:!?()\"–—\n]+)"
_CLAUSE = r"(?:^|[,;:]\s|\b(?:and|but|so|also|that)\s)"

_PET = "dog|cat|puppy|kitten|rabbit|horse|parrot|hamster|tortoise|guinea pig"
_RELATIVE = (
    "sister|brother|son|daughter|mother|father|mom|mum|dad|wife|husband|partner|girlfriend|boyfriend|fiancée?|cousin|"
    "nephew|niece|aunt|uncle|grandmother|grandfather|grandma|grandpa|granddaughter|grandson|stepson|stepdaughter"
)
_KIN = (
    rf"{_RELATIVE}|friend|boss|manager|flatmate|roommate|housemate|neighbou?r|colleague|co-?worker|landlord|landlady|"
    "therapist|dentist|doctor|teacher|coach|supervisor"
)
_CLOSE = r"(?:(?:older|younger|elder|little|big|oldest|youngest|eldest|twin|best|good|close|old|new|dear)\s)*"
_ASIDE = r",(?=\s[\w'-]+(?:,|$|\s(?:is|has|lives|works)))"
_PARENT = "mum|mom|dad|mother|father|grandma|grandpa|granny"
_KIN_HERE = rf"(?:{_CLAUSE}(?:my\s{_CLOSE}(?P<kin>{_RELATIVE}|{_PET}|kids|children)|(?P<who>{ONE_NAME})))"
_PARENT_HERE = r"(?:^|[,;:]\s|\band\s)(?P<kin>(?-i:Mum|Mom|Dad|Grandma|Grandpa|Granny))"
_NUMBER = r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
_DIETS = "vegetarian|vegan|pescatarian|pescetarian|lactose[\\s-]intolerant|gluten[\\s-]intolerant|gluten-free|keto"
_JOB = (
    r"(?:\w+\s){0,2}?(?:nurse|doctor|teacher|engineer|developer|programmer|designer|architect|lawyer|accountant|"
    r"student|artist|musician|writer|journalist|photographer|chef|cook|baker|carpenter|electrician|plumber|mechanic|"
    r"driver|pilot|scientist|researcher|professor|librarian|social worker|counsell?or|therapist|psychologist|dentist|"
    r"vet|pharmacist|midwife|paramedic|firefighter|police officer|translator|consultant|freelancer)"
)
_ILLNESS = (
    r"(?:(?:mild|severe|chronic|type\s[12])\s)?(?:asthma|diabetes|migraines?|coeliac\sdisease|celiac\sdisease|"
    r"arthritis|"
    r"epilepsy|ADHD|high\sblood\spressure|hay\sfever|insomnia|tinnitus|anxiety|depression|eczema|endometriosis)"
)
_CONDITION = "pregnant|retired|diabetic|asthmatic|deaf|blind|colou?r-?blind|left-handed|autistic|unemployed"
_HOBBY = (
    "learning|playing|practi[sc]ing|studying|training|running|swimming|climbing|dancing|painting|knitting|singing|"
    "cycling|hiking|drawing|gardening|baking|pottery|yoga|pilates|volunteering|fencing|rowing|boxing|karate|judo|"
    r"meditating|journaling|bouldering|surfing|woodworking|crocheting|smoking|drinking|eating\smeat"
)
_THING = (
    "car|bike|bicycle|e-bike|phone|laptop|computer|camera|guitar|piano|violin|keyboard|house|flat|apartment|motorbike|"
    "van|boat|tent|sofa|bed|desk|oven|telescope|puppy|dog|cat|kitten"
)
_CLUB = "choir|club|team|band|gym|class|course|group|orchestra|committee|society|union|league"
_OCCASION = (
    "appointment|interview|exam|meeting|party|check-?up|surgery|operation|concert|wedding|test|recital|flight|"
    "presentation|workshop|conference|audition|reunion|trip|race|marathon|tournament|date|scan|course"
)
_GOING = (
    ("going(?=\\s(?!to\\s(?!the\\b|an?\\b|(?-i:[A-Z]))))", "go "), ("flying", "fly "), ("travell?ing", "travel "),
    ("driving", "drive "),
    ("visiting", "visit "), ("moving", "move "), ("meeting", "meet "), ("leaving", "leave "), ("hosting", "host "),
    ("starting", "start "), ("attending", "attend "), ("taking", "take "), ("running", "run "),
)  # fmt: skip

_WHO_AND_WHERE: tuple[Rule, ...] = (
    rule(rf"\bmy\sname(?:'s|\sis)\s(?P<object>{NAME})", "is named", **PERSON),
    rule(rf"\b(?:please\s)?call\sme\s(?P<object>{ONE_NAME})", "prefers to be called"),
    rule(rf"{_I}(?:live|reside)\sin\s{REST}", "lives in", **PLACE),
    rule(rf"{_IM}(?:living|based)\sin\s{REST}", "lives in", **PLACE),
    rule(rf"{_IVE}(?:lived|been\sliving)\sin\s{REST}", "lives in", needs="since", **PLACE),
    rule(rf"{_I}lived\sin\s{REST}", "lives in", text="{entity} lived in {object}", needs="until", **PLACE),
    rule(rf"{_WE}(?:moved|relocated)\s(?:back\s)?(?:from\s[\w\s]+?\s)?to\s(?P<object>{NAME})", "lives in",
         text="{entity} moved to {object}", event=True, **PLACE),
    rule(rf"\b(?:my|our)\s(?:new\s)?(?:flat|apartment|house|place|home|address)\sis\s(?:in|at|on)\s(?P<object>"
         rf"(?:\d+\w?\s)?{NAME}(?:\s\d+\w?)?)",
         "has address", text="{entity} has a home in {object}", **PLACE),
    rule(rf"{_I}grew\sup\sin\s(?P<object>{NAME})", "grew up in", **PLACE),
    rule(rf"{_I}was\sborn\sin\s(?P<object>{NAME})", "was born in", **PLACE),
    rule(rf"{_IM}(?:originally\s)?from\s(?P<object>{NAME})", "is from", **PLACE),
    rule(r"\bmy\sbirthday\sis\s(?:on\s)?(?P<object>[\w\s]+)", "has birthday on",
         text="{entity}'s birthday is {object}"),
    rule(rf"\bmy\s{_CLOSE}(?P<kin>{_RELATIVE})'s\sbirthday\sis\s(?:on\s)?(?P<object>[\w\s]+)", "has birthday on",
         text="{entity}'s birthday is {object}"),
    rule(rf"{_IM}(?P<object>\d{{1,3}})\s(?:years\sold|years\sof\sage)",
         "is aged", text="{entity} is {object} years old"),
    rule(rf"{_I}(?:just\s)?(?:turned|turn)\s(?P<object>\d{{1,3}})\b", "is aged", text="{entity} turned {object}",
         event=True),
)  # fmt: skip

_WORK: tuple[Rule, ...] = (
    rule(rf"{_I}work\s(?:at|for)\s{REST}", "works at", **ORGANISATION),
    rule(rf"{_IM}working\s(?:at|for)\s{REST}", "works at", **ORGANISATION),
    rule(rf"(?:{_I}work|{_IM}working)\sas\s[^,;:]+?\s(?:at|for)\s{REST}", "works at", beside=True, **ORGANISATION),
    rule(rf"{_IVE}(?:started|got|began|accepted|took|landed)\s(?:a|my)\s(?:new\s)?(?:job|position|role)\s(?:at|"
         rf"with)\s{REST}",
         "works at", event=True, **ORGANISATION),
    rule(rf"{_IVE}(?:started|began)\sworking\s(?:at|for)\s{REST}", "works at", event=True, **ORGANISATION),
    rule(rf"(?:{_I}start|{_IM}starting)\s(?:work\s|working\s|a\snew\sjob\s)?at\s(?P<object>(?:the\s)?{NAME})",
         "works at",
         text="{entity} starts at {object}", event=True, needs="on", **ORGANISATION),
    rule(rf"(?:{_I}work|{_IM}working)\sas\s{ROLE}", "works as", now_replaces=True),
    rule(rf"{_IM}(?P<object>an?\s{_JOB})(?=\s(?:at|in|for|from|by|and|but|on)\b|$|,)", "works as",
         text="{entity} is {object}", now_replaces=True),
    rule(rf"{_I}(?:gave|handed\sin)\s(?:my\s)?notice\sat\s(?P<object>(?:the\s)?{NAME})", "gave notice at", event=True,
         **ORGANISATION),
    rule(rf"{_I}(?:work|share\s(?:shifts|an?\soffice|a\sdesk))\swith\s(?:an?\s[\w\s]+?\s(?:called|named)\s)?"
         rf"(?P<object>{ONE_NAME})",
         "works with", **PERSON),
    rule(rf"{_CLAUSE}(?:the|our|my)\s(?P<object>(?:\w+\s)?(?:nurse|manager|boss|director|teacher|coach|lead|"
         rf"supervisor))\sis\s(?:called|named)\s(?P<who>{NAME})",
         "is", text="{entity} is the {object}"),
    rule(rf"{_I}no\slonger\swork\s(?:at|for)\s{REST}", "works at", text="{entity} no longer works at {object}",
         closes=True, event=True, **ORGANISATION),
    rule(rf"{_I}(?:don't|do\snot)\swork\s(?:at|for)\s(?P<object>[^,;]+?)\sany\s?more", "works at",
         text="{entity} no longer works at {object}", closes=True, event=True, **ORGANISATION),
    rule(rf"{_IVE}(?:left|quit|lost)\s(?:my\sjob\s(?:at|with)|working\s(?:at|for))\s{REST}", "works at",
         text="{entity} no longer works at {object}", closes=True, event=True, **ORGANISATION),
    rule(rf"{_IVE}(?:left|quit|lost)\smy\s(?P<object>job)\b(?!\s(?:at|with)\b)", "works at",
         text="{entity} no longer has the job", closes=True, event=True),
)  # fmt: skip

_PEOPLE: tuple[Rule, ...] = (
    rule(rf"\b(?:I|we)(?:'ve)?\s(?:have|got|adopted)\s(?:an?\s)?(?:[\w-]+\s){{0,3}}?(?P<topic>{_PET})\s(?:named|"
         rf"called)\s(?P<object>{ONE_NAME})",
         "has {topic} named", text="{entity} has a {topic} named {object}", **ANIMAL),
    rule(rf"\b(?:my|our)\s{_CLOSE}(?P<topic>{_PET})(?:'s\sname\sis|\sis\s(?:named|called)|{_ASIDE})?\s"
         rf"(?P<object>{ONE_NAME})",
         "has {topic} named", text="{entity} has a {topic} named {object}", names=True, **ANIMAL),
    rule(rf"\b(?:I|we)(?:'ve)?\s(?:have|got)\s(?:an?\s)?(?:[\w-]+\s){{0,2}}?(?P<topic>{_KIN}|baby|child)\s(?:named|"
         rf"called)\s(?P<object>{ONE_NAME})",
         "has {topic} named", text="{entity} has {an} {topic} named {object}", **PERSON),
    rule(rf"\b(?:my|our)\s{_CLOSE}(?P<topic>{_KIN})(?:'s\sname\sis|\sis\s(?:named|called)|{_ASIDE})?\s(?P<object>"
         rf"(?:(?:Mr|Mrs|Ms|Dr)\.?\s)?{ONE_NAME})",
         "has {topic} named", text="{entity} has {an} {topic} named {object}", names=True, **PERSON),
    rule(rf"{_CLAUSE}(?P<object>{ONE_NAME})\sis\smy\s{_CLOSE}(?P<topic>{_KIN}|{_PET})\b", "has {topic} named",
         text="{entity} has {an} {topic} named {object}", names=True, **PERSON),
    rule(rf"\bmy\s{_CLOSE}(?:{_KIN})\s(?P<who>{ONE_NAME})\s(?:lives|is\sliving)\sin\s{REST}", "lives in", **PLACE),
    rule(rf"\bmy\s{_CLOSE}(?P<kin>{_RELATIVE})\s(?:lives|is\sliving)\sin\s{REST}", "lives in", **PLACE),
    rule(rf"\bmy\s{_CLOSE}(?:{_KIN})\s(?P<who>{ONE_NAME})\s(?:works|is\sworking)\s(?:at|for)\s{REST}",
         "works at", **ORGANISATION),
    rule(rf"\bmy\s{_CLOSE}(?P<kin>{_RELATIVE})\s(?:works|is\sworking)\s(?:at|for)\s{REST}", "works at", **ORGANISATION),
    rule(rf"\bmy\s{_CLOSE}(?:{_KIN})\s(?P<who>{ONE_NAME})\s(?:works|is\sworking)\sas\s{ROLE}", "works as"),
    rule(rf"\bmy\s{_CLOSE}(?P<kin>{_RELATIVE})\s(?:works|is\sworking)\sas\s{ROLE}", "works as"),
    rule(rf"\bmy\s{_CLOSE}(?:{_KIN})\s(?P<who>{ONE_NAME})\s(?:just\s)?moved\sto\s(?P<object>{NAME})", "lives in",
         text="{entity} moved to {object}", event=True, **PLACE),
    rule(rf"\bmy\s{_CLOSE}(?:{_KIN})\s(?P<who>{ONE_NAME})\b[^.;]*?\s(?:with|and)\s(?:her|his)\s(?:husband|wife)\s"
         rf"(?P<object>{ONE_NAME})",
         "is married to", **PERSON),
    rule(rf"\bmy\s{_CLOSE}(?:{_KIN})\s(?P<who>{ONE_NAME})\s(?:[^.;,]*?\band\s(?:s?he)\s)?is\s"
         rf"(?P<object>{_CONDITION})\b",
         "is"),
    rule(rf"\bmy\s{_CLOSE}(?P<kin>{_RELATIVE})\sis\s(?P<object>{_CONDITION})\b", "is"),
    rule(rf"\bmy\s{_CLOSE}(?:{_KIN})\s(?P<who>{ONE_NAME})\s(?:is|turned)\s(?P<object>{_NUMBER})(?=\s(?:and|years|"
         rf"now|but|today)\b|$|,)",
         "is aged", text="{entity} is {object} years old"),
    rule(rf"\bmy\s{_CLOSE}(?P<kin>{_RELATIVE})\s(?:is|turned)\s(?P<object>{_NUMBER})(?=\s(?:and|years|now|but)\b|$|,)",
         "is aged", text="{entity} is {object} years old"),
    rule(rf"\b(?:I|we)\shave\s(?P<object>{_NUMBER}\s(?:young\s|little\s|grown\s|older\s|younger\s)?(?:kids|children|"
         rf"sons|daughters|brothers|sisters|siblings|cats|dogs))\b",
         "has"),
    rule(rf"{_IM}married\sto\s(?P<object>{ONE_NAME})", "is married to", **PERSON),
    rule(rf"{_IM}engaged\sto\s(?P<object>{ONE_NAME})", "is engaged to", **PERSON),
    rule(rf"{_IM}(?P<object>married|engaged|single|divorced|widowed)\b(?!\sto\b)(?=$|[,;]|\s(?:and|now|but|with|"
         rf"since))",
         "relationship status", text="{entity} is {object}"),
    rule(rf"{_WE}got\s(?P<object>married|engaged|divorced)\b", "relationship status", event=True,
         text="{entity} got {object}"),
    rule(rf"{_IM}(?:dating|seeing|in\sa\srelationship\swith)\s(?P<object>{ONE_NAME})", "is together with", **PERSON),
    rule(rf"{_I}(?:live|share\sa\s(?:flat|house|room))\swith\s(?P<object>{ONE_NAME})", "lives with", **PERSON),
    rule(rf"{_I}broke\sup\swith\s(?P<object>{ONE_NAME})", "is together with", text="{entity} broke up with {object}",
         closes=True, event=True, **PERSON),
    rule(rf"{_WE}(?:broke|split|have\sbroken)\sup\b(?!\swith\s)", "is together with",
         text="{entity} broke up with the {object}", object="partner", closes=True, event=True),
    rule(rf"{_I}no\slonger\slive\sin\s{REST}", "lives in", text="{entity} no longer lives in {object}", closes=True,
         event=True, **PLACE),
    rule(rf"{_I}(?:don't|do\snot)\slive\sin\s(?P<object>[^,;]+?)\sany\s?more", "lives in",
         text="{entity} no longer lives in {object}", closes=True, event=True, **PLACE),
)  # fmt: skip

_BODY: tuple[Rule, ...] = (
    rule(rf"{_IM}(?:\w+ly\s)?allergic\sto\s{REST}", "is allergic to", listed=True),
    rule(rf"{_KIN_HERE}\s(?:is|are)\s(?:\w+ly\s)?allergic\sto\s{REST}", "is allergic to", listed=True),
    rule(rf"{_PARENT_HERE}\sis\s(?:\w+ly\s)?allergic\sto\s{REST}", "is allergic to", listed=True),
    rule(rf"{_I}have\san?\s(?:severe\s|bad\s|mild\s)?(?P<object>[\w-]+(?:\s\w+)?)\sallergy", "is allergic to"),
    rule(rf"{_I}(?:can't|cannot)\s(?:eat|have)\s{REST}", "cannot eat", listed=True, taste=True),
    rule(rf"{_I}(?:don't|do\snot)\seat\s(?P<object>meat|fish|pork|beef|dairy|gluten|eggs|sugar|seafood|shellfish|"
         rf"nuts)\b",
         "does not eat"),
    rule(rf"{_IM}(?:an?\s)?(?P<object>{_DIETS})\b(?!\s(?:any\s?more|restaurant|place|cafe|food|option))",
         "follows the diet", text="{entity} is {object}"),
    rule(rf"{_IVE}(?:went|gone|became|become|turned)\s(?:an?\s)?(?P<object>{_DIETS})\b", "follows the diet",
         text="{entity} became {object}", event=True),
    rule(rf"{_IM}(?:not|no\slonger)\s(?:an?\s)?(?P<object>{_DIETS})(?:\sany\s?more)?", "follows the diet",
         text="{entity} is no longer {object}", closes=True, event=True),
    rule(rf"{_I}(?P<topic>eat|drink)\s(?P<object>[\w\s-]{{2,25}}?)\sagain\b", "{topic}s",
         text="{entity} {topic}s {object} again"),
    rule(rf"{_IM}(?P<topic>eat|drink)ing\s(?P<object>[\w\s-]{{2,25}}?)\sagain\b", "{topic}s",
         text="{entity} {topic}s {object} again"),
    rule(rf"{_I}(?:no\slonger|don't)\s(?P<topic>eat|drink)\s(?P<object>[\w-]+(?:\s\w+)?)(?:\sany\s?more)\b", "{topic}s",
         text="{entity} no longer {topic}s {object}", closes=True, event=True),
    rule(rf"{_I}no\slonger\s(?P<topic>eat|drink)\s{REST}", "{topic}s", text="{entity} no longer {topic}s {object}",
         closes=True, event=True),
    rule(rf"{_IVE}(?:stopped|quit|given\sup|gave\sup)\s(?P<topic>eat|drink)ing\s{REST}", "{topic}s",
         text="{entity} no longer {topic}s {object}", closes=True, event=True),
    rule(rf"{_IVE}(?:have\s|been\sdiagnosed\swith\s|got\sdiagnosed\swith\s)(?P<object>{_ILLNESS})\b", "has"),
    rule(rf"\bI\s(?:was|got)\sdiagnosed\swith\s(?P<object>{_ILLNESS})\b", "has",
         text="{entity} was diagnosed with {object}", event=True),
    rule(rf"{_IM}(?P<object>{_CONDITION})\b", "is"),
)  # fmt: skip

_TASTES_AND_DEEDS: tuple[Rule, ...] = (
    rule(rf"{_I}(?:love|like|enjoy|adore)\s{REST}", "likes", taste=True),
    rule(rf"{_I}(?:hate|dislike|detest|can't\sstand|cannot\sstand|don't\slike|do\snot\slike)\s{REST}",
         "dislikes", taste=True),
    rule(rf"{_KIN_HERE}\s(?:really\s|absolutely\s)?(?:loves|likes|adores|(?<=kids\s)love|(?<=children\s)love)\s{REST}",
         "likes", taste=True),
    rule(rf"{_PARENT_HERE}\s(?:really\s|absolutely\s)?(?:loves|likes|adores)\s{REST}", "likes", taste=True),
    rule(rf"{_KIN_HERE}\s(?:really\s|absolutely\s)?(?:hates|dislikes|can't\sstand)\s{REST}", "dislikes", taste=True),
    rule(rf"{_PARENT_HERE}\s(?:really\s|absolutely\s)?(?:hates|dislikes|can't\sstand)\s{REST}", "dislikes", taste=True),
    rule(rf"\bmy\s(?:all-time\s)?favou?rite\s(?!(?:thing|part|one|bit)\b)(?P<topic>[\w\s]{{2,25}}?)\s(?:is|"
         rf"are)\s{REST}",
         "favourite {topic}",
         text="{entity}'s favourite {topic} is {object}", taste=True),
    rule(rf"\bI(?:\scan)?\s{_ADV}speak\s(?:fluent\s|some\s|a\slittle\s)?(?P<object>(?-i:[A-Z]\w+)(?:(?:,\s"
         rf"(?:and\s)?|\sand\s)(?:a\slittle\s|some\s)?(?-i:[A-Z]\w+))*)",
         "speaks", listed=True),
    rule(rf"{_IM}studying\s{REST}", "studies", taste=True),
    rule(rf"{_I}study\s{REST}", "studies", taste=True),
    rule(rf"{_IM}learning\s(?!(?:to\sbe|that|how\sto|a\slot|more|so|about)\b){REST}", "is learning", taste=True),
    rule(rf"{_I}play\s(?P<object>(?:the\s)?[\w-]+(?:\s(?:guitar|football|tennis|hockey|games))?)(?=\s(?:in|on|with|"
         rf"every|at|and|for|since|now|too)\b|$|[,;])",
         "plays", taste=True),
    rule(rf"{_WE}joined\s(?P<object>(?:an?|the)\s[^,;:!?()\"–—\n]+)", "is a member of", text="{entity} joined {object}",
         event=True, taste=True),
    rule(rf"{_I}(?:quit|left)\s(?:the|my)\s(?P<object>(?:\w+\s)?(?:{_CLUB}))\b", "is a member of",
         text="{entity} left the {object}", closes=True, event=True),
    rule(rf"{_IVE}(?:started|begun|began|taken\sup|took\sup)\s(?P<object>(?:{_HOBBY})\b[^,;:!?()\"–—\n]*)", "practises",
         text="{entity} started {object}", event=True, taste=True),
    rule(rf"{_IVE}(?:stopped|quit|given\sup|gave\sup)\s(?P<object>(?:{_HOBBY})\b[^,;:!?()\"–—\n]*)", "practises",
         text="{entity} stopped {object}", closes=True, event=True, taste=True),
    rule(rf"{_I}own\s{_A}", "owns"),
    rule(rf"{_IVE}(?:bought|purchased)\s(?:myself\s)?{_A}", "owns", text="{entity} bought {object}", event=True),
    rule(rf"{_IVE}(?:bought|purchased)\smy\s(?:own|first|new)\s{REST}", "owns", text="{entity} bought {a} {bare}",
         event=True),
    rule(rf"{_IVE}(?:got|adopted)\s(?:myself\s)?(?P<object>an?\s(?:new\s|used\s|second-hand\s)(?:[\w-]+\s)?"
         rf"(?:{_THING}))\b",
         "owns",
         text="{entity} got {object}", event=True),
    rule(rf"{_WE}sold\s(?:my|our|the)\s{REST}", "owns", text="{entity} sold the {bare}", closes=True, event=True),
    rule(r"\bmy\sbudget(?P<topic>\sfor\s[\w\s]+?)?\sis\s(?:about\s|around\s)?(?P<object>[$€£]?\d[\d,.]*(?:\s?\w+)?)",
         "has budget{topic}", text="{entity}'s budget{topic} is {object}"),
)  # fmt: skip

_PLANS_AND_WISHES: tuple[Rule, ...] = (
    rule(rf"{_IM}(?:going|gonna)\s(?:to\s)?(?P<object>(?:visit|move|travel|fly|meet|start|host|attend|take|run|"
         rf"marry|study|buy|sell|join)\s[^,;:!?()\"–—\n]+)",
         "plans to", **PLAN),
    *(
        rule(rf"(?:{_IM}|\bwe(?:'re|\sare)\s){said}\s{REST}", "plans to", lead=deed, **PLAN)
        for said, deed in _GOING
    ),
    *(
        rule(rf"{_I}(?P<object>{verb}(?:\s[^,;:!?()\"–—\n]+)?)", "plans to", **PLAN)
        for verb in ("fly", "travel", "leave for", "move", "drive to")
    ),
    rule(rf"{_IM}(?:planning|hoping)\sto\s{REST}", "plans to", event=True, confidence=0.7),
    rule(rf"(?P<who>{ONE_NAME})\s(?:(?:has|just)\s\w+,?\s(?:and\s)?(?:s?he))?\s?(?:'s|is)\s(?:coming|visiting)\b",
         "plans to",
         object="visit", **PLAN),
    rule(rf"{_CLAUSE}(?P<who>{ONE_NAME})\swants\sto\s{REST}", "wants to", **PLAN),
    rule(r"\bis\smy\s(?P<object>(?:[\w-]+\s){0,2}(?:" + _OCCASION + r"))\b",
         "has planned", text="{entity} has {a} {bare}",
         **PLAN),
    rule(rf"\bmy\s(?P<object>(?:[\w-]+\s){{0,2}}(?:{_OCCASION}))\sis\s", "has planned", text="{entity} has {a} {bare}",
         **PLAN),
    rule(rf"{_WE}(?:have|got)\s(?P<object>an?\s(?:[\w-]+\s){{0,3}}(?:{_OCCASION}))\b", "has planned",
         text="{entity} has {object}", **PLAN),
    rule(rf"(?:^|\bmy\s)(?P<kin>{_PARENT}|{_RELATIVE})\shas\san?\s(?:date|appointment|slot)\sfor\s(?:her|his|the|"
         rf"an?)\s{REST}",
         "has planned", text="{entity} has {a} {bare}", **PLAN),
    rule(r"\bthe\s(?P<object>(?:[\w-]+\s)?(?:van|flight|hotel|train|table|room|ferry|flat|venue|"
         r"restaurant))\sis\sbooked\b",
         "has planned",
         text="{entity} has the {bare} booked", **PLAN),
    rule(rf"{_WE}cancel(?:l?ed)\s(?:my|our|the)\s{REST}", "plans to", text="{entity} cancelled the {bare}", closes=True,
         event=True),
    rule(rf"\bplease\salways\s{REST}", "asks to always", confidence=0.8),
    rule(rf"\bplease\s(?:never|don't\sever)\s{REST}", "asks to never", confidence=0.8),
    rule(r"^(?:please\s|from\snow\son,?\s(?:please\s)?)(?P<object>(?:answer|reply|respond|talk|speak|write)\s"
         r"(?:to\sme\s)?(?:in|with|without|only|briefly|shortly|as|using)\b[^,;:!?()\"–—\n]*)",
         "asks to", confidence=0.8),
    rule(r"^(?:please\s|from\snow\son,?\s(?:please\s)?)?(?P<object>keep\s(?:your\s|the\s)?(?:answers|replies|"
         r"responses|messages)\s[\w\s]+)",
         "asks to", confidence=0.8),
    rule(rf"{_I}prefer\s{REST}", "prefers", confidence=0.8, taste=True),
)  # fmt: skip

ENGLISH: tuple[Rule, ...] = (*_WHO_AND_WHERE, *_WORK, *_PEOPLE, *_BODY, *_TASTES_AND_DEEDS, *_PLANS_AND_WISHES)
KIN_CALLED = {
    "mum": "mother", "mom": "mother", "dad": "father", "granny": "grandmother", "grandma": "grandmother",
    "grandpa": "grandfather",
}  # fmt: skip
"""One word for one relative, so that statements about the same person meet."""
