"""python3 -m rubato_analysis: see cli.py."""

import sys

from rubato_analysis.cli import main

sys.exit(main())
