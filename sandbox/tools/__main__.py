"""`python -m sandbox.tools [folder]`: install the EVM node, and print where it is."""

import sys
from pathlib import Path

from sandbox.tools import USUAL_TOOLS, ToolMissing, obtain

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else USUAL_TOOLS
    try:
        print(obtain(folder, lambda line: print(line, file=sys.stderr)))
    except ToolMissing as missing:
        sys.exit(str(missing))
