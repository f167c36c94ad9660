"""Words around what a person wants of an agent, per language: data, written folded (lower case, without accents).

As in `domain/digest/words.py` they are looked at last: what was refused or broken off is known without.
"""

from __future__ import annotations

import re
from typing import Final

PROHIBITS: Final[tuple[str, ...]] = (
    r"(?:do|does|did|is|are|was|were|should|must|would|could|can)(?: not|n'?t)", "won't", "cannot", "never", "no",
    "stop", "avoid", "quit", "nor",
    r"kein(?:e[nmrs]?)?", "niemals", "nie", "hor auf",
    "nunca", "jamas", r"evita(?:r)?", "deja de",
    "nao", "jamais", "evite", "pare? de",
    "ne", "evitez?", "arrete de",
)  # fmt: skip
"""The whole clause in which one stands is not wanted."""
CONTRASTS: Final[tuple[str, ...]] = (
    "not", "without", "instead of", "rather than", "in place of",
    "nicht", "anstatt", "statt", r"anstelle(?: von)?", "ohne",
    r"en (?:vez|lugar) de", "sin",
    "em vez d[eoa]", "ao inves d[eoa]", "no lugar d[eoa]", "sem",
    "pas", "au lieu de", "plutot que", "a la place de", "sans",
)  # fmt: skip
"""What follows one, up to the end of its clause, is not wanted; where nothing follows, what stands before it."""
NEGATES_BEFORE: Final = re.compile(
    "ではなく|じゃなくて|でなく|の代わりに|(?:を)?使わないで(?:ください)?|(?:を)?しないで(?:ください)?|ないでください|"
    "(?:は|を)?やめて(?:ください)?|せずに|(?:は|を)?禁止(?:です)?"
)
"""In Japanese what stands before it, from the clause's beginning, is not wanted."""
NEGATES_AFTER: Final = re.compile("不要再?用?|不要|别再?用?|別再?用?|禁止|不许|不許|而不是|代替|不能用?")
FILLERS: Final[frozenset[str]] = frozenset(
    (
        # en
        "a about absolutely actually after again all allowed already also always and any anymore anyway "
        "approach are as ask asked at be because before belong belongs but by call can circumstances ever "
        "every everything everytime everywhere first for forget forgot forgotten from get go goes going has "
        "have here hey how i i'd i'm idea im in instead is it its just keep kept know let lets like live "
        "lives made make may mean much must need needs new next now of ok okay on once only onto our place "
        "please point prefer project proper properly put rather really remember repeat repo repository rule "
        "run running said say see shall should so solution some sorry still stuff sure tell that thats the "
        "their them then there these they thing things this those time times to told too try under unless "
        "until up us use used uses using want wanted was way we well were what when where which while why "
        "will wish with work would wrong yes you your "
        # de
        "auf aber alle alles also am an auch aus bei beim bitte bleib bleiben benutze benutzen das dass dem "
        "den der des die dies diese dieser doch du ein eine einen einem einer er es fur hier hast hatte ich "
        "im immer in ist ja jetzt kunftig lieber mach mache machen mal mehr mit nach nehmen nimm noch "
        "nochmal nun nur nutze nutzen schon sie sind so soll sollen sollst statt stattdessen uber um und "
        "uns unser vom von wann war was weil wenn wie wieder will wir wird zu zum zur verwende verwenden "
        "verwendet gesagt falsch projekt muss musst erst "
        # es
        "a al algo aqui asi como con cada cual cuando de del dije dijo debe debes debemos el en es esa ese "
        "eso esta este esto favor hacer hay haz la las le les lo los mas me mejor mi muy nos otra para pero "
        "por porque prefiero proyecto que quiero se ser si siempre sino solo su tambien te todo todos tu un "
        "una usa usar uses usemos vez lugar y ya "
        # pt
        "ao aos as no com da das de disse do dos deve devemos e ela ele em essa esse esta este eu faca "
        "fazer favor isso isto ja mais mas melhor meu minha na nas neste nesta nos o os ou para pela pelo "
        "por porque prefiro projeto que quero se sempre seu sua so tambem tudo um uma use usa usar vamos "
        "vez vezes voce agora aqui diante "
        # fr
        "a ai as au aux avec c ca ce ces cette comme d dans de deja des dit du elle en encore est et fais "
        "faire faut ici il ils j je l la le les leur lui m ma mais me mes mon nous on ou par plutot pour "
        "prefere projet qu que qui rien s sa se ses si son sont sur t ta te tes toi toujours ton tout tu un "
        "une utilise utiliser utilisez utilisons veux vous y lieu place prends "
        # ja, zh
        "必 常 絶対 今後 以後 使 毎回 一番 今回 前 言 決 方針 統一 使用 代わり "
        "プロジェクト 必须 必須 总是 總是 始终 始終 永远 永遠 从现在 從現在 以后 請 请 "
        "我们 我們 项目 項目 这个 這個 都 应该 應該 改用 采用 採用 就用 统一用 "
    ).split()
)
"""Say nothing of what is wanted."""
PROTESTS: Final = re.compile(
    r"\b(?:i (?:already |just )?(?:told|asked|said)|as i said|like i said|how (?:often|many times)|(?:you|it) (?:keep|"
    r"keeps|still|again|forgot)|still (?:not|wrong)|that'?s (?:not|wrong)|not what i|wrong|nope|"
    r"schon gesagt|wie gesagt|falsch|schon wieder|nein|"
    r"ya te (?:dije|lo dije)|otra vez|esta mal|ja (?:te )?(?:disse|falei)|de novo|esta errado|"
    r"deja dit|c'est faux|pas comme ca)\b|前にも|また間違|違います|ではなく|又错了|又錯了|说过|說過|不对|不對"
)
"""A person says that it was said before, or that it is wrong."""
FOR_NOW: Final = re.compile(
    r"\b(?:yet|for now|right now|at the moment|this time|today|tomorrow|tonight|no need to|don'?t (?:worry|bother)|"
    r"never ?mind|until i|wait (?:for|until)|noch nicht|vorerst|erstmal|im moment|heute|diesmal|"
    r"todavia|por ahora|de momento|hoy|esta vez|ainda nao|por enquanto|por agora|hoje|desta vez|"
    r"pas encore|pour l'instant|pour le moment|aujourd'hui|cette fois)\b"
    "|まだ|今は|とりあえず|今回は|先不要|暂时|暫時|现在先|這次|这次"
)
"""What is wanted for the time being says nothing about later sessions."""
LEADS_IN: Final = re.compile(
    r"^(?:(?:no|nope|wrong|stop|please|again|hey|ok(?:ay)?|actually|remember|sorry|well|nein|bitte|nochmal|por favor|"
    r"otra vez|n[aã]o|de novo|non|s'il (?:te|vous) pla[iî]t|(?:as|like) i said|i (?:already |just )?(?:told you|said)"
    r"|wie gesagt|ya te (?:lo )?dije|j[aá] (?:te )?disse|je t'ai d[eé]j[aà] dit)"
    r"(?:[,:!.;…—–-]+\s*|\s+(?=please\b|bitte\b)))+",
    re.IGNORECASE,
)
"""What is said before the wish itself: "No, I told you: "."""
