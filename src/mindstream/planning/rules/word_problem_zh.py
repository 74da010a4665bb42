"""Word problems in Chinese, in the clauses that school books use: 小明有12个苹果，小红比小明多5个，小红有几个？"""

from __future__ import annotations

import re

from mindstream.text.numerals import in_digits

WHO = r"[\u4e00-\u9fff]{1,3}?"
A, B, N = rf"(?P<a>{WHO})", rf"(?P<b>{WHO})", r"(?P<n>\d+(?:\.\d+)?)"
UNIT = r"(?P<unit>[\u4e00-\u9fff]{0,4}?)"
HAS = r"(?:今年|现在|一共|共)?(?:有|是|重|长|高|买了|做了|看了|跑了|存了|花了|写了)?(?:今年|现在)?"
MORE = "多大长高重贵"
TOTAL = re.compile(rf"(?P<list>{WHO}(?:[和与、]{WHO})+)(?:一共|共|总共)(?:有)?{N}{UNIT}")
DIFFERENCE = re.compile(rf"{A}(?:有的)?比{B}(?P<sign>[{MORE}]|少|小|短|矮|轻|便宜)(?:有|了)?{N}{UNIT}")
RATIO = re.compile(rf"{A}(?:的[\u4e00-\u9fff]{{1,4}})?是{B}(?:的[\u4e00-\u9fff]{{1,4}})?的?{N}倍")
PLAIN = re.compile(rf"{A}{HAS}{N}{UNIT}")
ALL = r"(?P<all>他们|她们|两人|[\u4e00-\u9fff]{1,3}[和与][\u4e00-\u9fff]{1,3})"
ASKED = re.compile(rf"(?:请?问)?(?:{A}|{ALL})(?P<total>一共|总共|共)?{HAS}(?:多少|几)[\u4e00-\u9fff]{{0,6}}")


def read_chinese_problem(task: str) -> str | None:
    """Return equations and what is asked, between `;`; None where a clause is not understood whole."""
    *clauses, question = [each.strip() for each in re.split(r"[，。；,;？?！]", in_digits(task)) if each.strip()] or [
        ""
    ]
    found = [equation for clause in clauses if (equation := _read_clause(clause))]
    if len(found) < len(clauses) or not found:
        return None
    equations = [equation for equation, _ in found]
    known = list(dict.fromkeys(re.findall(r"[\u4e00-\u9fff]+", " ".join(equations))))
    asked = ASKED.fullmatch(question)
    units = {unit[:1] for _, unit in found if unit}
    if not asked or len(units) > 1 or len({each.partition(" =")[0] for each in equations}) < len(equations):
        return None
    if asked["all"] or asked["total"]:
        return "; ".join([*equations, " + ".join(known)]) if asked["total"] else None
    return "; ".join([*equations, asked["a"]]) if asked["a"] in known else None


def _read_clause(words: str) -> tuple[str, str] | None:
    if found := TOTAL.fullmatch(words):
        return f"{' + '.join(re.split('[和与、]', found['list']))} = {found['n']}", found["unit"]
    if found := DIFFERENCE.fullmatch(words):
        return f"{found['a']} = {found['b']} {'+' if found['sign'] in MORE else '-'} {found['n']}", found["unit"]
    if found := RATIO.fullmatch(words):
        return f"{found['a']} = {found['b']} * {found['n']}", ""
    found = PLAIN.fullmatch(words)
    return (f"{found['a']} = {found['n']}", found["unit"]) if found else None
