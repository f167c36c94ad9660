"""The words by which people name times: data for `dates.py`. Lower case; Japanese words have no word boundaries."""

from __future__ import annotations

from typing import Literal

Unit = Literal["day", "week", "month", "year"]

DAY_WORDS: dict[str, int] = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "yesterday": -1,
    "tomorrow": 1, "last night": -1, "the day before yesterday": -2, "the day after tomorrow": 2,
    "yesterday morning": -1, "yesterday afternoon": -1, "yesterday evening": -1,
    "tomorrow morning": 1, "tomorrow afternoon": 1, "tomorrow evening": 1, "tomorrow night": 1,
    "heute": 0, "heute morgen": 0, "heute früh": 0, "heute nachmittag": 0, "heute abend": 0, "gestern": -1,
    "gestern abend": -1, "morgen früh": 1, "morgen abend": 1, "morgen": 1, "vorgestern": -2, "übermorgen": 2,
    "hoje": 0, "esta manhã": 0, "hoje de manhã": 0, "esta tarde": 0, "esta noite": 0, "ontem": -1,
    "ontem à noite": -1, "amanhã": 1, "anteontem": -2, "depois de amanhã": 2,
    "hoy": 0, "esta mañana": 0, "esta noche": 0, "ayer": -1, "anoche": -1, "mañana": 1, "anteayer": -2,
    "pasado mañana": 2,
    "今日": 0, "今朝": 0, "今夜": 0, "昨日": -1, "明日": 1, "一昨日": -2, "おととい": -2, "明後日": 2,
    "あさって": 2, "昨夜": -1,
}  # fmt: skip
"""Word → days from the day it was said."""

PERIOD_WORDS: dict[str, tuple[Unit, int]] = {
    "先週": ("week", -1), "今週": ("week", 0), "来週": ("week", 1), "先月": ("month", -1), "今月": ("month", 0),
    "来月": ("month", 1), "去年": ("year", -1), "昨年": ("year", -1), "今年": ("year", 0), "来年": ("year", 1),
}  # fmt: skip

UNITS: dict[str, Unit] = {
    "day": "day", "days": "day", "week": "week", "weeks": "week", "month": "month", "months": "month",
    "year": "year", "years": "year",
    "tag": "day", "tage": "day", "tagen": "day", "woche": "week", "wochen": "week", "monat": "month",
    "monate": "month", "monaten": "month", "jahr": "year", "jahre": "year", "jahren": "year",
    "dia": "day", "dias": "day", "semana": "week", "semanas": "week", "mês": "month", "meses": "month",
    "ano": "year", "anos": "year",
    "día": "day", "días": "day", "mes": "month", "año": "year", "años": "year",
    "日": "day", "週間": "week", "か月": "month", "ヶ月": "month", "カ月": "month", "年": "year",
}  # fmt: skip

MONTHS: dict[str, int] = {
    "january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8,
    "september": 9, "october": 10, "november": 11, "december": 12,
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10, "nov": 11,
    "dec": 12,
    "januar": 1, "februar": 2, "märz": 3, "mai": 5, "juni": 6, "juli": 7, "oktober": 10, "dezember": 12,
    "janeiro": 1, "fevereiro": 2, "março": 3, "abril": 4, "maio": 5, "junho": 6, "julho": 7, "agosto": 8,
    "setembro": 9, "outubro": 10, "novembro": 11, "dezembro": 12,
    "enero": 1, "febrero": 2, "marzo": 3, "mayo": 5, "junio": 6, "julio": 7, "septiembre": 9, "octubre": 10,
    "noviembre": 11, "diciembre": 12,
}  # fmt: skip

AMBIGUOUS_MONTHS = ("may", "march", "mar", "mai", "jan", "dec", "sep")
"""Also a verb, a name or another word: a month only after a preposition, or beside a number."""

WEEKDAYS: dict[str, int] = {
    "monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6,
    "montag": 0, "dienstag": 1, "mittwoch": 2, "donnerstag": 3, "freitag": 4, "samstag": 5, "sonntag": 6,
    "segunda-feira": 0, "terça-feira": 1, "quarta-feira": 2, "quinta-feira": 3, "sexta-feira": 4, "sábado": 5,
    "domingo": 6,
    "lunes": 0, "martes": 1, "miércoles": 2, "jueves": 3, "viernes": 4,
    "月曜日": 0, "火曜日": 1, "水曜日": 2, "木曜日": 3, "金曜日": 4, "土曜日": 5, "日曜日": 6,
}  # fmt: skip

NUMBERS: dict[str, int] = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "a couple of": 2, "couple of": 2,
    "einem": 1, "einer": 1, "ein": 1, "eine": 1, "zwei": 2, "drei": 3, "vier": 4, "fünf": 5, "sechs": 6, "sieben": 7,
    "acht": 8, "neun": 9, "zehn": 10,
    "um": 1, "uma": 1, "dois": 2, "duas": 2, "três": 3, "quatro": 4, "cinco": 5, "seis": 6, "sete": 7, "oito": 8,
    "nove": 9, "dez": 10,
    "un": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "siete": 7, "ocho": 8, "nueve": 9, "diez": 10,
    "一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10,
}  # fmt: skip

PREVIOUS = r"last|past|previous|letzte[nmrs]?|vorige[nmrs]?|passad[oa]|pasad[oa]|últim[oa]"
NEXT = r"next|coming|nächste[nmrs]?|kommende[nmrs]?|próxim[oa]|que\s+vem|que\s+viene"
THIS = r"this|diese[nmrs]?|est[ae]|nest[ae]|dieses"
SINCE = (r"\b(?:ever\s+since|since|seit|desde)", r"(?:から|以来)")
"""Connectives before and after a date: from then on."""
UNTIL = (r"\b(?:until|till|bis|até|hasta)", r"まで")
