"""Portuguese sentences (of Portugal and Brazil) that say something durable of the speaker, or of somebody named."""

from __future__ import annotations

from everkept.derive.offline.rule import NAME, ONE_NAME, ORGANISATION, PERSON, PLACE, PLAN, REST, ROLE, Rule, rule

_EU = r"(?:(?:^|[,;:]\s|\b(?:e|mas|que)\s)(?:eu\s)?(?:agora\s|já\s|também\s|hoje\s)?|\beu\s(?:agora\s|já\s|também\s)?)"
_BEGINS = r"(?:^|[,;:]\s|\b(?:e|mas)\s)"
_IN = r"(?:em|no|na|nos|nas)"
_MALE = (
    "cachorro|cão|gato|filho|irmão|marido|pai|tio|primo|sobrinho|avô|namorado|parceiro|amigo|chefe|senhorio|vizinho|"
    "colega"
)
_FEMALE = (
    "cadela|cachorra|gata|filha|irmã|esposa|mulher|mãe|tia|prima|sobrinha|avó|namorada|parceira|amiga|senhoria|"
    "vizinha|colega|chefe"
)
_RELATIVE = "filh[oa]|irmã|irmão|marido|pai|mãe|ti[oa]|prim[oa]|sobrinh[oa]|avô|avó|esposa|mulher|namorad[oa]"
_CLOSE = r"(?:(?:melhor|grande)\s)?"
_TITLE = r"(?:(?:o|a)\s)?(?:dona\s|senhora\s|senhor\s|Sr\.\s|Sra\.\s)?"
_LANGUAGE = (
    "português|inglês|espanhol|castelhano|francês|alemão|italiano|japonês|chinês|mandarim|russo|árabe|holandês|"
    "neerlandês|polaco|polonês|ucraniano|coreano|sueco|grego|romeno|crioulo|catalão"
)
_LANGUAGES = rf"(?P<object>(?:{_LANGUAGE})(?:(?:,\s|\se\s)(?:{_LANGUAGE}))*)"
_JOB = (
    "enfermeir[oa]|médic[oa]|professor|professora|engenheir[oa]|programador|programadora|arquitet[oa]|advogad[oa]|"
    "estudante|tradutor|tradutora|cozinheir[oa]|jornalista|músic[oa]|dentista|designer|carpinteir[oa]"
)
_ILLNESS = "asma|diabetes|enxaquecas?|epilepsia|artrite|hipertensão|rinite|doença celíaca|ansiedade|insónias?"

PORTUGUESE: tuple[Rule, ...] = (
    rule(rf"\b(?:o\s)?meu\snome\sé\s(?P<object>{ONE_NAME})", "se chama", **PERSON),
    rule(rf"\b(?:me\schamo|chamo-me)\s(?P<object>{ONE_NAME})", "se chama", **PERSON),
    rule(rf"{_EU}(?:moro|vivo)\s{_IN}\s(?P<object>{NAME})", "mora em", **PLACE),
    rule(rf"\bestou\s(?:morando|vivendo|a\smorar|a\sviver)\s{_IN}\s(?P<object>{NAME})", "mora em", **PLACE),
    rule(rf"{_BEGINS}(?:(?:o|a)\s)?(?P<who>{_TITLE}{ONE_NAME})\stem\s(?P<object>\d{{1,3}}\sanos)\b", "tem a idade de",
         text="{entity} tem {object}"),
    rule(rf"{_BEGINS}(?:(?:o\smeu|a\sminha|meu|minha)\s{_CLOSE}(?P<kin>{_RELATIVE})|(?:o|a)\s"
         rf"(?P<who>{ONE_NAME}))\sestá\s(?P<object>grávida|reformad[oa]|aposentad[oa])\b",
         "está", kin="{kin} de {speaker}"),
    rule(rf"\b(?:me\smudei|mudei-me|mudei)\s(?:[\w\s]+?\s)?para\s(?:o\s|a\s)?(?P<object>{NAME})", "mora em",
         text="{entity} mudou-se para {object}", event=True, **PLACE),
    rule(rf"\b(?:não\s(?:moro|vivo)\smais|já\snão\s(?:moro|vivo))\s{_IN}\s(?P<object>{NAME})", "mora em",
         text="{entity} não mora mais em {object}", closes=True, event=True, **PLACE),
    rule(rf"{_EU}cresci\s{_IN}\s(?P<object>{NAME})", "cresceu em", **PLACE),
    rule(rf"{_EU}nasci\s{_IN}\s(?P<object>{NAME})", "nasceu em", **PLACE),
    rule(rf"{_EU}trabalho\s(?P<topic>{_IN})\s(?P<object>{NAME})",
         "trabalha em", text="{entity} trabalha {topic} {object}",
         **ORGANISATION),
    rule(rf"{_EU}comecei\sa\strabalhar\s(?P<topic>{_IN})\s(?P<object>{NAME})", "trabalha em",
         text="{entity} começou a trabalhar {topic} {object}", event=True, **ORGANISATION),
    rule(rf"\b(?:não\strabalho\smais|já\snão\strabalho)\s{_IN}\s(?P<object>{NAME})", "trabalha em",
         text="{entity} não trabalha mais em {object}", closes=True, event=True, **ORGANISATION),
    rule(rf"{_EU}trabalho\scomo\s{ROLE}", "trabalha como", now_replaces=True),
    rule(rf"{_EU}sou\s(?P<object>{_JOB})\b", "trabalha como", text="{entity} é {object}", now_replaces=True),
    rule(rf"\bsou\s(?P<topic>alérgic[oa])\s(?:a|ao|à|aos|às)\s{REST}",
         "é alérgico a", text="{entity} é {topic} a {object}",
         listed=True),
    rule(rf"\btenho\salergia\s(?:a|ao|à|aos|às)\s{REST}",
         "é alérgico a", text="{entity} tem alergia a {object}", listed=True),
    rule(rf"{_BEGINS}(?:(?:o\smeu|a\sminha|meu|minha)\s{_CLOSE}(?P<kin>{_RELATIVE})|(?:o|a)\s"
         rf"(?P<who>{ONE_NAME}))\sé\s(?P<topic>alérgic[oa])\s(?:a|ao|à|aos|às)\s{REST}",
         "é alérgico a", text="{entity} é {topic} a {object}", kin="{kin} de {speaker}", listed=True),
    rule(rf"\bsou\s(?P<topic>intolerante)\s(?:a|ao|à)\s{REST}", "é intolerante a"),
    *(
        made for said, does in (("como", "come"), ("bebo", "bebe")) for made in (
            rule(rf"\b(?:já\snão\s{said}\s(?P<object>[\w-]+))",
                 does, text=f"{{entity}} já não {does} {{object}}", closes=True,
                 event=True),
            rule(rf"\bnão\s{said}\smais\s(?P<object>[\w-]+)",
                 does, text=f"{{entity}} já não {does} {{object}}", closes=True,
                 event=True),
        )
    ),
    *(
        rule(rf"{_EU}voltei\sa\s{said}\s(?P<object>[\w-]+)",
             does, text=f"{{entity}} voltou a {said} {{object}}", event=True)
        for said, does in (("comer", "come"), ("beber", "bebe"))
    ),
    rule(rf"{_EU}não\scomo\s(?P<object>[\w-]+)(?!\smais)(?=$|[,;]|\s(?:nem|e|mas|porque))", "não come"),
    rule(r"\bsou\s(?P<object>vegetarian[oa]|vegan[oa])\b", "dieta", text="{entity} é {object}"),
    rule(rf"{_EU}(?:gosto\s(?:muito\s)?d[eoa]s?|adoro|amo)\s{REST}", "gosta de", taste=True),
    rule(rf"{_EU}(?:não\sgosto\s(?:nada\s)?d[eoa]s?|odeio|detesto)\s{REST}", "não gosta de", taste=True),
    rule(rf"{_BEGINS}(?:(?:o\smeu|a\sminha|meu|minha)\s{_CLOSE}(?P<kin>{_RELATIVE})|(?:o|a)\s(?P<who>{ONE_NAME}))\s"
         rf"(?:adora|ama)\s{REST}",
         "adora", kin="{kin} de {speaker}", taste=True),
    rule(rf"{_BEGINS}(?:(?:o\smeu|a\sminha|meu|minha)\s{_CLOSE}(?P<kin>{_RELATIVE})|(?:o|a)\s(?P<who>{ONE_NAME}))\s"
         rf"(?:odeia|detesta)\s{REST}",
         "odeia", kin="{kin} de {speaker}", taste=True),
    rule(rf"{_BEGINS}(?:(?:o\smeu|a\sminha|meu|minha)\s{_CLOSE}(?P<kin>{_RELATIVE})|(?:o|a)\s(?P<who>{ONE_NAME}))\s"
         rf"(?:mora|vive)\s{_IN}\s(?P<object>{NAME})",
         "mora em", kin="{kin} de {speaker}", **PLACE),
    rule(rf"{_EU}falo\s{_LANGUAGES}", "fala", listed=True),
    rule(rf"{_EU}(?:estudo|aprendo|estou\sa\s(?:estudar|aprender)|estou\s(?:estudando|aprendendo))\s{_LANGUAGES}",
         "estuda",
         listed=True),
    rule(rf"{_EU}canto\s(?P<topic>{_IN}|num|numa)\s{REST}", "canta {topic}"),
    rule(rf"{_EU}toco\s{REST}", "toca", taste=True),
    rule(rf"{_EU}(?:entrei|inscrevi-me|me\sinscrevi)\s(?P<topic>no|na|num|numa)\s(?P<object>(?:\w+\s)?(?:coro|clube|"
         rf"equipa|time|banda|ginásio|academia|curso|grupo)\b[^,;:!?()\n]*)",
         "faz parte de", text="{entity} entrou {topic} {object}", event=True),
    rule(rf"{_EU}comecei\sa\s(?P<object>(?:aprender|jogar|tocar|praticar|estudar|correr|nadar|dançar|"
         rf"cantar)\b[^,;:!?()\n]*)",
         "pratica", text="{entity} começou a {object}", event=True, taste=True),
    rule(rf"{_EU}deixei\sde\s(?P<object>(?:aprender|jogar|tocar|praticar|estudar|correr|nadar|dançar|cantar|"
         rf"fumar)\b[^,;:!?()\n]*)",
         "pratica", text="{entity} deixou de {object}", closes=True, event=True, taste=True),
    *(
        made for article, mine, kin in (("O", "meu", _MALE), ("A", "minha", _FEMALE)) for made in (
            rule(rf"\b{mine}\s{_CLOSE}(?P<topic>{kin})\s(?:se\schama|chama-se)\s(?P<object>{ONE_NAME})", "tem {topic}",
                 text=f"{article} {{topic}} de {{entity}} chama-se {{object}}", names=True, kind="entity"),
            rule(rf"\b{mine}\s{_CLOSE}(?P<topic>{kin}),?\s(?P<object>{_TITLE}(?-i:{ONE_NAME}))", "tem {topic}",
                 text=f"{article} {{topic}} de {{entity}} chama-se {{object}}", names=True, kind="entity"),
        )
    ),
    rule(rf"\bsou\s(?P<topic>casad[oa])\scom\s(?:o\s|a\s)?(?P<object>{ONE_NAME})", "é {topic} com", **PERSON),
    rule(rf"\btenho\s(?P<object>{_ILLNESS})\b", "tem"),
    rule(r"\bestou\s(?P<object>grávida)\b", "está"),
    rule(rf"{_EU}vendi\s(?:o\smeu|a\sminha|meu|minha|o|a)\s{REST}", "tem", text="{entity} vendeu {object}", closes=True,
         event=True),
    rule(rf"{_EU}comprei\s(?P<object>uma?\s[^,;:!?()\n]+)", "comprou", event=True),
    rule(rf"{_EU}vou\s(?P<object>(?:a|ao|à|para)\s[^,;:!?()\n]+|(?:visitar|viajar|mudar|começar|ir|voar|"
         rf"casar)\s[^,;:!?()\n]+)",
         "planeia", text="{entity} vai {object}", **PLAN),
    rule(r"\btenho\s(?P<object>uma?\s(?:consulta|entrevista|exame|reunião|festa|operação|casamento|viagem|"
         r"voo)\b[^,;:!?()\n]*)",
         "tem marcado", text="{entity} tem {object}", **PLAN),
    rule(r"^por\sfavor,?\s(?P<object>(?:responde|responda|escreve|escreva|fala|fale)(?:-me)?\s(?:sempre|só|em|"
         r"de\sforma|sem|curto)\b[^,;:!?()\n]*)",
         "pede:",
         confidence=0.8),
    rule(r"^(?P<object>(?:responde|responda|escreve|escreva|fala|fale)(?:-me)?\ssempre\b[^,;:!?()\n]*)",
         "pede:", confidence=0.8),
)  # fmt: skip
