"""Deliberately wrong implementations, one defect a file, and in controls/ unusual ones that are right.

MUST_BREAK names the claims that say in words what is wrong, SPREADS further topics whose claims the defect
reaches. A control's MAY_BREAK names claims that it breaks for the reason its docstring gives.
"""
