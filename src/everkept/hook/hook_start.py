"""What agents start, as `<home>/hook.py`: it never changes, so that no agent asks for trust again after an upgrade.

All is in `everkept_hook.py` beside it, a module, because Python keeps the bytecode of modules only; compiling it at
each start would take longer than running it.
"""

import sys

sys.path.append(__file__[: max(__file__.rfind("/"), __file__.rfind("\\"))])
try:
    __import__("everkept_hook").main()
except (ImportError, SyntaxError) as error:
    sys.stderr.write(f"everkept: the hook is not whole ({error}); `everkept install` puts it right\n")
