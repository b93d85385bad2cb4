"""``python -m cosmos_workflow_state``: the command line, where its script is not on the path."""

import sys

from ._cli import main

sys.exit(main())
