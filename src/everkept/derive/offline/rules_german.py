"""German sentences that say something durable of the speaker, or of somebody the speaker names."""

from __future__ import annotations

from everkept.derive.offline.rule import NAME, ONE_NAME, ORGANISATION, PERSON, PLACE, PLAN, REST, ROLE, Rule, rule

_ICH = r"\bich\s"
_SINCE = r"(?:(?:jetzt|nun|auch|gerade|schon)\s)*(?:seit\s(?:[\w.]+\s){1,3}?)?"
_BEGINS = r"(?:^|[,;:]\s|\b(?:und|aber)\s)"
_MALE = (
    "Hund|Kater|Hamster|Sohn|Bruder|Mann|Vater|Onkel|Cousin|Neffe|Opa|Freund|Partner|Chef|Vermieter|Nachbar|Kollege|"
    "Mitbewohner|Lehrer|Trainer|Hausarzt"
)
_FEMALE = (
    "Hündin|Katze|Tochter|Schwester|Frau|Mutter|Tante|Cousine|Nichte|Oma|Freundin|Partnerin|Chefin|Vermieterin|"
    "Nachbarin|Kollegin|Mitbewohnerin|Lehrerin|Trainerin|Hausärztin"
)
_RELATIVE = "Sohn|Bruder|Mann|Vater|Onkel|Cousin|Neffe|Opa|Tochter|Schwester|Frau|Mutter|Tante|Cousine|Nichte|Oma"
_CLOSE = r"(?:(?:beste|ältere|jüngere|kleine|große|alte)[rsnm]?\s)?"
_VERBS = r"(?:ist|hat|wohnt|lebt|arbeitet|kommt|mag|heißt|liebt|studiert|und)"
_JOB = (
    r"(?:\w+\s)?(?:Krankenschwester|Krankenpfleger(?:in)?|Pfleger(?:in)?|Ärztin|Arzt|Lehrer(?:in)?|Ingenieur(?:in)?|"
    r"Student(?:in)?|Entwickler(?:in)?|Architekt(?:in)?|Anwält(?:in)|Anwalt|Tischler(?:in)?|Hebamme|Übersetzer(?:in)?|"
    r"Rentner(?:in)?)"
)
_ILLNESS = "Asthma|Diabetes|Migräne|Zöliakie|Heuschnupfen|Bluthochdruck|Epilepsie|Arthrose|ADHS|Neurodermitis"
_LANGUAGES = r"(?P<object>(?-i:[A-ZÄÖÜ]\w+sch)(?:(?:,\s|\sund\s|,\sund\s)(?-i:[A-ZÄÖÜ]\w+sch))*)"
_DOES = (
    ("singe", "singt"),
    ("tanze", "tanzt"),
    ("trainiere", "trainiert"),
    ("turne", "turnt"),
    ("rudere", "rudert"),
    ("schwimme", "schwimmt"),
)
_TRAVELS = (("fliege", "zu fliegen"), ("fahre", "zu fahren"), ("reise", "zu reisen"), ("ziehe", "zu ziehen"))

GERMAN: tuple[Rule, ...] = (
    rule(rf"{_ICH}heiße\s(?P<object>{ONE_NAME})", "heißt", **PERSON),
    rule(rf"\bmein\sname\sist\s(?P<object>{ONE_NAME})", "heißt", **PERSON),
    rule(rf"{_ICH}(?:wohne|lebe)\s{_SINCE}(?:wieder\s)?in\s(?P<object>{NAME})", "wohnt in", **PLACE),
    rule(rf"\b(?:wohne|lebe)\sich\s{_SINCE}in\s(?P<object>{NAME})", "wohnt in", **PLACE),
    rule(rf"{_ICH}bin\s(?:[\w\s.]+?\s)?nach\s(?P<object>{NAME})\s(?:um)?gezogen", "wohnt in",
         text="{entity} ist nach {object} gezogen", event=True, **PLACE),
    rule(rf"{_ICH}wohne\snicht\smehr\sin\s(?P<object>{NAME})", "wohnt in", text="{entity} wohnt nicht mehr in {object}",
         closes=True, event=True, **PLACE),
    rule(rf"{_ICH}bin\sin\s(?P<object>{NAME})\saufgewachsen", "ist aufgewachsen in",
         text="{entity} ist in {object} aufgewachsen", **PLACE),
    rule(rf"{_ICH}komme\s(?:ursprünglich\s)?aus\s(?P<object>{NAME})$", "kommt aus", **PLACE),
    rule(rf"{_ICH}arbeite\s{_SINCE}(?:bei|beim|am)\s(?P<object>(?:der\s|dem\s)?{NAME})",
         "arbeitet bei", **ORGANISATION),
    rule(rf"{_ICH}arbeite\snicht\smehr\s(?:bei|beim|am)\s(?P<object>{NAME})", "arbeitet bei",
         text="{entity} arbeitet nicht mehr bei {object}", closes=True, event=True, **ORGANISATION),
    rule(rf"{_ICH}arbeite\s{_SINCE}als\s{ROLE}", "arbeitet als", now_replaces=True),
    rule(rf"{_ICH}bin\s(?:von\sBeruf\s|jetzt\s)?(?P<object>(?-i:{_JOB}))\b",
         "arbeitet als", text="{entity} ist {object}",
         now_replaces=True),
    rule(rf"{_ICH}bin\s(?:\w+\s)?allergisch\s(?:gegen|auf)\s{REST}", "ist allergisch gegen", listed=True),
    rule(rf"{_BEGINS}(?P<who>(?-i:{ONE_NAME}))\sist\s(?:\w+\s)?allergisch\s(?:gegen|auf)\s{REST}",
         "ist allergisch gegen",
         listed=True),
    rule(rf"\bmein(?:e)?\s{_CLOSE}(?P<kin>{_RELATIVE})\sist\s(?:\w+\s)?allergisch\s(?:gegen|auf)\s{REST}",
         "ist allergisch gegen",
         kin="{kin} von {speaker}", listed=True),
    rule(rf"{_ICH}habe\seine\s(?P<object>\w+)allergie\b",
         "ist allergisch gegen", text="{entity} hat eine {object}allergie"),
    rule(rf"{_BEGINS}(?P<who>{ONE_NAME})\sverträgt\s(?P<topic>keine?n?)\s(?P<object>(?-i:[A-ZÄÖÜ]\w+))",
         "verträgt kein",
         text="{entity} verträgt {topic} {object}"),
    rule(rf"\bam\s(?P<object>\d\d?\.\s\w+)\shat\smeine?\s(?P<kin>{_RELATIVE})\sGeburtstag\b", "hat Geburtstag am",
         kin="{kin} von {speaker}"),
    rule(rf"\bmeine?\s(?P<kin>{_RELATIVE})\shat\sam\s(?P<object>\d\d?\.\s\w+)\sGeburtstag\b", "hat Geburtstag am",
         kin="{kin} von {speaker}"),
    rule(r"\bich\shabe\sam\s(?P<object>\d\d?\.\s\w+)\sGeburtstag\b", "hat Geburtstag am"),
    rule(rf"\b(?:arbeite\sich|ich\sarbeite)\s{_SINCE}(?P<topic>in\sder|im|in\seiner|in\seinem)\s"
         rf"(?P<object>(?-i:[A-ZÄÖÜ]\w+))",
         "arbeitet bei",
         text="{entity} arbeitet {topic} {object}", event=True, **ORGANISATION),
    rule(rf"{_ICH}vertrage\skeine?n?\s{REST}", "verträgt kein", text="{entity} verträgt {object} nicht", listed=True),
    *(
        rule_ for said, does in (("esse", "isst"), ("trinke", "trinkt")) for rule_ in (
            rule(rf"{_ICH}{said}\s(?P<topic>keine?n?)\s(?P<object>[\w-]+)\smehr\b", does,
                 text=f"{{entity}} {does} {{topic}} {{object}} mehr", closes=True, event=True),
            rule(rf"{_ICH}{said}\s(?P<topic>keine?n?)\s(?P<object>(?-i:[A-ZÄÖÜ]\w+))(?!\smehr)(?=$|[,;]|\s(?:und|"
                 rf"aber|weil))",
                 f"{does} kein", text=f"{{entity}} {does} {{topic}} {{object}}"),
            rule(rf"{_ICH}{said}\s(?:jetzt\s)?wieder\s(?P<object>(?-i:[A-ZÄÖÜ]\w+))\b", does,
                 text=f"{{entity}} {does} wieder {{object}}"),
        )
    ),
    rule(rf"{_ICH}bin\s(?:jetzt\s)?(?P<object>vegetarier(?:in)?|veganer(?:in)?|vegan|vegetarisch|laktoseintolerant)\b",
         "ernährt sich",
         text="{entity} ist {object}"),
    rule(rf"{_ICH}(?:mag|liebe)\s(?!nicht\b|es\b|dich\b|kein){REST}", "mag", taste=True),
    rule(rf"{_ICH}hasse\s{REST}", "mag nicht", text="{entity} mag {object} nicht", taste=True),
    rule(rf"{_BEGINS}mein(?:e)?\s{_CLOSE}(?P<kin>{_RELATIVE})\s(?:mag|liebt)\s(?!kein|nicht\b){REST}", "mag",
         kin="{kin} von {speaker}", taste=True),
    rule(rf"{_ICH}spreche\s(?:\w+\s)?{_LANGUAGES}", "spricht", listed=True),
    rule(rf"{_ICH}lerne\s{_SINCE}{_LANGUAGES}", "lernt"),
    rule(rf"{_ICH}studiere\s{_SINCE}(?P<object>(?-i:[A-ZÄÖÜ]\w+))", "studiert"),
    rule(rf"{_ICH}spiele\s{_SINCE}(?P<object>(?-i:[A-ZÄÖÜ]\w+))(?=$|[,;]|\s(?:und|in|im|seit|bei))", "spielt"),
    *(
        rule(rf"{_ICH}{said}\s{_SINCE}(?P<topic>in|im|bei|beim|mit)\s{REST}",
             f"{does} {{topic}}") for said, does in _DOES
    ),
    rule(rf"{_ICH}habe\s(?:[\w.]+\s){{0,3}}?mit\s(?:dem\s|der\s)?(?P<object>(?-i:[A-ZÄÖÜ]\w+))\sangefangen", "macht",
         text="{entity} hat mit {object} angefangen", event=True),
    rule(rf"{_ICH}habe\s(?:[\w.]+\s){{0,3}}?mit\s(?:dem\s|der\s)?(?P<object>(?-i:[A-ZÄÖÜ]\w+))\saufgehört", "macht",
         text="{entity} hat mit {object} aufgehört", closes=True, event=True),
    rule(rf"{_ICH}bin\s(?:jetzt\s|seit\s\w+\s)?(?:Mitglied\s)(?:in|im|bei)\s{REST}", "ist Mitglied in"),
    *(
        made for article, mine, kin in (("Der", "mein", _MALE), ("Die", "meine", _FEMALE)) for made in (
            rule(rf"\b{mine}\s{_CLOSE}(?P<topic>{kin})\s(?:heißt|ist)\s(?P<object>(?:Herr\s|Frau\s)?{ONE_NAME})$",
                 "hat {topic}",
                 text=f"{article} {{topic}} von {{entity}} heißt {{object}}", names=True, kind="entity"),
            rule(rf"\b{mine}\s{_CLOSE}(?P<topic>{kin})\sheißt\s(?P<object>{ONE_NAME})", "hat {topic}",
                 text=f"{article} {{topic}} von {{entity}} heißt {{object}}", names=True, kind="entity"),
            rule(rf"{_BEGINS}{mine}\s{_CLOSE}(?P<topic>{kin})\s(?P<object>{ONE_NAME})(?=\s{_VERBS}\b)", "hat {topic}",
                 text=f"{article} {{topic}} von {{entity}} heißt {{object}}", names=True, kind="entity"),
            rule(rf"{_ICH}habe\s(?:jetzt\s)?eine?n?\s(?:neue\w?\s)?(?P<topic>{kin}),\s(?P<object>(?:Herrn?\s|"
                 rf"Frau\s)?{ONE_NAME})",
                 "hat {topic}", text=f"{article} {{topic}} von {{entity}} heißt {{object}}", names=True, kind="entity"),
            rule(rf"\bmeine[mrn]?\s{_CLOSE}(?P<topic>{kin})n?,\s(?P<object>(?:Herrn?\s|Frau\s)?"
                 rf"(?:der\s)?{ONE_NAME})(?=,|$)",
                 "hat {topic}",
                 text=f"{article} {{topic}} von {{entity}} heißt {{object}}", names=True, kind="entity"),
        )
    ),
    rule(rf"{_BEGINS}mein(?:e)?\s{_CLOSE}(?:{_RELATIVE}|Freund|Freundin)\s(?P<who>{ONE_NAME})\s(?:wohnt|lebt)\s"
         rf"(?:jetzt\s)?in\s(?P<object>{NAME})",
         "wohnt in", **PLACE),
    rule(rf"{_BEGINS}mein(?:e)?\s{_CLOSE}(?P<kin>{_RELATIVE})\s(?:wohnt|lebt)\s(?:jetzt\s)?in\s(?P<object>{NAME})",
         "wohnt in",
         kin="{kin} von {speaker}", **PLACE),
    rule(rf"{_BEGINS}mein(?:e)?\s{_CLOSE}(?:{_RELATIVE})\s(?P<who>{ONE_NAME})\sist\s(?P<object>schwanger|in Rente)\b",
         "ist"),
    rule(rf"{_ICH}bin\s(?:\w+\s)?verheiratet\smit\s(?P<object>{ONE_NAME})", "ist verheiratet mit", **PERSON),
    rule(rf"{_ICH}habe\s(?P<object>{_ILLNESS})\b", "hat"),
    rule(rf"{_ICH}bin\s(?P<object>schwanger|Diabetiker(?:in)?|Linkshänder(?:in)?)\b", "ist"),
    rule(r"\bich\shabe\s(?:[\w.]+\s){0,3}?mein(?:e|en)?\s(?P<object>[\w-]+(?:\s[\w-]+)?)\sverkauft", "besitzt",
         text="{entity} hat {object} verkauft", closes=True, event=True),
    rule(r"\bich\shabe\s(?:mir\s)?(?:[\w.]+\s){0,3}?(?P<object>ein(?:e|en)?\s[\w\s-]+?)\sgekauft", "besitzt",
         text="{entity} hat {object} gekauft", event=True),
    *(
        rule(rf"\b(?:ich\s{said}|{said}\sich)\s(?P<object>[^,;:!?()\n]+)", "hat vor", tail=f" {does}",
             text="{entity} hat vor, {object}", **PLAN)
        for said, does in _TRAVELS
    ),
    rule(r"\b(?:ich\shabe|habe\sich)\s(?:[\w.]+\s){0,4}?(?P<object>(?:einen|eine|ein)\s(?:[\w-]+\s)?(?:\w*(?:termin|"
         r"gespräch|prüfung|operation|untersuchung|interview|vorspiel|auftritt)))\b",
         "hat geplant", text="{entity} hat {object}", **PLAN),
    rule(r"\b(?P<object>meine?\s(?:\w*(?:übergabe|feier|prüfung|operation|hochzeit|termin|gespräch)))\sist\s",
         "hat geplant",
         text="{entity} hat geplant: {bare}", **PLAN),
    rule(r"^bitte\s(?P<object>(?:antworte|antworten\sSie|schreib|schreibe|sprich)\s(?:mir\s)?(?:immer|nur|auf|kurz|"
         r"in|ohne|knapp)\b[^,;:!?()\n]*)",
         "bittet:",
         confidence=0.8),
    rule(r"^(?P<object>(?:antworte|schreib|schreibe|sprich)\s(?:mir\s)?bitte\s(?:immer|nur|auf|kurz|in|ohne|"
         r"knapp)\b[^,;:!?()\n]*)",
         "bittet:",
         confidence=0.8),
)  # fmt: skip
