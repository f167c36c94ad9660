"""Words by which people decide, ask and go on, per language: data, written folded (lower case, without accents).

They are looked at last: what a tool asked, what was approved or refused and what answers a question is known without.
"""

from __future__ import annotations

import re
from typing import Final

from everkept.domain.text import fold

DECIDES: Final[dict[str, tuple[str, ...]]] = {
    "en": (
        r"\blet'?s (?:just |not |only |also |rather |instead )*(?:use|go|keep|not|drop|stick|call|name|"
        r"skip|leave|stay|switch|do it|take|make it|move|avoid|ship|revert|rename|remove)\b",
        r"\bwe(?:'ll| will| should| can| decided| agreed| are going to|'re going to)(?: to| also| just|"
        r" only| now| always| not)* (?:use|go with|keep|drop|skip|remove|stick|support|ship|avoid|ignore|"
        r"leave|switch|rename|target|never|always)\b",
        r"\bi(?:'d| would)? (?:rather|prefer)\b|\b(?:i|we)(?:'ve| have)? decided\b|\bdecision:",
        r"(?<!keep )\b(?:go|going|went|stick|stay) with\b|\binstead of\b|\brather than\b|\bin favou?r of\b",
        r"\bdo(?:n'?t| not) (?:use|add|change|touch|create|make|write|commit|push|remove|delete|rename|"
        r"mock|edit|run|introduce|worry|include|bother|want)\b",
        r"\b(?:never|always|from now on|at no point|under no circumstances)\b|\bno need (?:to|for)\b",
        r"\bmust(?: not|n'?t)?\b|\bshould(?:n'?t| not| never| always)\b|\b(?:we|i) don'?t (?:need|want)\b",
        r"\b(?:use|prefer|keep) [^,.]{1,60}(?:, not|, never| instead| over | only\b)|\bonly use\b",
        r"\bkeep (?:it|them) (?:as|simple|in)\b",
        r"\b(?:no|wrong|actually|stop)[,:] .{0,40}\b(?:use|should|not|instead|keep|leave)\b",
        r"\brevert (?:that|this|it)\b",
    ),
    "de": (
        r"\b(?:wir|ich) (?:nehmen|nehme|verwenden|verwende|benutzen|nutzen|bleiben|bleibe|lassen|"
        r"behalten|entscheiden)\b",
        r"\b(?:nimm|verwende|benutze|nutze|bleib|lass|behalte)\b.{0,40}\b(?:lieber|besser|statt|"
        r"stattdessen|nur|bei|weg|so)\b",
        r"\b(?:statt|anstatt|anstelle|stattdessen|lieber|niemals|nie wieder|auf keinen fall|ab jetzt|"
        r"ab sofort|kunftig)\b",
        r"\bimmer (?:nur |erst |mit )",
        r"\b(?:bitte )?(?:nicht|kein|keine|keinen) .{0,40}(?:verwenden|benutzen|nutzen|andern|anfassen|"
        r"hinzufugen|committen|loschen|erstellen)\b",
        r"\b(?:entschieden|beschlossen|entscheidung)\b",
        r"\bsoll(?:en|te)? (?:nicht|kein|nie|immer)\b|\bmuss (?:nicht|immer)\b",
    ),
    "es": (
        r"\b(?:usemos|mejor (?:usa|usar|usemos)|vamos (?:a usar|con)|quedemonos con|prefiero|preferimos)\b",
        r"\ben (?:vez|lugar) de\b|\b(?:nunca|siempre|jamas)\b|\ba partir de ahora\b|\bde ahora en adelante\b",
        r"\bno (?:uses|usemos|usar|agregues|anadas|toques|hagas|cambies|borres|crees|modifiques)\b",
        r"\b(?:decidimos|decidi|hemos decidido|he decidido|decision)\b|\bno hace falta\b",
        r"\b(?:no )?debe(?:mos|n)? (?:usar|ser|estar)\b",
    ),
    "pt": (
        r"\b(?:vamos (?:usar|com|manter)|melhor usar|use .{1,40} em vez|prefiro|preferimos|fica(?:mos)? com)\b",
        r"\b(?:em vez de|ao inves de|no lugar de)\b|\b(?:nunca|sempre|jamais)\b|\ba partir de agora\b",
        r"\bde agora em diante\b",
        r"\bnao (?:use|usar|usa|adicione|mexa|toque|faca|altere|apague|crie|mude|quero)\b",
        r"\b(?:decidimos|decidi|decidido|decisao)\b|\bnao precisa\b|\b(?:nao )?deve(?:mos|m)? (?:usar|ser|ficar)\b",
    ),
    "fr": (
        r"\b(?:utilisons|gardons|restons|prenons|on (?:utilise|prend|garde|part sur|reste)|je prefere|"
        r"nous preferons)\b",
        r"\b(?:au lieu de|plutot que|a la place)\b|\b(?:jamais|toujours|desormais)\b",
        r"\ba partir de maintenant\b|\bdorenavant\b",
        r"\bn(?:e |')(?:utilise|ajoute|touche|fais|modifie|change|supprime|cree|commite)[sz]? ?(?:pas|rien)\b",
        r"\b(?:utilise|prends) plutot\b",
        r"\b(?:decide|decidons|decision)\b|\bpas besoin de\b",
        r"\b(?:il )?(?:ne )?(?:faut|doit|devons) (?:pas )?(?:utiliser|etre|garder)\b",
    ),
    "ja": (
        "にしましょう|にしよう|にします|でいきましょう|でいこう|を採用|に統一",
        "使わないで|しないで|せずに|ではなく|じゃなくて|の代わりに|代わりに",
        "必ず|常に|絶対に|今後は|これからは|以後",
        "決めた|決めまし|決定|方針|不要です|やめて|やめましょう|べきで",
    ),
    "zh": (
        "而不是|代替|改用|改為|改为|就用|还是用|還是用|统一用|統一用|采用|採用|选用|選用",
        "不要|别用|別用|别再|別再|不需要|不用再|禁止|不许",
        "必须|必須|总是|總是|始终|始終|永远|永遠|从现在|從現在|以后都|以後都",
        "决定|決定|选择方案|選擇方案|就这样|就這樣",
    ),
}
ASKS: Final[dict[str, tuple[str, ...]]] = {
    "en": (
        r"\b(?:would|do) you (?:like|want|prefer)\b|\b(?:shall|should) (?:i|we)\b|\bwant me to\b",
        r"\blet me know (?:if you|which|whether|how|what|when)\b",
        r"\b(?:which|what) (?:option|approach|one|style)\b",
        r"\bplease (?:confirm|choose|advise|clarify|provide|tell me)\b|\bwaiting for your\b",
        r"\bhow would you like\b|\byour call\b",
    ),
    "de": (
        r"\bsoll(?:en)? (?:ich|wir)\b|\b(?:mochtest|willst|mochten|wollen) (?:du|sie)\b",
        r"\bsag(?:en sie)?(?: mir)? bescheid\b|\bbitte (?:bestatige|wahle|bestatigen|wahlen)\b",
        r"\bwelche (?:option|variante|losung)\b",
    ),
    "es": (
        r"\b(?:quieres|quiere|te gustaria|prefieres|deseas)\b",
        r"\b(?:dime|avisame|confirma|indicame)\b (?:si|cual|que|como)?|\bdebo\b",
    ),
    "pt": (r"\b(?:quer que|voce quer|prefere|gostaria|deseja)\b|\b(?:me diga|me avise|confirme|diga se)\b|\bdevo\b",),
    "fr": (
        r"\b(?:veux-tu|voulez-vous|souhaites-tu|souhaitez-vous|preferes-tu|preferez-vous|dois-je)\b",
        r"\b(?:dis-moi|dites-moi|confirme[sz]?)\b (?:si|quel|quelle|comment)",
    ),
    "ja": (
        "ましょうか|でしょうか|ますか|よろしいですか|教えてください|お知らせください|選んでください",
        "確認をお願い",
    ),
    "zh": (
        "要不要|是否需要|需要我|您希望|你希望|请告诉我|請告訴我|请确认|請確認|请选择|請選擇|好吗|好嗎|可以吗|可以嗎",
    ),
}
POLITE: Final = (
    r"\b(?:anything else|any (?:other )?questions|further (?:help|assistance|questions)|"
    r"happy to help|feel free|if you need (?:any|more|help|anything|further)|if you have (?:any|more|other|further))\b",
    r"\b(?:noch (?:etwas|fragen)|weitere fragen|algo mas|alguna (?:otra )?(?:pregunta|duda)|"
    r"mais alguma coisa|alguma duvida|autre chose|d'autres questions)\b",
    "他に(?:何か|ご)|ほかに|还有(?:什么|其他)|還有(?:什麼|其他)|其他问题|其他問題",
)
"""Closing words that ask nothing."""
NEXT: Final[dict[str, tuple[str, ...]]] = {
    "en": (
        r"\bnext steps?\b|\bnext,? (?:i|we|you)\b",
        r"\b(?:remaining|still) (?:work|to do|todo|need|needs|missing|open)\b",
        r"\b(?:left to do|what'?s left|todo:|to-do:|follow-?up:)\b|\bi(?:'ll| will) (?:now|next|then)\b",
        r"\bnow,? i(?:'ll| will)\b",
    ),
    "de": (r"\bnachste[rn]?s? schritte?\b|\bals nachstes\b|\bnoch (?:offen|zu tun|ausstehend)\b|\bes fehlt noch\b",),
    "es": (r"\b(?:proximos? pasos?|siguientes? pasos?|a continuacion|queda(?:n)? (?:por|pendiente)|falta(?:n)?)\b",),
    "pt": (r"\b(?:proximos? passos?|a seguir|em seguida|falta(?:m)?|ainda resta)\b",),
    "fr": (r"\b(?:prochaines? etapes?|ensuite,? (?:je|nous|il)|il reste(?: a)?|reste a faire)\b",),
    "ja": ("次のステップ|次は|次に|残りの(?:作業|タスク)|残っている",),
    "zh": ("下一步|接下来|接下來|剩余|剩餘|还需要|還需要|待办|待辦",),
}
GOES_ON: Final = re.compile(
    r"(?:ok(?:ay)?|yes|please|and|just|try)?[ ,]*(?:continue|go on|go ahead|carry on|proceed|resume|retry|try again|"
    r"keep going|weiter(?:machen)?|mach weiter|sigue|continua|continuar|prossiga|poursuis|reprends|"
    r"続けて(?:ください)?|继续|繼續)[.!。！ ]*|(?:yes|y|ok(?:ay)?|sure|thanks|ja|si|sim|oui|はい|好的?)[.!。！ ]*"
)
"""A prompt that only sets the agent going again."""
INTERRUPTED: Final = re.compile(r"interrupt|abort|cancel|stopped by|killed", re.IGNORECASE)
"""In what agents write about the end of a turn."""


class _Words:
    """The patterns of all languages: those with spaces are tried where a word begins and nowhere else, and those of
    scripts without spaces only in texts that are not ASCII.
    """

    def __init__(self, lists: dict[str, tuple[str, ...]]) -> None:
        patterns = [pattern for of in lists.values() for pattern in of]
        # Without the mark of a word's beginning, which stands before all of them, a first letter rules most out.
        spaced = (_WORD_BEGINS.sub("", pattern) for pattern in patterns if pattern.isascii())
        self._spaced = re.compile(rf"\b(?:{'|'.join(spaced)})")
        self._spaceless = re.compile("|".join(fold(pattern) for pattern in patterns if not pattern.isascii()))

    def stand_in(self, folded: str) -> bool:
        if self._spaced.search(folded):
            return True
        return not folded.isascii() and bool(self._spaceless.search(folded))


_WORD_BEGINS = re.compile(r"(?:^|(?<=\|))\\b(?!\|)")
_DECIDES, _ASKS, _NEXT = _Words(DECIDES), _Words(ASKS), _Words(NEXT)
_POLITE = _Words({"": POLITE})
_QUESTION: Final = ("?", "？", "؟", *(word + mark for word in "か吗嗎呢" for mark in ("", "。")))
_BEHIND_QUESTION: Final = "\"'”’）)*_"


def decides(sentence: str) -> bool:
    return not is_question(sentence) and _DECIDES.stand_in(fold(sentence))


def goes_on(text: str) -> bool:
    return bool(GOES_ON.fullmatch(fold(text.strip())))


def is_question(sentence: str) -> bool:
    end = sentence.rstrip()
    while end and end[-1] in _BEHIND_QUESTION:
        end = end.rstrip(_BEHIND_QUESTION).rstrip()
    return end.endswith(_QUESTION)


def asks(sentence: str) -> bool:
    """A question, or a request for a word, that is not mere politeness."""
    folded = fold(sentence)
    return (is_question(sentence) or _ASKS.stand_in(folded)) and not _POLITE.stand_in(folded)


def names_next(sentence: str) -> bool:
    return _NEXT.stand_in(fold(sentence))
