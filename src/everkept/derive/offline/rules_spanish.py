"""Spanish sentences that say something durable of the speaker."""

from __future__ import annotations

from everkept.derive.offline.rule import NAME, ONE_NAME, ORGANISATION, PERSON, PLACE, REST, ROLE, Rule, rule

_YO = r"(?:(?:^|[,;:]\s|\b(?:y|pero)\s)(?:yo\s)?(?:ahora\s|ya\s|también\s)?|\byo\s)"
_MALE = "perro|gato|hijo|hermano|marido|padre|tío|primo|sobrino|abuelo|novio|amigo|jefe|vecino"
_FEMALE = "perra|gata|hija|hermana|esposa|mujer|madre|tía|prima|sobrina|abuela|novia|amiga|jefa|vecina"
_LANGUAGE = "español|inglés|portugués|francés|alemán|italiano|japonés|chino|mandarín|ruso|árabe|catalán|gallego|euskera"
_LANGUAGES = rf"(?P<object>(?:{_LANGUAGE})(?:(?:,\s|\sy\s|\se\s)(?:{_LANGUAGE}))*)"

SPANISH: tuple[Rule, ...] = (
    rule(rf"\bmi\snombre\ses\s(?P<object>{ONE_NAME})", "se llama", **PERSON),
    rule(rf"\bme\sllamo\s(?P<object>{ONE_NAME})", "se llama", **PERSON),
    rule(rf"{_YO}vivo\sen\s(?P<object>{NAME})", "vive en", **PLACE),
    rule(rf"\bme\smudé\s(?:[\w\s]+?\s)?a\s(?P<object>{NAME})",
         "vive en", text="{entity} se mudó a {object}", event=True,
         **PLACE),
    rule(rf"\bya\sno\svivo\sen\s(?P<object>{NAME})", "vive en", text="{entity} ya no vive en {object}", closes=True,
         event=True, **PLACE),
    rule(rf"{_YO}trabajo\s(?:en|para)\s(?P<object>{NAME})", "trabaja en", **ORGANISATION),
    rule(rf"\bya\sno\strabajo\s(?:en|para)\s(?P<object>{NAME})",
         "trabaja en", text="{entity} ya no trabaja en {object}",
         closes=True, event=True, **ORGANISATION),
    rule(rf"{_YO}trabajo\scomo\s{ROLE}", "trabaja como", now_replaces=True),
    rule(rf"\bsoy\s(?P<topic>alérgic[oa])\s(?:a|al)\s{REST}", "es alérgico a", text="{entity} es {topic} a {object}",
         listed=True),
    rule(rf"(?<!no\s)\bme\s(?:gusta|gustan|encanta|encantan)\s{REST}", "le gusta", text="A {entity} le gusta {object}",
         taste=True),
    rule(rf"\b(?:no\sme\sgustan?)\s{REST}", "no le gusta", text="A {entity} no le gusta {object}", taste=True),
    rule(rf"{_YO}(?:odio|detesto)\s{REST}", "odia", taste=True),
    rule(rf"{_YO}hablo\s{_LANGUAGES}", "habla", listed=True),
    rule(r"\bsoy\s(?P<object>vegetarian[oa]|vegan[oa])\b", "dieta", text="{entity} es {object}"),
    *(
        rule(rf"\bmi\s(?P<topic>{kin})(?:,|\sse\sllama)?\s(?P<object>{ONE_NAME})", "tiene {topic}",
             text=f"{article} {{topic}} de {{entity}} se llama {{object}}", names=True, kind="entity")
        for article, kin in (("El", _MALE), ("La", _FEMALE))
    ),
    rule(rf"{_YO}vendí\s(?:mi|el|la)\s{REST}", "tiene", text="{entity} vendió {object}", closes=True, event=True),
    rule(rf"{_YO}(?:me\s)?compré\s(?P<object>una?\s[^,;:!?()\n]+)", "compró", event=True),
)  # fmt: skip
